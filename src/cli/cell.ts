/** A value of a line whose columns have tabs between them: tabs and ends of lines within it would make two of one. */
export function cellOf(value: unknown): string {
  if (value === null) return '';
  return String(value).replace(/[\t\n\r\\]/g, (character) => escapes[character] ?? character);
}

const escapes: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' };
