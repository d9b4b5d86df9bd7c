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
 * Tells one state of a database from another by its file and its write-ahead log: their lengths and when they were last
 * written. Undefined when the file is missing.
 */
export function fileStamp(path: string): string | undefined {
  const file = stampOf(path);
  return file && `${file} ${stampOf(`${path}-wal`) ?? ''}`.trimEnd();
}

/** An empty log says as little as none. */
function stampOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found && found.size > 0n ? `${found.size}:${found.mtimeNs}` : undefined;
}
