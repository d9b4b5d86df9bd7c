import { assert } from '../assert.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads a payload piece by piece; every length is checked before it is used. */
export class PayloadReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Where the next `bytes` bytes begin; they are stepped over. */
  #take(bytes: number): number {
    const at = this.#at;
    assert(at + bytes <= this.#bytes.byteLength, 'the payload of a part ends too early');
    this.#at = at + bytes;
    return at;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  /** A number of items that follow, each of which has `bytesEach` bytes or more. */
  count(bytesEach: number): number {
    const count = this.u32();
    assert(this.#at + count * bytesEach <= this.#bytes.byteLength, 'the payload of a part ends too early');
    return count;
  }

  f32(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  /** A 64-bit integer that a double holds exactly. */
  i64(): number {
    const at = this.#take(8);
    return this.#view.getInt32(at + 4, true) * 2 ** 32 + this.#view.getUint32(at, true);
  }

  bytes(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#bytes.subarray(at, at + count);
  }

  text(bytes: number): string {
    return bytes === 0 ? '' : decoder.decode(this.bytes(bytes));
  }

  /** As `text`, in a tenth of the time where it is `guess` in ASCII. */
  textLike(guess: string, bytes: number): string {
    if (guess.length !== bytes || this.#at + bytes > this.#bytes.byteLength) return this.text(bytes);
    for (let index = 0; index < bytes; index += 1) {
      const unit = guess.charCodeAt(index);
      if (unit > 0x7f || unit !== this.#bytes[this.#at + index]) return this.text(bytes);
    }
    this.#at += bytes;
    return guess;
  }

  rest(): Uint8Array {
    return this.bytes(this.#bytes.byteLength - this.#at);
  }

  end(): void {
    assert(this.#at === this.#bytes.byteLength, 'the payload of a part is longer than its lengths say');
  }
}
