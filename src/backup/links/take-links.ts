import { promises as fs } from 'node:fs';
import { join } from 'node:path';
import type { LinkReport } from '../../indexing/range-index.ts';
import { failpoint } from '../../lib/failpoint.ts';
import type { DataDirectory } from '../../storage/directory/data-directory.ts';
import type { Table } from '../../tables/table.ts';
import { readBlocks } from '../archive/archive-reader.ts';
import type { LinksFile } from '../archive/manifest.ts';
import { outOfRoom, writeBlocks } from '../image/write-blocks.ts';
import type { ObjectStore } from '../stores/object-store.ts';

interface LinksDeps {
  readonly directory: DataDirectory;
  /** An index of a table that nobody sees yet has its links. */
  onLinked(index: string, report: LinkReport): void;
}

/** The range of a staged table that links are for, and where they come from. */
interface LinksOfRange {
  readonly table: Table;
  readonly rangeId: number;
  readonly store: ObjectStore;
  readonly files: readonly LinksFile[];
}

/**
 * Bytes of vectors that may wait for links, as in an index that is written to.
 * Indexes with no more are linked after the restore.
 */
const waitingBytesMax = 256 * 1_024 * 1_024;

/** Has the indexes that links come for wait for them with all of their rows. */
export async function holdForLinks({ table, rangeId, files }: LinksOfRange, signal: AbortSignal): Promise<void> {
  if (files.length === 0) return;
  using lease = await table.leaseForUpkeep(rangeId);
  await lease.range.whenReplayed(signal);
  const open = lease.range.links();
  for (const { index } of files) await open.get(index)?.hold();
}

/**
 * Gives the vectors of a range, which shows all of them, the links that they had when they were backed up. Those of an
 * index that the table has no more, or that has few, are not read. Throws `backup_corrupted`, and what the location
 * throws.
 */
export async function takeLinks(
  { directory, onLinked }: LinksDeps,
  { table, rangeId, store, files }: LinksOfRange,
  signal: AbortSignal,
): Promise<void> {
  for (const { index, file } of files) {
    using lease = await table.leaseForUpkeep(rangeId);
    const links = lease.range.links().get(index);
    failpoint('restore.before-links');
    if (!links || lease.range.vectorBytes(index) <= waitingBytesMax) continue;
    // Its folder is emptied by every start.
    const path = join(directory.temporary, `links-${crypto.randomUUID()}`);
    try {
      await writeBlocks(path, readBlocks(store, file), signal);
      // One that is closed meanwhile is linked again when it is open again.
      const left = (error: unknown) => ({ kept: 0, relinked: 0, left: 0, refused: String(error) });
      onLinked(index, await links.take(path).catch(left));
    } catch (error) {
      throw outOfRoom(error);
    } finally {
      await fs.rm(path, { force: true });
    }
    signal.throwIfAborted();
  }
}
