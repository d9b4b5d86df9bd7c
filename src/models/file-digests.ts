import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { ModelFileError } from './model-file-error.ts';

const pieceBytes = 1024 * 1024;

/** SHA-256 of a file, hexadecimal. */
export function fileDigest(path: string): string {
  const hasher = new Bun.CryptoHasher('sha256');
  const piece = new Uint8Array(pieceBytes);
  const descriptor = openSync(path, 'r');
  try {
    for (let count = readSync(descriptor, piece); count > 0; count = readSync(descriptor, piece)) {
      hasher.update(piece.subarray(0, count));
    }
  } finally {
    closeSync(descriptor);
  }
  return hasher.digest('hex');
}

/** Paths below a folder of every file in it, in order. Links and devices are refused, hidden names left out. */
export function filesBelow(folder: string, below = ''): string[] {
  const entries = readdirSync(join(folder, below), { withFileTypes: true });
  const shown = entries.filter(({ name }) => !name.startsWith('.')).sort((a, b) => (a.name < b.name ? -1 : 1));
  return shown.flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(folder, path);
    if (!entry.isFile()) throw new ModelFileError(`${path} is a link or a device; a model is made of files`);
    return [path];
  });
}

/** The differences from the digests of a manifest, as sentences. */
export function digestFaults(folder: string, digests: Readonly<Record<string, string>>): string[] {
  const present = filesBelow(folder);
  return Object.entries(digests).flatMap(([path, digest]) => {
    if (!present.includes(path)) return [`${path} is missing`];
    return fileDigest(join(folder, path)) === digest ? [] : [`${path} is not the file that was installed`];
  });
}
