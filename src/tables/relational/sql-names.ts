/** Texts and comments, then names in double quotes, backquotes or brackets, then words. */
const tokens =
  /'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"((?:[^"]|"")*)"|`([^`]*)`|\[([^\]]*)(?:\]|$)|([\p{L}_][\p{L}\p{M}\p{Nd}_$]*)/gu;

/** Words of SQLite's grammar that name nothing unless they are quoted. */
const reserved = new Set(
  (
    'add all alter and as autoincrement between case check collate commit constraint create default deferrable delete distinct ' +
    'drop else escape except exists foreign from group having in index insert intersect into is isnull join limit not nothing ' +
    'notnull null on or order primary references returning select set table then to transaction union unique update using ' +
    'values when where'
  ).split(' '),
);

/** Every name that a statement of SQL contains, as it is spelled there: of tables, columns, functions and aliases. */
export function namesIn(sql: string): Set<string> {
  const names = new Set<string>();
  for (const [, doubled, backquoted, bracketed, word] of sql.matchAll(tokens)) {
    const quoted = doubled ?? backquoted ?? bracketed;
    if (quoted !== undefined) names.add(quoted);
    else if (word !== undefined && !reserved.has(word.toLowerCase())) names.add(word);
  }
  return names;
}

/**
 * The statement with backquotes in place of double quotes. SQLite takes a name in double quotes that it does not find
 * for a text, so that a misspelled column is compared as one; in backquotes it is an error.
 */
export function withBackquotes(sql: string): string {
  return sql.replaceAll(tokens, (token: string, doubled?: string) =>
    doubled === undefined ? token : `\`${doubled.replaceAll('""', '"').replaceAll('`', '``')}\``,
  );
}
