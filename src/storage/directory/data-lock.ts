import type { DataDirectory } from './data-directory.ts';
import { DataDirectoryError } from './data-directory-error.ts';
import { FileLock } from './file-lock.ts';

/** Holds a data directory for one process. */
export class DataLock {
  readonly #lock: FileLock;

  private constructor(lock: FileLock) {
    this.#lock = lock;
  }

  /** Fails with `locked`, naming the owner, when another process holds the directory. */
  static acquire(directory: DataDirectory): DataLock {
    const lock = FileLock.acquire(directory.lockFile);
    if (lock instanceof FileLock) return new DataLock(lock);
    throw new DataDirectoryError(
      'locked',
      `${directory.root} is in use by process ${lock.heldBy}`,
      'stop that process, or give this one another data directory',
    );
  }

  release(): void {
    this.#lock[Symbol.dispose]();
  }
}
