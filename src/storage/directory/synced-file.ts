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

/**
 * Writes all of the bytes, at `position` or where the file stands. A disk that has room for a part of them takes that part and
 * reports no error: what fails is the write of the rest.
 */
export function writeWhole(descriptor: number, bytes: Uint8Array, position?: number): void {
  for (let done = 0; done < bytes.byteLength; ) {
    const at = position === undefined ? null : position + done;
    done += writeSync(descriptor, bytes, done, bytes.byteLength - done, at);
  }
}

/** Writes a file whole and syncs it; its name is durable once its directory is synced. `wx` refuses one that is there. */
export function writeSynced(path: string, flags: 'w' | 'wx', contents: Uint8Array | string, mode?: number): void {
  const descriptor = openSync(path, flags, mode);
  try {
    writeWhole(descriptor, typeof contents === 'string' ? new TextEncoder().encode(contents) : contents);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Bytes of one write. The page cache keeps what is written at once in one large folio, and every later write into it walks all
 * blocks of that: with 16 MiB at once, adding the space took five times as long, and a commit into it 20 microseconds more.
 */
const extensionBytes = 64 * 1_024;

/** Adds bytes behind the `size` that a file has, and syncs them. A file that does not take them keeps its size. */
export function extendSynced(descriptor: number, size: number, bytes: Uint8Array): void {
  try {
    for (let at = 0; at < bytes.byteLength; at += extensionBytes) {
      writeWhole(descriptor, bytes.subarray(at, at + extensionBytes), size + at);
    }
    fdatasyncSync(descriptor);
  } catch (error) {
    ftruncateSync(descriptor, size);
    throw error;
  }
}
