import { BoundedFile } from './bounded-file.ts';
import { blockOf } from './gguf-types.ts';

/** Source of the layout: the GGUF specification, versions 2 and 3 (little-endian). */
const magic = 0x46554747;
const valueSizes = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8] as const;
const stringType = 8;
const arrayType = 9;

const entriesMax = 65_536;
const tensorsMax = 65_536;
const keyBytesMax = 1_024;
const arrayItemsMax = 4_194_304;
/** Longer texts are stepped over; no name or chat template of a model is that long. */
const keptTextBytesMax = 1024 * 1024;
const keptBytesMax = 16 * 1024 * 1024;
const tensorNameBytesMax = 63;
const dimensionsMax = 4;

export interface GgufHeader {
  readonly version: number;
  /** Numbers, flags and texts by their key; 64-bit integers beyond 2^53 are left out. */
  readonly values: ReadonlyMap<string, string | number | boolean>;
  /** Items of each array by its key; the items themselves are checked and left where they are. */
  readonly arrays: ReadonlyMap<string, number>;
  readonly tensors: number;
  /** Weights in all, and the bytes that they take. */
  readonly parameters: number;
  readonly weightBytes: number;
  /** The same bytes by the name of their type. */
  readonly typeBytes: ReadonlyMap<string, number>;
}

interface TensorExtent {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

interface TensorRead extends TensorExtent {
  readonly elements: number;
  readonly type: string;
}

/**
 * Reads the header of a GGUF file and checks every count, size and offset in it against the file, without its weights.
 * Throws `ModelFileError` at the first thing that a loader could trip over.
 */
export function readGgufHeader(path: string): GgufHeader {
  using file = new BoundedFile(path);
  return new GgufReader(file).read();
}

class GgufReader {
  readonly #file: BoundedFile;
  readonly #values = new Map<string, string | number | boolean>();
  readonly #arrays = new Map<string, number>();
  #position = 0;
  #keptBytes = 0;

  constructor(file: BoundedFile) {
    this.#file = file;
  }

  read(): GgufHeader {
    if (this.#file.size < 24 || this.#u32('the magic') !== magic) throw this.#file.error('is not a GGUF file');
    const version = this.#u32('the version');
    if (version !== 2 && version !== 3) {
      throw this.#file.error(`has GGUF version ${version}; versions 2 and 3 in little-endian order can be read`);
    }
    const tensors = this.#count('tensors', tensorsMax, 28);
    const entries = this.#count('metadata entries', entriesMax, 13);
    for (let each = 0; each < entries; each += 1) this.#entry();
    this.#checkVocabulary();
    const splits = this.#values.get('split.count');
    if (typeof splits === 'number' && splits > 1) {
      throw this.#file.error(`is one of ${splits} parts of a split model; merge the parts into one file first`);
    }
    return { version, values: this.#values, arrays: this.#arrays, tensors, ...this.#tensors(tensors) };
  }

  /** Loaders read what belongs to a token at the token's own place. */
  #checkVocabulary(): void {
    const tokens = this.#arrays.get('tokenizer.ggml.tokens') ?? 0;
    for (const key of ['tokenizer.ggml.scores', 'tokenizer.ggml.token_type']) {
      const items = this.#arrays.get(key) ?? tokens;
      if (items !== tokens) throw this.#file.error(`has ${items} items of "${key}" for ${tokens} tokens`);
    }
  }

  #entry(): void {
    const key = this.#text('a key', keyBytesMax);
    if (this.#values.has(key) || this.#arrays.has(key)) throw this.#file.error(`has the key "${key}" twice`);
    const type = this.#u32(`the type of "${key}"`);
    if (type === arrayType) {
      this.#arrays.set(key, this.#array(key));
      return;
    }
    const value = this.#value(key, type);
    if (value === undefined) return;
    this.#keptBytes += key.length + (typeof value === 'string' ? value.length : 8);
    if (this.#keptBytes > keptBytesMax) throw this.#file.error('has more than 16 MiB of metadata texts');
    this.#values.set(key, value);
  }

  #value(key: string, type: number): string | number | boolean | undefined {
    if (type === stringType) {
      const length = this.#length(`"${key}"`);
      if (length <= keptTextBytesMax) return this.#utf8(length, `"${key}"`);
      this.#skip(length, `"${key}"`);
      return undefined;
    }
    const view = this.#view(this.#sizeOf(key, type), `"${key}"`);
    switch (type) {
      case 0:
        return view.getUint8(0);
      case 1:
        return view.getInt8(0);
      case 2:
        return view.getUint16(0, true);
      case 3:
        return view.getInt16(0, true);
      case 4:
        return view.getUint32(0, true);
      case 5:
        return view.getInt32(0, true);
      case 6:
        return view.getFloat32(0, true);
      case 7:
        return view.getUint8(0) !== 0;
      case 12:
        return view.getFloat64(0, true);
      default:
        return safeInteger(type === 10 ? view.getBigUint64(0, true) : view.getBigInt64(0, true));
    }
  }

  /** Steps over an array; every text in it must end inside the file. */
  #array(key: string): number {
    const type = this.#u32(`the type of "${key}"`);
    const itemBytes = type === stringType ? 8 : this.#sizeOf(key, type);
    const items = this.#count(`items of "${key}"`, arrayItemsMax, itemBytes);
    const what = `"${key}"`;
    if (type !== stringType) {
      this.#skip(items * itemBytes, what);
      return items;
    }
    const lengthOfIt = `the length of ${what}`;
    for (let each = 0; each < items; each += 1) this.#skip(this.#u64(lengthOfIt), what);
    return items;
  }

