import type { DataDirectory } from './data-directory.ts';
import { DataDirectoryError } from './data-directory-error.ts';
import { FileLock } from './file-lock.ts';
import { HeldFile } from './held-file.ts';
import { leaveToOwner } from './leave-to-owner.ts';

/** Holds a data directory for one process. */
export class DataLock {
  /** The file that tells whether the directory is in its place. */
  readonly file: HeldFile;
  readonly #directory: DataDirectory;
  readonly #lock: FileLock;

  private constructor(directory: DataDirectory, lock: FileLock, file: HeldFile) {
    this.#directory = directory;
    this.#lock = lock;
    this.file = file;
  }

  /** Fails with `locked`, naming the owner, when another process holds the directory, and with `not_writable`. */
  static acquire(directory: DataDirectory): DataLock {
    const lock = acquire(directory);
    if (lock instanceof FileLock) return new DataLock(directory, lock, new HeldFile(directory.lockFile));
    throw new DataDirectoryError(
      'locked',
      `${directory.root} is in use by process ${lock.heldBy}`,
      'stop that process, or give this one another data directory',
    );
  }

  release(): void {
    leaveToOwner(this.#directory);
    this.#lock[Symbol.dispose]();
  }
}

const notWritable: ReadonlySet<string> = new Set(['EROFS', 'EACCES', 'EPERM', 'SQLITE_CANTOPEN', 'SQLITE_READONLY']);

function acquire(directory: DataDirectory): ReturnType<typeof FileLock.acquire> {
  try {
    return FileLock.acquire(directory.lockFile);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!notWritable.has(code)) throw error;
    const hint =
      'give this user the right to write there and mount the disk for writing, or use another data directory';
    throw new DataDirectoryError('not_writable', `${directory.root} cannot be written`, hint, error);
  }
}
