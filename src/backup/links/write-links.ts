import { promises as fs } from 'node:fs';
import { join } from 'node:path';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { type LinksFile, linksBytesMax } from '../archive/manifest.ts';
import type { Copier } from '../copy/copier.ts';
import type { ObjectStore } from '../stores/object-store.ts';

interface LinksTarget {
  readonly copier: Copier;
  readonly store: ObjectStore;
  /** Of a file of links, by how many the range has. */
  readonly linksName: (file: number) => string;
  /** A folder of this machine. */
  readonly temporary: string;
}

/** Writes the links between the vectors of a range into the archive, a file for each index that has some. */
export async function writeLinks(
  range: IndexedRange,
  { copier, store, linksName, temporary }: LinksTarget,
  signal: AbortSignal,
): Promise<LinksFile[]> {
  const written: LinksFile[] = [];
  for (const [index, links] of range.links()) {
    const path = join(temporary, `links-${crypto.randomUUID()}`);
    try {
      // An archive without them restores all the same: an index that is closed now, or a full disk, fails no backup.
      const end = await links.write(path).catch(() => 0);
      signal.throwIfAborted();
      if (end === 0 || end > linksBytesMax) continue;
      const { file } = await copier.write(store, linksName(written.length), undefined, (writer) =>
        writer.all('bytes', { path, after: 0, end }, () => signal.throwIfAborted()),
      );
      written.push({ index, file });
    } finally {
      // A disk that takes no writes removes nothing; the next start does.
      await fs.rm(path, { force: true }).catch(() => undefined);
    }
  }
  return written;
}
