import { Database, SQLiteError } from 'bun:sqlite';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { DataDirectory } from './data-directory.ts';
import { DataDirectoryError } from './data-directory-error.ts';

/**
 * Holds a data directory for one process: an exclusive SQLite lock, which the kernel takes back however the process
 * ends. The pid beside it is for people only. Nothing else of the process may open the lock file: closing any of its
 * descriptors would release the lock.
 */
export class DataLock {
  readonly #database: Database;
  readonly #pidFile: string;

  private constructor(database: Database, pidFile: string) {
    this.#database = database;
    this.#pidFile = pidFile;
  }

  /** Fails with `locked`, naming the owner, when another process holds the directory. */
  static acquire(directory: DataDirectory): DataLock {
    const pidFile = `${directory.lockFile}.pid`;
    const database = new Database(directory.lockFile, { create: true, readwrite: true });
    try {
      database.run('PRAGMA locking_mode = EXCLUSIVE');
      // The lock is all that is wanted of the file: no journal on disk, which a full disk would refuse.
      database.run('PRAGMA journal_mode = MEMORY');
      database.run('BEGIN EXCLUSIVE');
      writePid(pidFile);
    } catch (error) {
      database.close();
      if (error instanceof SQLiteError && error.code?.startsWith('SQLITE_BUSY')) throw lockedBy(directory, pidFile);
      throw error;
    }
    return new DataLock(database, pidFile);
  }

  release(): void {
    rmSync(this.#pidFile, { force: true });
    this.#database.run('ROLLBACK');
    this.#database.close();
  }
}

function writePid(path: string): void {
  try {
    writeFileSync(path, `${process.pid}\n`);
  } catch (error) {
    // The lock holds without it.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}

function lockedBy(directory: DataDirectory, pidFile: string): DataDirectoryError {
  return new DataDirectoryError(
    'locked',
    `${directory.root} is in use by process ${readPid(pidFile)}`,
    'Stop that process, or give this one another data directory.',
  );
}

function readPid(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '(unknown)';
    throw error;
  }
}
