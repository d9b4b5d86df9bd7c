import { closeSync, constants, fchownSync, fstatSync, lstatSync, openSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DataDirectory } from './data-directory.ts';

const root = 0;

/**
 * Gives the files that root has made in a data directory of another user to that user, whose server could not write them. Links
 * are not followed, and a file that has another name is left: it may be one of the system. A file system may refuse it.
 */
export function leaveToOwner({ root: directory, catalogFile, lockFile }: DataDirectory): void {
  if (process.geteuid?.() !== root) return;
  const owner = statSync(catalogFile, { throwIfNoEntry: false });
  if (owner === undefined || owner.uid === root) return;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    // To close a descriptor of the lock file would release the lock.
    if (path === lockFile || !(entry.isFile() || entry.isDirectory())) continue;
    try {
      if (lstatSync(path).uid === root) give(path, owner);
    } catch {
      // It is gone, or the file system knows no owners.
    }
  }
}

function give(path: string, { uid, gid }: { readonly uid: number; readonly gid: number }): void {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const found = fstatSync(descriptor);
    const isSole = found.isDirectory() || (found.isFile() && found.nlink === 1);
    if (found.uid === root && isSole) fchownSync(descriptor, uid, gid);
  } finally {
    closeSync(descriptor);
  }
}
