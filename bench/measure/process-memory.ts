import { readFileSync } from 'node:fs';

/** Pages of a process that are in memory, in bytes: those without a file, and those of the mapped files that are counted. */
export function processMemory(
  pid: number,
  isCounted: (path: string) => boolean,
): { anonymous: number; mapped: number } {
  let [anonymous, mapped, counts] = [0, 0, false];
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const [, path] = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$/.exec(line) ?? [];
    if (path !== undefined) counts = path.startsWith('/') && isCounted(path);
    const [, name, kib] = /^(Anonymous|Rss):\s+(\d+) kB/.exec(line) ?? [];
    if (name === 'Anonymous') anonymous += Number(kib) * 1_024;
    if (name === 'Rss' && counts) mapped += Number(kib) * 1_024;
  }
  return { anonymous, mapped };
}
