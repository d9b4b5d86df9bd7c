/** An object that is being written; nobody can read it before it is closed. */
export interface ObjectWriter {
  /** The bytes are the caller's again when it resolves. */
  write(bytes: Uint8Array): Promise<void>;
  /** Its bytes are durable when it resolves; its name is, too, once another object was created in its folder. */
  close(): Promise<void>;
  /** Leaves nothing behind, as far as that is possible. */
  abort(): Promise<void>;
}

/** The outcome of creating an object. */
export type Creation = 'created' | 'exists';

/**
 * Where the files of backups are: a folder, or a prefix in a bucket. Names are of letters, digits, `.`, `_`, `-`, with
 * `/` between folders. What fails is `location_unavailable`; with `isUnknown` in its details nobody knows whether the
 * object is there.
 */
export interface ObjectStore {
  /** Replaces nothing: the names of a backup's payload are never given twice. */
  open(name: string): Promise<ObjectWriter>;
  /**
   * Writes a small object whole, unless there is one of its name. Durable when
   * it resolves, as is what was closed in its folder.
   */
  create(name: string, bytes: Uint8Array): Promise<Creation>;
  /** Bytes from `from` up to but not including `to`, fewer at the end of the object; undefined when there is none. */
  read(name: string, from: number, to: number): Promise<Uint8Array<ArrayBuffer> | undefined>;
  /** Names behind `after` that begin with `prefix`, in the order of their bytes, without folders; `more`: there may be others. */
  list(query: { prefix: string; after: string; limit: number }): Promise<{ names: string[]; more: boolean }>;
  /** Removes an object if it is there. */
  remove(name: string): Promise<void>;
}

const segment = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/** Whether a name is one that a backup gives: nothing of it can leave the location. */
export function isObjectName(name: string): boolean {
  return name.length <= 512 && name.split('/').every((each) => segment.test(each));
}

/** Reads a small object whole. Undefined when there is none; throws `RangeError` above `bytesMax`. */
export async function readWhole(
  store: ObjectStore,
  name: string,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const bytes = await store.read(name, 0, bytesMax + 1);
  if (bytes && bytes.byteLength > bytesMax) throw new RangeError(`"${name}" has more than ${bytesMax} bytes`);
  return bytes;
}
