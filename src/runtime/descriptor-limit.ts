import { readFileSync } from 'node:fs';

/** Descriptors that the process may have open (its soft limit); undefined where the system does not tell. */
export function descriptorLimit(): number | undefined {
  try {
    return softLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/** Reads the table of `/proc/self/limits`; undefined for no limit. */
function softLimit(table: string): number | undefined {
  const found = /^Max open files\s+(\d+)/m.exec(table)?.[1];
  return found === undefined ? undefined : Number(found);
}
