import type { promises } from 'node:fs';

type WrittenFile = Pick<promises.FileHandle, 'write' | 'datasync' | 'sync' | 'close'>;

/** Bytes that are written before they are synced. */
export const syncBytes = 8 * 1_024 * 1_024;

/**
 * A new file that is synced along the way. One that is synced only at its end leaves the disk all of it at once, and a write to
 * the database waits as long.
 */
export class SteadyFile {
  readonly #file: WrittenFile;
  #unsynced = 0;
  #isSyncing = false;
  /** A failed sync is told once by the system: it is kept. */
  #synced: Promise<void> = Promise.resolve();

  /** The file is empty and belongs to this object from now on. */
  constructor(file: WrittenFile) {
    this.#file = file;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; ) {
      const { bytesWritten } = await this.#file.write(bytes, at, bytes.byteLength - at);
      at += bytesWritten;
    }
    this.#unsynced += bytes.byteLength;
    if (this.#unsynced >= syncBytes && !this.#isSyncing) this.#startSync();
  }

  /** Makes all of the file durable and closes it. */
  async finish(): Promise<void> {
    await this.#synced;
    await this.#file.sync();
    await this.#file.close();
  }

  /** Closes a file that nobody needs; does not throw. */
  async abandon(): Promise<void> {
    await this.#synced.catch(() => undefined);
    await this.#file.close().catch(() => undefined);
  }

  #startSync(): void {
    this.#unsynced = 0;
    this.#isSyncing = true;
    const earlier = this.#synced;
    this.#synced = this.#file.datasync().then(() => {
      this.#isSyncing = false;
      return earlier;
    });
    // A failure is thrown where the file is finished.
    this.#synced.catch(() => undefined);
  }
}
