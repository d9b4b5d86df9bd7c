import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';

/** Returns when the contents of a file, or the names in a directory, survive a loss of power. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Writes a file whole and syncs it; its name is durable once its directory is synced. `wx` refuses one that is there. */
export function writeSynced(path: string, flags: 'w' | 'wx', contents: Uint8Array | string, mode?: number): void {
  const descriptor = openSync(path, flags, mode);
  try {
    if (typeof contents === 'string') writeSync(descriptor, contents);
    else writeSync(descriptor, contents);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Adds bytes behind the `size` that a file has, and syncs them. A file that does not take them keeps its size. */
export function extendSynced(descriptor: number, size: number, bytes: Uint8Array): void {
  try {
    writeSync(descriptor, bytes, 0, bytes.byteLength, size);
    fdatasyncSync(descriptor);
  } catch (error) {
    ftruncateSync(descriptor, size);
    throw error;
  }
}
