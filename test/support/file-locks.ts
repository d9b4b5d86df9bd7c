import { readFileSync, statSync } from 'node:fs';

/** Locks that this process has on a file (`fcntl`), as the kernel lists them. */
export function locksOn(path: string): number {
  const { ino } = statSync(path);
  const ofFile = new RegExp(`POSIX .* ${process.pid} [0-9a-f]+:[0-9a-f]+:${ino} `);
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .filter((line) => ofFile.test(line)).length;
}
