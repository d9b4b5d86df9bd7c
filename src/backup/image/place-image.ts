import { promises as fs } from 'node:fs';
import { dirname, join } from 'node:path';
import { failpoint } from '../../lib/failpoint.ts';
import type { DataDirectory } from '../../storage/directory/data-directory.ts';
import { indexDirectory } from '../../storage/directory/index-directory.ts';
import { adoptImage } from '../../storage/range/range-image.ts';
import { imageNote } from '../../storage/range/range-snapshot.ts';
import type { Table } from '../../tables/table.ts';
import type { TableService } from '../../tables/table-service.ts';
import { readBlocks } from '../archive/archive-reader.ts';
import type { ImageFile, TableManifest } from '../archive/manifest.ts';
import type { ObjectStore } from '../stores/object-store.ts';
import { documentsPath, readIndexPath } from './image-path.ts';
import { outOfRoom, writeBlocks } from './write-blocks.ts';

interface ImageDeps {
  readonly tables: Pick<TableService, 'adoptImage'>;
  readonly directory: DataDirectory;
}

/** The range of a staged table that an image becomes. */
interface ImagePlace {
  readonly table: Table;
  readonly rangeId: number;
  /** The state of the table now; files of indexes that it has no more are left out. */
  readonly manifest: TableManifest;
  readonly aboveSequence: number;
}

interface ImageSource {
  readonly store: ObjectStore;
  /** Undefined: there is no image, and nothing to do. */
  readonly files: readonly ImageFile[] | undefined;
}

/**
 * Has a range of a staged table begin with the files that another one had. They are read into a folder of their own, compared
 * with the manifest, made this range's, synced, and then put in place; a range that has them already is left as it is.
 * Throws `backup_corrupted`, and what the location throws.
 */
export async function placeImage(
  { tables, directory }: ImageDeps,
  place: ImagePlace,
  { store, files }: ImageSource,
  signal: AbortSignal,
): Promise<void> {
  const { table, rangeId, manifest, aboveSequence } = place;
  if (!files || (await hasImage(table, rangeId))) return;
  // Emptied by every start.
  const folder = join(directory.temporary, `restored-${rangeId}`);
  await fs.rm(folder, { recursive: true, force: true });
  try {
    await fs.mkdir(join(folder, 'indexes'), { recursive: true });
    const written: string[] = [];
    for (const { path, file } of files) {
      const target = targetOf(folder, path, manifest);
      if (target === undefined) continue;
      await fs.mkdir(dirname(target), { recursive: true });
      await writeBlocks(target, readBlocks(store, file), signal);
      // That of the documents is changed, and synced then.
      if (!target.endsWith(documentsPath)) await sync(target);
      written.push(target);
      failpoint('restore.after-image-file');
    }
    const documents = join(folder, documentsPath);
    // A staged table is in its first generation.
    adoptImage(documents, { rangeId, generation: 1, aboveSequence });
    const folders = written.map((each) => dirname(each));
    for (const path of new Set([documents, ...folders, join(folder, 'indexes')])) await sync(path);
    failpoint('restore.before-image');
    await tables.adoptImage(table, rangeId, folder);
    failpoint('restore.after-image');
  } catch (error) {
    throw outOfRoom(error);
  } finally {
    await fs.rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function hasImage(table: Table, rangeId: number): Promise<boolean> {
  using lease = await table.leaseForUpkeep(rangeId);
  return lease.range.stored.notes.get(imageNote) !== undefined;
}

function targetOf(folder: string, path: string, { indexes }: TableManifest): string | undefined {
  const found = readIndexPath(path);
  if (!found) return join(folder, path);
  const { incarnation, file } = found;
  const index = indexes.find((each) => each.incarnation === incarnation);
  return index && join(indexDirectory(join(folder, 'indexes'), { name: index.name, incarnation }), file);
}

async function sync(path: string): Promise<void> {
  const file = await fs.open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
