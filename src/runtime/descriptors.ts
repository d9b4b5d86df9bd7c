import { closeSync, openSync, readFileSync } from 'node:fs';

let lastLimit: number | undefined;

/** Descriptors that the process may have open (its soft limit); undefined where the system does not tell. */
export function descriptorLimit(): number | undefined {
  try {
    lastLimit = softLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    // With no descriptor left it cannot be read.
  }
  return lastLimit;
}

/** Reads the table of `/proc/self/limits`; undefined for no limit. */
function softLimit(table: string): number | undefined {
  const found = /^Max open files\s+(\d+)/m.exec(table)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** True where this many more files can be opened at this moment. */
export function canOpen(count: number): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < count) opened.push(openSync('/dev/null', 'r'));
    return true;
  } catch (error) {
    // A place without /dev/null says nothing of descriptors.
    return !['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '');
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}
