import { must } from '../lib/assert.ts';
import { readBlocks, readLines } from './archive/archive-reader.ts';
import { readLine } from './archive/read-line.ts';
import { openChain } from './backup-chain.ts';
import type { ObjectStore } from './stores/object-store.ts';

/** The content of a backup, once every byte of it was read and found as it was written. */
interface VerifiedBackup {
  backupId: string;
  tables: { name: string; documents: number; files: number; bytes: number }[];
}

/**
 * Reads a backup back, and all that it leans on, without restoring it: every checksum is compared and every line read.
 * Throws `backup_not_found` and `backup_corrupted`. `onTable` is told before each table.
 */
export async function verifyBackup(
  store: ObjectStore,
  backupId: string,
  onTable: (name: string) => void = () => undefined,
): Promise<VerifiedBackup> {
  const chain = await openChain(store, backupId);
  const tables: VerifiedBackup['tables'] = [];
  for (const { name } of chain.cluster.tables) {
    onTable(name);
    const table = must(await chain.table(name), 'a table that its manifest names');
    const packed = [...table.images.flatMap((image) => image ?? []), ...table.vectorLinks.flat()];
    const own = packed.map(({ file }) => file);
    for (const file of own) for await (const _ of readBlocks(store, file));
    const lines = table.files.flat();
    const files = [...own, ...lines];
    for (const file of lines) {
      for await (const { lines: read, release } of readLines(store, file)) {
        for (const line of read) readLine(line, table.lastPartId);
        release();
      }
    }
    const documents = table.manifest.ranges.reduce((sum, range) => sum + range.documents, 0);
    tables.push({ name, documents, files: files.length, bytes: files.reduce((sum, file) => sum + file.bytes, 0) });
  }
  return { backupId, tables };
}
