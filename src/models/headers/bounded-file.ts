import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { basename } from 'node:path';
import { ModelFileError } from '../model-file-error.ts';

const windowBytes = 256 * 1024;
/** Memory limit of one piece of a header, whatever the file says. */
const pieceBytesMax = 16 * 1024 * 1024;

/** A file that is read in place through one small window: what it claims about itself costs no memory. */
export class BoundedFile implements Disposable {
  readonly name: string;
  /** Bytes of the whole file when it was opened. */
  readonly size: number;
  readonly #descriptor: number;
  readonly #window = new Uint8Array(windowBytes);
  #windowStart = 0;
  #windowEnd = 0;

  /** Throws `ModelFileError` when the path is not a regular file. */
  constructor(path: string) {
    this.name = basename(path);
    this.#descriptor = openSync(path, 'r');
    const stat = fstatSync(this.#descriptor);
    this.size = stat.size;
    if (!stat.isFile()) {
      closeSync(this.#descriptor);
      throw this.error('is not a regular file');
    }
  }

  /** `length` bytes at `offset`; valid until the next call. Throws where the file does not have them. */
  bytes(offset: number, length: number, what: string): Uint8Array {
    if (offset < 0 || length < 0 || offset + length > this.size) {
      throw this.error(`ends at byte ${this.size}, inside ${what}`);
    }
    if (length > pieceBytesMax) throw this.error(`has ${what} of ${length} bytes; the most is ${pieceBytesMax}`);
    if (length > windowBytes) return this.#read(offset, new Uint8Array(length));
    if (offset < this.#windowStart || offset + length > this.#windowEnd) {
      const filled = this.#read(offset, this.#window.subarray(0, Math.min(windowBytes, this.size - offset)));
      this.#windowStart = offset;
      this.#windowEnd = offset + filled.byteLength;
    }
    return this.#window.subarray(offset - this.#windowStart, offset - this.#windowStart + length);
  }

  byteAt(offset: number): number {
    if (offset >= this.#windowStart && offset < this.#windowEnd) return this.#window[offset - this.#windowStart] ?? 0;
    return this.bytes(offset, 1, 'a byte')[0] ?? 0;
  }

  error(reason: string): ModelFileError {
    return new ModelFileError(`${this.name} ${reason}`);
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  #read(offset: number, into: Uint8Array): Uint8Array {
    let done = 0;
    while (done < into.byteLength) {
      const count = readSync(this.#descriptor, into, done, into.byteLength - done, offset + done);
      if (count === 0) throw this.error('became shorter while it was read');
      done += count;
    }
    return into;
  }
}
