/** Writers of small hostile model files, byte by byte. */

export class GgufBytes {
  readonly #bytes: number[] = [];

  constructor(version = 3, tensors: bigint | number = 0, entries: bigint | number = 0) {
    this.text('GGUF').u32(version).u64(tensors).u64(entries);
  }

  text(text: string): this {
    this.#bytes.push(...new TextEncoder().encode(text));
    return this;
  }

  u32(value: number): this {
    return this.#number(4, (view) => view.setUint32(0, value, true));
  }

  u64(value: bigint | number): this {
    return this.#number(8, (view) => view.setBigUint64(0, BigInt(value), true));
  }

  /** A text with its length in front. */
  string(text: string): this {
    return this.u64(new TextEncoder().encode(text).byteLength).text(text);
  }

  tensor(name: string, shape: readonly (bigint | number)[], type: number, offset: bigint | number): this {
    this.string(name).u32(shape.length);
    for (const size of shape) this.u64(size);
    return this.u32(type).u64(offset);
  }

  /** The header, zeros up to the next alignment and `weights` zeros. */
  file(weights = 0): Uint8Array {
    const start = Math.ceil(this.#bytes.length / 32) * 32;
    const bytes = new Uint8Array(start + weights);
    bytes.set(this.#bytes);
    return bytes;
  }

  #number(length: number, write: (view: DataView) => void): this {
    const bytes = new Uint8Array(length);
    write(new DataView(bytes.buffer));
    this.#bytes.push(...bytes);
    return this;
  }
}

export type Field = readonly [number: number, value: number | bigint | string | Uint8Array];

/** A protocol buffer message of `[field number, value]` pairs: numbers as varints, the rest with its length in front. */
export function message(...fields: readonly Field[]): Uint8Array {
  const bytes: number[] = [];
  for (const [number, value] of fields) {
    if (typeof value === 'number' || typeof value === 'bigint') {
      bytes.push(...varint(number * 8), ...varint(value));
      continue;
    }
    const content = typeof value === 'string' ? new TextEncoder().encode(value) : value;
    bytes.push(...varint(number * 8 + 2), ...varint(content.byteLength), ...content);
  }
  return Uint8Array.from(bytes);
}

export function varint(value: number | bigint): number[] {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return [...bytes, Number(rest)];
}
