import { promises as fs } from 'node:fs';

/** The header of a write-ahead log of SQLite: every frame that counts has its salts (file format, 4.1). */
const headerBytes = 32;
/** A reader that lives as long as the copy lets the log begin again once. */
const attemptsMax = 10;

/**
 * Copies the write-ahead log of a database that is written meanwhile. The log may begin again under the copy, which then has
 * the first of its earlier frames and not the last: pages that the file has already would go back. Such a copy is made
 * again. `copy` copies one file over another.
 */
export async function copyLog(
  from: string,
  to: string,
  copy: (from: string, to: string) => Promise<void>,
): Promise<void> {
  const file = await fs.open(from, 'r');
  try {
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const before = await headerOf(file);
      await copy(from, to);
      if (before.equals(await headerOf(file))) return;
    }
  } finally {
    await file.close();
  }
  throw new Error('a write-ahead log begins again each time that it is copied');
}

/** Fewer bytes where there is no whole header. */
async function headerOf(file: fs.FileHandle): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(headerBytes), 0, headerBytes, 0);
  return buffer.subarray(0, bytesRead);
}