  #sizeOf(key: string, type: number): number {
    const size = valueSizes[type];
    if (size === undefined) throw this.#file.error(`has "${key}" of the unknown or nested type ${type}`);
    return size;
  }

  #tensors(count: number): Pick<GgufHeader, 'parameters' | 'weightBytes' | 'typeBytes'> {
    const alignment = this.#values.get('general.alignment') ?? 32;
    if (typeof alignment !== 'number' || alignment < 1 || alignment > 65_536 || (alignment & (alignment - 1)) !== 0) {
      throw this.#file.error(`has the alignment ${alignment}; it must be a power of two up to 65536`);
    }
    const extents: TensorExtent[] = [];
    const names = new Set<string>();
    let parameters = 0;
    let weightBytes = 0;
    const typeBytes = new Map<string, number>();
    for (let each = 0; each < count; each += 1) {
      const tensor = this.#tensor(alignment);
      if (names.has(tensor.name)) throw this.#file.error(`has the tensor "${tensor.name}" twice`);
      names.add(tensor.name);
      parameters += tensor.elements;
      const bytes = tensor.end - tensor.start;
      weightBytes += bytes;
      typeBytes.set(tensor.type, (typeBytes.get(tensor.type) ?? 0) + bytes);
      extents.push(tensor);
    }
    const dataStart = Math.ceil(this.#position / alignment) * alignment;
    this.#checkExtents(extents, Math.max(0, this.#file.size - dataStart));
    return { parameters, weightBytes, typeBytes };
  }

  #tensor(alignment: number): TensorRead {
    const name = this.#text('a tensor name', tensorNameBytesMax);
    const what = `tensor "${name}"`;
    const dimensions = this.#u32(what);
    if (dimensions < 1 || dimensions > dimensionsMax) {
      throw this.#file.error(`has ${what} of ${dimensions} dimensions; 1 to ${dimensionsMax} are possible`);
    }
    const shape = Array.from({ length: dimensions }, () => this.#u64(what));
    const elements = shape.reduce((product, size) => product * size, 1);
    if (elements < 1 || !Number.isSafeInteger(elements)) {
      throw this.#file.error(`has ${what} of the impossible shape ${shape.join(' x ')}`);
    }
    const type = this.#u32(what);
    const block = blockOf(type);
    if (block === undefined) throw this.#file.error(`has ${what} of the unknown type ${type}`);
    if ((shape[0] ?? 0) % block.elements !== 0) {
      throw this.#file.error(`has ${what} whose rows of ${shape[0]} do not fill blocks of ${block.elements}`);
    }
    const start = this.#u64(what);
    if (start % alignment !== 0)
      throw this.#file.error(`has ${what} at ${start}, which is not aligned to ${alignment}`);
    return { name, start, end: start + (elements / block.elements) * block.bytes, elements, type: block.name };
  }

  #checkExtents(extents: TensorExtent[], dataBytes: number): void {
    let before: TensorExtent | undefined;
    for (const extent of extents.sort((a, b) => a.start - b.start)) {
      if (extent.end > dataBytes) {
        throw this.#file.error(`has tensor "${extent.name}" up to byte ${extent.end} of ${dataBytes} bytes of weights`);
      }
      if (before !== undefined && extent.start < before.end) {
        throw this.#file.error(`has the tensors "${before.name}" and "${extent.name}" in the same place`);
      }
      before = extent;
    }
  }

  /** A number of things of at least `bytesEach`; the rest of the file must have room for them. */
  #count(what: string, most: number, bytesEach: number): number {
    const count = this.#u64(`the number of ${what}`);
    if (count > most) throw this.#file.error(`claims ${count} ${what}; the most is ${most}`);
    if (count * bytesEach > this.#file.size - this.#position) {
      throw this.#file.error(`claims ${count} ${what}, more than it has bytes for`);
    }
    return count;
  }

  #text(what: string, bytesMax: number): string {
    const length = this.#length(what);
    if (length < 1 || length > bytesMax) throw this.#file.error(`has ${what} of ${length} bytes; 1 to ${bytesMax} fit`);
    return this.#utf8(length, what);
  }

  #utf8(length: number, what: string): string {
    const bytes = this.#take(length, what);
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
      throw this.#file.error(`has ${what} that is not UTF-8`);
    }
  }

  #length(what: string): number {
    return this.#u64(`the length of ${what}`);
  }

  #u32(what: string): number {
    const value = this.#file.u32At(this.#position, what);
    this.#position += 4;
    return value;
  }

  /** Beyond what a double keeps it is the greatest number that a double does. */
  #u64(what: string): number {
    const low = this.#u32(what);
    return Math.min(this.#u32(what) * 2 ** 32 + low, Number.MAX_SAFE_INTEGER);
  }

  #view(length: number, what: string): DataView {
    const bytes = this.#take(length, what);
    return new DataView(bytes.buffer, bytes.byteOffset, length);
  }

  #take(length: number, what: string): Uint8Array {
    const bytes = this.#file.bytes(this.#position, length, what);
    this.#position += length;
    return bytes;
  }

  #skip(length: number, what: string): void {
    if (length > this.#file.size - this.#position) {
      throw this.#file.error(`ends at byte ${this.#file.size}, inside ${what}`);
    }
    this.#position += length;
  }
}

function safeInteger(value: bigint): number | undefined {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}
