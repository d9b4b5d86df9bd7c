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
  readonly #windowView = new DataView(this.#window.buffer);
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
    this.#check(offset, length, what);
    if (length > pieceBytesMax) throw this.error(`has ${what} of ${length} bytes; the most is ${pieceBytesMax}`);
    if (length > windowBytes) return this.#read(offset, new Uint8Array(length));
    const start = this.#inWindow(offset, length);
    return this.#window.subarray(start, start + length);
  }

  /** 32 bits at `offset` in little-endian order, read without a view of their own: a header has a length for each token. */
  u32At(offset: number, what: string): number {
    this.#check(offset, 4, what);
    return this.#windowView.getUint32(this.#inWindow(offset, 4), true);
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

  #check(offset: number, length: number, what: string): void {
    if (offset >= 0 && length >= 0 && offset + length <= this.size) return;
    throw this.error(`ends at byte ${this.size}, inside ${what}`);
  }

  /** Where bytes of the file lie in the window, which is moved to them where it lacks some. */
  #inWindow(offset: number, length: number): number {
    if (offset < this.#windowStart || offset + length > this.#windowEnd) {
      const filled = this.#read(offset, this.#window.subarray(0, Math.min(windowBytes, this.size - offset)));
      this.#windowStart = offset;
      this.#windowEnd = offset + filled.byteLength;
    }
    return offset - this.#windowStart;
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
