import { statSync } from 'node:fs';
import { ServiceError } from '../../protocol/service-error.ts';

/**
 * A file that this process has open, as it was found at its path. Whoever removes or replaces it leaves the process with a
 * file that no later start finds: what is written to it then is gone.
 */
export class HeldFile {
  readonly #path: string;
  readonly #device: number;
  readonly #inode: number;
  #bytes: number;

  /** Throws when there is no such file. */
  constructor(path: string) {
    const { dev, ino, size } = statSync(path);
    this.#path = path;
    this.#device = dev;
    this.#inode = ino;
    this.#bytes = size;
  }

  /** `cut`: it is shorter than it was, which only `shortened` explains. */
  look(): 'held' | 'gone' | 'cut' {
    const found = statSync(this.#path, { throwIfNoEntry: false });
    if (found?.ino !== this.#inode || found.dev !== this.#device) return 'gone';
    if (found.size < this.#bytes) return 'cut';
    this.#bytes = found.size;
    return 'held';
  }

  /** The process itself has made the file shorter. */
  shortened(): void {
    this.#bytes = 0;
    this.look();
  }

  /** Throws `storage_failed` unless the file is the one that is held, and whole. */
  check(): void {
    const found = this.look();
    if (found === 'held') return;
    const what = found === 'gone' ? 'was removed or replaced' : 'was cut';
    throw new ServiceError('storage_failed', 'files of the data directory were taken from the server; it stops', {
      cause: new Error(`${this.#path} ${what} while the server had it open`),
    });
  }
}
