import { closeSync, openSync, readSync } from 'node:fs';

const header = Buffer.from('SQLite format 3\0');

/**
 * Whether a file is there and begins as one of SQLite: zeros, a truncated or a lost file does not. Not for a file that this
 * process has open as a database: to close another descriptor of it would give back the locks on it (`fcntl(2)`), and a
 * program from outside that closes it then takes itself for the last one, and removes its log.
 */
export function hasHeader(path: string): boolean {
  try {
    const descriptor = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(header.length);
      return readSync(descriptor, bytes, 0, bytes.length, 0) === bytes.length && bytes.equals(header);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return false;
  }
}
