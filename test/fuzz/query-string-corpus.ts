/** Query strings that each answer in a way of their own, one JSON string a line. */
export const corpusFile = new URL('./corpus/query-string.jsonl', import.meta.url).pathname;

export function readCorpus(lines: string): string[] {
  return lines.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as string]));
}
