import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Bytes of all files below a directory; 0 when there is none. */
export function bytesBelow(directory: string): number {
  let total = 0;
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      total += entry.isDirectory() ? bytesBelow(path) : fileBytes(path);
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  return total;
}

/** Bytes of a file; 0 when there is none. */
export function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Tells one state of a database file from another: its length and when it was last written. Undefined when it is
 * missing, or when its write-ahead log holds anything: the file alone does not say what was committed then.
 */
export function fileStamp(path: string): string | undefined {
  if (fileBytes(`${path}-wal`) > 0) return undefined;
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found && `${found.size}:${found.mtimeNs}`;
}
