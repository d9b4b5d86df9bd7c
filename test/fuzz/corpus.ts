/** Inputs that each answer in a way of their own, one JSON string a line. */
export function corpusFile(target: string): string {
  return Bun.fileURLToPath(new URL(`./corpus/${target}.jsonl`, import.meta.url));
}

export function readCorpus(lines: string): string[] {
  return lines.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as string]));
}
