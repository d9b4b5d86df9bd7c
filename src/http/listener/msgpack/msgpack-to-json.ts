import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../../protocol/service-error.ts';

interface MsgpackOptions {
  /** Bytes of the JSON text. */
  readonly bytesMax: number;
  readonly depthMax: number;
}

/**
 * MessagePack values as JSON text, one a line, without building them. What is checked on JSON afterwards (duplicate
 * members, exact numbers, surrogates) is then checked for both. A binary value becomes the base64 of its bytes, the packed
 * form of vectors.
 *
 * Throws `invalid_request` for bytes that are no MessagePack or have no form in JSON, `json_too_deep` and
 * `payload_too_large`. Source: the MessagePack specification, github.com/msgpack/msgpack/blob/master/spec.md.
 */
export function msgpackToJson(bytes: Uint8Array, options: MsgpackOptions): Uint8Array {
  return new JsonWriter(bytes, options).write();
}

/** A map or an array that is not complete. Keys and values of a map count alike. */
interface Container {
  readonly isMap: boolean;
  readonly length: number;
  written: number;
}

class JsonWriter {
  readonly #in: Buffer;
  readonly #options: MsgpackOptions;
  readonly #open: Container[] = [];
  #out: Buffer;
  #position = 0;
  #written = 0;

  constructor(bytes: Uint8Array, options: MsgpackOptions) {
    this.#in = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#options = options;
    this.#out = Buffer.allocUnsafe(bytes.byteLength * 2 + 64);
  }

  write(): Uint8Array {
    while (this.#position < this.#in.length) {
      if (this.#open.length === 0 && this.#written > 0) this.#ascii('\n');
      this.#next();
    }
    if (this.#open.length > 0) throw endedEarly();
    return this.#out.subarray(0, this.#written);
  }

  /** Writes one value or the beginning of one, what separates it from the last, and the ends that it completes. */
  #next(): void {
    const type = this.#in[this.#skip(1)] ?? 0;
    const container = this.#open.at(-1);
    if (container !== undefined) {
      const isName = container.isMap && container.written % 2 === 0;
      if (isName && !isString(type)) throw invalid('the name of a member is not a string');
      if (container.written > 0) this.#ascii(container.isMap && !isName ? ':' : ',');
      container.written += 1;
    }
    this.#value(type);
    for (let open = this.#open.at(-1); open?.written === open?.length && open; open = this.#open.at(-1)) {
      this.#open.pop();
      this.#ascii(open.isMap ? '}' : ']');
    }
  }

  #value(type: number): void {
    if (type <= 0x7f) this.#ascii(String(type));
    else if (type <= 0x8f) this.#begin(true, type & 0x0f);
    else if (type <= 0x9f) this.#begin(false, type & 0x0f);
    else if (type <= 0xbf) this.#string(type & 0x1f);
    else if (type >= 0xe0) this.#ascii(String(type - 0x100));
    else if (type >= 0xd9 && type <= 0xdb) this.#string(this.#unsigned(1 << (type - 0xd9)));
    else if (type === 0xdc || type === 0xdd) this.#begin(false, this.#unsigned(type === 0xdc ? 2 : 4));
    else if (type === 0xde || type === 0xdf) this.#begin(true, this.#unsigned(type === 0xde ? 2 : 4));
    else if (type >= 0xc4 && type <= 0xc6) this.#binary(this.#unsigned(1 << (type - 0xc4)));
    else this.#ascii(this.#scalar(type));
  }

  #scalar(type: number): string {
    switch (type) {
      case 0xc0:
        return 'null';
      case 0xc2:
        return 'false';
      case 0xc3:
        return 'true';
      case 0xca:
        return decimal(this.#in.readFloatBE(this.#skip(4)));
      case 0xcb:
        return decimal(this.#in.readDoubleBE(this.#skip(8)));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return String(this.#unsigned(1 << (type - 0xcc)));
      case 0xcf:
        return String(this.#in.readBigUInt64BE(this.#skip(8)));
      case 0xd0:
      case 0xd1:
      case 0xd2: {
        const width = 1 << (type - 0xd0);
        return String(this.#in.readIntBE(this.#skip(width), width));
      }
      case 0xd3:
        return String(this.#in.readBigInt64BE(this.#skip(8)));
      default:
        throw invalid(`values of type 0x${type.toString(16)} are not supported`);
    }
  }

  #begin(isMap: boolean, count: number): void {
    if (this.#open.length >= this.#options.depthMax) {
      throw new ServiceError('json_too_deep', `the body nests deeper than ${this.#options.depthMax} levels`);
    }
    const length = isMap ? count * 2 : count;
    // Each takes a byte at least: a count beyond what is there is not waited for.
    if (length > this.#in.length - this.#position) throw endedEarly();
    this.#ascii(isMap ? '{' : '[');
    this.#open.push({ isMap, length, written: 0 });
  }

  #string(length: number): void {
    const start = this.#skip(length);
    const end = start + length;
    let isPlain = true;
    for (let at = start; at < end && isPlain; at += 1) {
      const byte = this.#in[at] ?? 0;
      isPlain = byte >= 0x20 && byte < 0x80 && byte !== 0x22 && byte !== 0x5c;
    }
    if (!isPlain) {
      const bytes = this.#in.subarray(start, end);
      if (!isUtf8(bytes)) throw invalid('a string is not UTF-8');
      const text = JSON.stringify(bytes.toString('utf8'));
      this.#reserve(Buffer.byteLength(text));
      this.#written += this.#out.write(text, this.#written, 'utf8');
      return;
    }
    this.#reserve(length + 2);
    this.#out[this.#written] = 0x22;
    this.#in.copy(this.#out, this.#written + 1, start, end);
    this.#out[this.#written + 1 + length] = 0x22;
    this.#written += length + 2;
  }

  #binary(length: number): void {
    const start = this.#skip(length);
    this.#ascii(`"${this.#in.toString('base64', start, start + length)}"`);
  }

  #ascii(text: string): void {
    this.#reserve(text.length);
    this.#written += this.#out.write(text, this.#written, 'latin1');
  }

  #unsigned(width: number): number {
    return this.#in.readUIntBE(this.#skip(width), width);
  }

  /** Moves on by `bytes`, and returns where they begin. */
  #skip(length: number): number {
    const start = this.#position;
    if (length > this.#in.length - start) throw endedEarly();
    this.#position = start + length;
    return start;
  }

  #reserve(length: number): void {
    const needed = this.#written + length;
    const { bytesMax } = this.#options;
    if (needed > bytesMax) {
      throw new ServiceError(
        'payload_too_large',
        `as JSON the body is larger than ${bytesMax} bytes, the limit of this route`,
      );
    }
    if (needed <= this.#out.length) return;
    const grown = Buffer.allocUnsafe(needed * 2);
    this.#out.copy(grown, 0, 0, this.#written);
    this.#out = grown;
  }
}

function isString(type: number): boolean {
  return (type >= 0xa0 && type <= 0xbf) || (type >= 0xd9 && type <= 0xdb);
}

/** Beyond 2^53 with its exponent: as digits alone it would be an integer, which a document may not have. */
function decimal(value: number): string {
  if (!Number.isFinite(value)) throw new ServiceError('number_out_of_range', 'a number is not finite');
  if (Math.abs(value) > 2 ** 53) return value.toExponential();
  return Object.is(value, -0) ? '-0.0' : String(value);
}

function invalid(reason: string): ServiceError {
  return new ServiceError('invalid_request', `the body is not MessagePack that can be read: ${reason}`);
}

function endedEarly(): ServiceError {
  return invalid('it ends in the middle of a value');
}
