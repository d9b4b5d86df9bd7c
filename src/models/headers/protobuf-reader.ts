import type { BoundedFile } from './bounded-file.ts';

/** One field of a message: where its value lies in the file, and its value where that is a number. */
export interface ProtobufField {
  readonly number: number;
  /** A varint as a signed 64-bit integer, rounded beyond 2^53; 0 for other kinds. */
  readonly value: number;
  readonly start: number;
  readonly end: number;
  /** True for texts, bytes, nested messages and packed lists. */
  readonly delimited: boolean;
}

/** Fields and packed numbers of one file: a file with more of them is not a model. */
const stepsMax = 50_000_000;
/** A varint of at most this many bytes is a safe integer. */
const safeVarintBytes = 7;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Walks messages of protocol buffers inside a file, never past the end of the message that they are in. */
export class ProtobufReader {
  readonly #file: BoundedFile;
  #position = 0;
  #steps = 0;

  constructor(file: BoundedFile) {
    this.#file = file;
  }

  /** The fields of the message in `[start, end)`. Throws `ModelFileError` where one does not fit. */
  *fields(start: number, end: number, what: string): Generator<ProtobufField> {
    let at = start;
    while (at < end) {
      this.#position = at;
      const tag = this.#varint(end, what);
      const number = Math.floor(tag / 8);
      const wire = tag % 8;
      if (number < 1) throw this.#broken(what);
      const value = wire === 0 ? this.#varint(end, what) : 0;
      const length = wire === 2 ? this.#varint(end, what) : wire === 1 ? 8 : wire === 5 ? 4 : 0;
      if (wire === 3 || wire === 4 || wire > 5) throw this.#broken(what);
      const from = this.#position;
      if (length < 0 || length > end - from) throw this.#file.error(`has ${what} with a field that runs past its end`);
      at = from + length;
      yield { number, value, start: from, end: at, delimited: wire === 2 };
    }
  }

  text(field: ProtobufField, what: string, bytesMax: number): string {
    const length = field.end - field.start;
    if (!field.delimited || length > bytesMax)
      throw this.#file.error(`has ${what} that is not a text of at most ${bytesMax} bytes`);
    try {
      return utf8.decode(this.#file.bytes(field.start, length, what));
    } catch {
      throw this.#file.error(`has ${what} that is not UTF-8`);
    }
  }

  /** Adds the integers of a field, packed or single. At most `most` of them in all. */
  integers(field: ProtobufField, into: number[], what: string, most: number): void {
    if (!field.delimited) into.push(field.value);
    else {
      this.#position = field.start;
      while (this.#position < field.end && into.length <= most) into.push(this.#varint(field.end, what));
    }
    if (into.length > most) throw this.#file.error(`has more than ${most} numbers in ${what}`);
  }

  #varint(end: number, what: string): number {
    this.#steps += 1;
    if (this.#steps > stepsMax) throw this.#file.error(`has more than ${stepsMax} fields`);
    const start = this.#position;
    let value = 0;
    let factor = 1;
    for (; this.#position < end && this.#position < start + safeVarintBytes; factor *= 128) {
      const byte = this.#next();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    let wide = BigInt(value);
    let shift = BigInt(7 * safeVarintBytes);
    for (; this.#position < end && this.#position < start + 10; shift += 7n) {
      const byte = this.#next();
      wide |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, wide));
    }
    throw this.#broken(what);
  }

  #next(): number {
    const byte = this.#file.byteAt(this.#position);
    this.#position += 1;
    return byte;
  }

  #broken(what: string) {
    return this.#file.error(`has ${what} that is not a protocol buffer message`);
  }
}
