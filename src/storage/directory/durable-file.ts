import { readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncPath, writeSynced } from './synced-file.ts';

/** The text of a small file; undefined when there is none. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Puts a small file in place whole: after a crash there is the old one, or the new one, never half of it. */
export function writeDurably(path: string, text: string, mode: number): void {
  const temporary = `${path}.new`;
  // A file that a crash has left there may be readable by more people than this file may be.
  rmSync(temporary, { force: true });
  writeSynced(temporary, 'wx', text, mode);
  renameSync(temporary, path);
  syncPath(dirname(path));
}
