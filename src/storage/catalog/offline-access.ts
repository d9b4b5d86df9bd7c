import { existsSync } from 'node:fs';
import { DataDirectory } from '../directory/data-directory.ts';
import { DataDirectoryError } from '../directory/data-directory-error.ts';
import { checkDataFormat, raiseDataFormat } from '../directory/data-format.ts';
import { DataLock } from '../directory/data-lock.ts';
import { inspectWal } from '../wal/wal-inspection.ts';
import { WalMaintenance } from '../wal/wal-maintenance.ts';
import type { AccessStore } from './access-store.ts';
import { readAccessRows } from './access-table.ts';
import { CatalogFile } from './catalog-file.ts';
import { catalogMigrations } from './catalog-migrations.ts';

/**
 * Users and keys of a data directory that no server holds. Only the catalog is opened: ranges stay as they were left.
 * Fails with a `DataDirectoryError` while a server holds the directory, and where there is none.
 */
export async function withOfflineAccess<Result>(
  root: string,
  work: (store: AccessStore) => Promise<Result>,
): Promise<Result> {
  const directory = new DataDirectory(root);
  if (!checkDataFormat(directory) || !existsSync(directory.catalogFile)) {
    const hint = 'start the server once with this --data-dir, which makes it';
    throw new DataDirectoryError('foreign', `${root} is not a data directory`, hint);
  }
  const lock = DataLock.acquire(directory);
  try {
    refuseTornLog(directory);
    raiseDataFormat(directory);
    const { wal, database } = WalMaintenance.open(directory.catalogFile, 'the catalog', catalogMigrations);
    const catalog = new CatalogFile(directory.catalogFile, database, wal);
    try {
      return await work({
        rows: () => readAccessRows(database),
        change(change) {
          catalog.changeAccess(change);
          return Promise.resolve();
        },
      });
    } finally {
      catalog.wal.finish();
      catalog.close();
    }
  } finally {
    lock.release();
  }
}

/** A start tells what an incomplete log has lost, and keeps what the catalog may therefore not name. */
function refuseTornLog({ root, catalogFile }: DataDirectory): void {
  if (inspectWal(`${catalogFile}-wal`).state !== 'torn') return;
  const hint = 'start the server once with this --data-dir, stop it, and try again';
  throw new DataDirectoryError('damaged', `the catalog of ${root} was not closed cleanly`, hint);
}
