import { type Region, RegionWriter, readRegion } from './memory-file.ts';

/** Where a large array lies that a message does not carry itself, and where in the message it belongs. */
export interface PlacedArray extends Region {
  readonly path: readonly string[];
  readonly numbers: 'bytes' | 'floats';
}

/** Places of the two files among those that a child inherits. */
export const memoryFilesOfChild = { incoming: 3, outgoing: 4 } as const;
/** Arrays up to this size are quicker within the message. */
const inlineBytesMax = 64 * 1024;

/**
 * Takes large arrays of bytes and floats out of messages and passes them in memory that two processes see: a pipe carries
 * little at a time and wakes both sides for each piece. What finds no place there stays in its message.
 */
export class LargeArrays {
  readonly #writer: RegionWriter;
  readonly #incoming: number;

  /** `outgoing` is the file that the other side has as `incoming`. */
  constructor(outgoing: number, incoming: number) {
    this.#writer = new RegionWriter(outgoing);
    this.#incoming = incoming;
  }

  /** The message without its large arrays, and where those lie until `free` is called. */
  lift(message: unknown): { message: unknown; arrays?: readonly PlacedArray[] } {
    const arrays: PlacedArray[] = [];
    const rest = lift(message, [], this.#writer, arrays);
    return arrays.length === 0 ? { message } : { message: rest, arrays };
  }

  /** Puts arrays that came into the message that they were taken out of. Throws where there is no such place. */
  place(message: unknown, arrays: readonly PlacedArray[]): void {
    for (const { path, numbers, ...region } of arrays) {
      const bytes = readRegion(this.#incoming, region);
      const holder = path.slice(0, -1).reduce(member, message) as Record<string, unknown>;
      const name = path.at(-1) ?? '';
      member(holder, name);
      holder[name] = numbers === 'bytes' ? bytes : new Float32Array(bytes.buffer);
    }
  }

  /** The other side has read them. */
  free(arrays: readonly PlacedArray[]): void {
    for (const { at } of arrays) this.#writer.free(at);
  }
}

function lift(value: unknown, path: readonly string[], writer: RegionWriter, arrays: PlacedArray[]): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value)) return liftArray(value, path, writer, arrays);
  // Lists of texts and tokens are not walked.
  if (Array.isArray(value)) {
    return typeof value[0] === 'object'
      ? value.map((each, at) => lift(each, [...path, String(at)], writer, arrays))
      : value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, lift(each, [...path, name], writer, arrays)]),
  );
}

function liftArray(array: ArrayBufferView, path: readonly string[], writer: RegionWriter, arrays: PlacedArray[]) {
  const isBytes = array instanceof Uint8Array;
  if (array.byteLength <= inlineBytesMax || !(isBytes || array instanceof Float32Array)) return array;
  const region = writer.write(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  if (region === undefined) return array;
  arrays.push({ path, numbers: isBytes ? 'bytes' : 'floats', ...region });
  return null;
}

/** Regions that the other process names must be the message's own. */
function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) {
    throw new Error(`the message has no place "${name}"`);
  }
  return (value as Record<string, unknown>)[name];
}
