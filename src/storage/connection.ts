import { Database, SQLiteError } from 'bun:sqlite';
import { DataDirectoryError } from './directory/data-directory-error.ts';

/** One step of a file's schema; its place in the list is its number. Never changed once released. */
export type Migration = (database: Database) => void;

/** Other connections hold a lock only for moments. */
export const busyTimeoutMs = 5_000;
export const pageBytes = 4_096;
const writerCacheKib = 32 * 1_024;
const readerCacheKib = 8 * 1_024;
/** Switching to WAL needs the file alone for a moment and does not wait by itself. */
const walSwitchAttemptsMax = 50;

/**
 * Opens (or creates) a file for writing: WAL, every commit synced, no automatic checkpoints (`WalMaintenance` runs them
 * beside the writes), and all of `migrations` applied. A file of a newer release is refused untouched.
 */
export function openWriter(path: string, migrations: readonly Migration[]): Database {
  const database = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    refuseNewer(database, path, migrations.length);
    database.run(`PRAGMA page_size = ${pageBytes}`);
    switchToWal(database);
    database.run('PRAGMA synchronous = FULL');
    database.run('PRAGMA foreign_keys = ON');
    database.run('PRAGMA wal_autocheckpoint = 0');
    database.run('PRAGMA temp_store = MEMORY');
    database.run(`PRAGMA cache_size = -${writerCacheKib}`);
    migrate(database, migrations);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens a file, which a writer of this process has open, for reading. */
export function openReader(path: string): Database {
  const database = new Database(path, { readonly: true, strict: true });
  database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  database.run(`PRAGMA cache_size = -${readerCacheKib}`);
  database.run('PRAGMA query_only = ON');
  return database;
}

export function schemaVersion(database: Database): number {
  return (database.query('PRAGMA user_version').get() as { user_version: number }).user_version;
}

function refuseNewer(database: Database, path: string, known: number): void {
  const found = schemaVersion(database);
  if (found <= known) return;
  throw new DataDirectoryError(
    'newer_format',
    `${path} has format ${found}; this release knows formats up to ${known}`,
    'start the release that wrote this directory, or a later one',
  );
}

function switchToWal(database: Database): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      database.run('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      const busy = error instanceof SQLiteError && error.code?.startsWith('SQLITE_BUSY') === true;
      if (!busy || attempt === walSwitchAttemptsMax) throw error;
      Bun.sleepSync(10);
    }
  }
}

/** Takes a file from the format that it has to the newest, in one transaction. */
export function migrate(database: Database, migrations: readonly Migration[]): void {
  if (schemaVersion(database) === migrations.length) return;
  database
    .transaction(() => {
      for (let version = schemaVersion(database); version < migrations.length; version += 1) {
        migrations[version]?.(database);
      }
      database.run(`PRAGMA user_version = ${migrations.length}`);
    })
    .immediate();
}
