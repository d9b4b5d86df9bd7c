import { Database, SQLiteError } from 'bun:sqlite';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

/** How long processes that want the lock at one moment may need to let one of them have it, milliseconds. */
const raceMs = 250;

/**
 * A lock that one process holds: an exclusive SQLite lock on a file, which the kernel takes back however the process
 * ends. The pid beside it, in `<file>.pid`, is for people only. Nothing else of the process may open the lock file:
 * closing any of its descriptors would release the lock.
 */
export class FileLock implements Disposable {
  readonly #database: Database;
  readonly #pidFile: string;

  private constructor(database: Database, pidFile: string) {
    this.#database = database;
    this.#pidFile = pidFile;
  }

  /** The lock, or `heldBy`: the process that holds it, as far as it is known. */
  static acquire(path: string): FileLock | { readonly heldBy: string } {
    const pidFile = `${path}.pid`;
    const database = new Database(path, { create: true, readwrite: true });
    try {
      // SQLite takes the lock in steps: of processes that begin at one moment, one goes on once the others have gone back.
      database.run(`PRAGMA busy_timeout = ${raceMs}`);
      // The lock is all that is wanted of the file: no journal on disk, which a full disk would refuse.
      database.run('PRAGMA journal_mode = MEMORY');
      database.run('BEGIN EXCLUSIVE');
      writePid(pidFile);
    } catch (error) {
      database.close();
      if (error instanceof SQLiteError && error.code?.startsWith('SQLITE_BUSY')) return { heldBy: readPid(pidFile) };
      throw error;
    }
    return new FileLock(database, pidFile);
  }

  [Symbol.dispose](): void {
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

function readPid(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '(unknown)';
    throw error;
  }
}
