import { lstatSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import type { BoundedFile } from './bounded-file.ts';
import type { ProtobufField, ProtobufReader } from './protobuf-reader.ts';

const nameBytesMax = 4_096;
const dimensionsMax = 32;
const stringType = 8;
const externalLocation = 1;

/** Bits of an element by the ONNX number of its type. */
const elementBits: Readonly<Record<number, number>> = {
  1: 32,
  2: 8,
  3: 8,
  4: 16,
  5: 16,
  6: 32,
  7: 64,
  9: 8,
  10: 16,
  11: 64,
  12: 32,
  13: 64,
  14: 64,
  15: 128,
  16: 16,
  17: 8,
  18: 8,
  19: 8,
  20: 8,
  21: 4,
  22: 4,
  23: 4,
};

/** Fields of a tensor that hold its elements in a typed list, with the least bytes that an element takes there. */
const typedLists: Readonly<Record<number, number>> = { 4: 4, 5: 1, 6: 1, 7: 1, 10: 8, 11: 1 };

export interface OnnxTensor {
  readonly name: string;
  readonly elements: number;
}

interface External {
  location: string;
  offset: number;
  length: number | undefined;
}

/** Reads tensors without their elements and checks that the elements are there. */
export class TensorReader {
  readonly #file: BoundedFile;
  readonly #reader: ProtobufReader;
  readonly #directory: string;
  /** Size of each external file that has been looked at. */
  readonly #external = new Map<string, number>();

  constructor(file: BoundedFile, reader: ProtobufReader, path: string) {
    this.#file = file;
    this.#reader = reader;
    this.#directory = dirname(path);
  }

  externalFiles(): string[] {
    return [...this.#external.keys()];
  }

  read(message: ProtobufField): OnnxTensor {
    const shape: number[] = [];
    let name = '';
    let type = 0;
    let rawBytes: number | undefined;
    let roomFor = 0;
    let isExternal = false;
    const external: External = { location: '', offset: 0, length: undefined };
    for (const field of this.#reader.fields(message.start, message.end, 'a tensor')) {
      const leastBytes = typedLists[field.number];
      if (field.number === 1) this.#reader.integers(field, shape, 'a shape', dimensionsMax);
      else if (field.number === 2) type = field.value;
      else if (field.number === 8) name = this.#reader.text(field, 'a tensor name', nameBytesMax);
      else if (field.number === 9) rawBytes = field.end - field.start;
      else if (field.number === 6 && type === stringType) roomFor += 1;
      else if (field.number === 13) this.#externalEntry(field, external);
      else if (field.number === 14) isExternal = field.value === externalLocation;
      else if (leastBytes !== undefined) roomFor += field.delimited ? (field.end - field.start) / leastBytes : 1;
    }
    const elements = shape.reduce((product, size) => product * size, 1);
    if (!Number.isSafeInteger(elements) || shape.some((size) => size < 0)) {
      throw this.#file.error(`has the tensor "${name}" of the impossible shape ${shape.join(' x ')}`);
    }
    const bytes = this.#bytesOf(name, type, elements);
    if (isExternal) this.#checkExternal(name, external, bytes);
    else if (rawBytes !== undefined ? rawBytes !== bytes : roomFor < elements) {
      throw this.#file.error(`has the tensor "${name}" with another number of elements than its shape`);
    }
    return { name, elements };
  }

  #bytesOf(name: string, type: number, elements: number): number {
    if (type === stringType) return 0;
    const bits = elementBits[type];
    if (bits === undefined) throw this.#file.error(`has the tensor "${name}" of the unknown type ${type}`);
    return Math.ceil((elements * bits) / 8);
  }

  #externalEntry(message: ProtobufField, external: External): void {
    let key = '';
    let value = '';
    for (const field of this.#reader.fields(message.start, message.end, 'external weights')) {
      if (field.number === 1) key = this.#reader.text(field, 'external weights', nameBytesMax);
      if (field.number === 2) value = this.#reader.text(field, 'external weights', nameBytesMax);
    }
    if (key === 'location') external.location = value;
    if (key !== 'offset' && key !== 'length') return;
    if (!/^\d{1,15}$/.test(value)) throw this.#file.error(`has external weights with the ${key} "${value}"`);
    external[key] = Number(value);
  }

  #checkExternal(name: string, { location, offset, length }: External, bytes: number): void {
    const size = this.#external.get(location) ?? this.#openExternal(name, location);
    const wanted = length ?? bytes;
    if (wanted !== bytes || offset + wanted > size) {
      throw this.#file.error(`has the tensor "${name}" outside ${location}, which holds ${size} bytes`);
    }
  }

  /** Weights lie in the model's own directory or below it, in a file, not behind a link. */
  #openExternal(name: string, location: string): number {
    const segments = location.split('/');
    const escapes = isAbsolute(location) || /[\\:\0]/.test(location) || segments.some((each) => /^\.{0,2}$/.test(each));
    if (escapes) throw this.#file.error(`keeps the tensor "${name}" outside its directory, at "${location}"`);
    const path = join(this.#directory, location);
    const linked = segments.some((_, at) => {
      const part = join(this.#directory, ...segments.slice(0, at + 1));
      return lstatSync(part, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
    });
    const stat = linked ? undefined : statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || !stat.isFile()) {
      throw this.#file.error(`keeps the tensor "${name}" in ${location}, which is not beside it`);
    }
    this.#external.set(location, stat.size);
    return stat.size;
  }
}
