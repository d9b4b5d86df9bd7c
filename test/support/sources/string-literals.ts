/** A piece of text in a program, without its quotes; of a template each piece between `${}` is one. */
interface StringLiteral {
  /** Where it begins in the source. */
  readonly at: number;
  readonly text: string;
}

/** After one of these a slash begins a regular expression, after anything else it divides. */
const beforeRegex = /(?:^|[(,=:[!&|?{};+\n>]|\breturn|\bcase|\bof)\s*$/;

/** The string literals of TypeScript, in order; comments and regular expressions are passed over. */
export function stringLiterals(source: string): StringLiteral[] {
  const found: StringLiteral[] = [];
  /** For each open template the braces that are open in its expression. */
  const templates: number[] = [];
  let at = 0;
  const skipTo = (mark: string) => {
    const end = source.indexOf(mark, at + 2);
    at = end < 0 ? source.length : end + mark.length;
  };
  /** Reads from behind a quote to the next one, or in a template to its next expression. */
  const readText = (quote: string) => {
    const start = at;
    while (at < source.length && source[at] !== quote) {
      if (quote === '`' && source.startsWith('${', at)) break;
      at += source[at] === '\\' ? 2 : 1;
    }
    found.push({ at: start, text: source.slice(start, at) });
    if (source[at] === '$') {
      templates.push(0);
      at += 2;
    } else at += 1;
  };
  while (at < source.length) {
    const char = source[at] ?? '';
    const open = templates.length - 1;
    if (source.startsWith('//', at)) skipTo('\n');
    else if (source.startsWith('/*', at)) skipTo('*/');
    else if (char === '/' && beforeRegex.test(source.slice(Math.max(0, at - 40), at))) {
      at = regexEnd(source, at);
    } else if (char === "'" || char === '"' || char === '`') {
      at += 1;
      readText(char);
    } else if (char === '}' && templates[open] === 0) {
      templates.pop();
      at += 1;
      readText('`');
    } else {
      if (open >= 0) templates[open] = (templates[open] ?? 0) + (char === '{' ? 1 : char === '}' ? -1 : 0);
      at += 1;
    }
  }
  return found;
}

/** Where the regular expression that begins at a slash ends. */
function regexEnd(source: string, start: number): number {
  let isInClass = false;
  for (let at = start + 1; at < source.length; at += 1) {
    const char = source[at];
    if (char === '\\') at += 1;
    else if (char === '[') isInClass = true;
    else if (char === ']') isInClass = false;
    else if (char === '/' && !isInClass) return at + 1;
  }
  return source.length;
}
