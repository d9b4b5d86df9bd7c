import { constants, promises as fs } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { assert } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type Creation, isObjectName, type ObjectStore, type ObjectWriter } from './object-store.ts';
import { SteadyFile } from './steady-file.ts';

/** A folder below the root of a connection. Symbolic links may not lead out of the root, and objects are none. */
export class FolderStore implements ObjectStore {
  readonly #root: string;
  readonly #folder: string;
  /** Tells the unfinished files of this process from those of others. */
  readonly #nonce = crypto.randomUUID();
  /** New folders on their way to the disk: an object is durable once the folders above it are. */
  #folders: Promise<unknown> = Promise.resolve();

  /** Both absolute; the folder is made when something is first written. */
  constructor(root: string, folder: string) {
    this.#root = root;
    this.#folder = folder;
  }

  async open(name: string): Promise<ObjectWriter> {
    const path = await this.#prepared(name);
    const partial = `${path}.${this.#nonce}.partial`;
    const file = await failing(() => openNew(partial));
    return {
      write: (bytes) => failing(() => file.write(bytes)),
      // Its name becomes durable with that of the manifest that is created in its folder.
      close: () => failing(() => this.#publish(file, partial, path)).then(() => undefined),
      abort: () => this.#discard(file, partial),
    };
  }

  async create(name: string, bytes: Uint8Array): Promise<Creation> {
    const path = await this.#prepared(name);
    const partial = `${path}.${this.#nonce}.partial`;
    return failing(async () => {
      const file = await openNew(partial);
      try {
        await file.write(bytes);
      } catch (error) {
        await this.#discard(file, partial);
        throw error;
      }
      const creation = await this.#publish(file, partial, path);
      // The object is there, and may be gone after a crash.
      await failing(() => syncFolder(dirname(path)), { isUnknown: true });
      return creation;
    });
  }

  async read(name: string, from: number, to: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const path = await this.#contained(name);
    if (path === undefined) return undefined;
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await failing(() => fs.open(path, flags).catch(missing));
    if (!file) return undefined;
    try {
      return await failing(async () => {
        const status = await file.stat();
        if (!status.isFile()) throw notAFile(name);
        const bytes = new Uint8Array(Math.max(0, Math.min(to, status.size) - from));
        const { bytesRead } = await file.read(bytes, 0, bytes.byteLength, from);
        return bytes.subarray(0, bytesRead);
      });
    } finally {
      await file.close();
    }
  }

  async list({ prefix, after, limit }: { prefix: string; after: string; limit: number }) {
    const folder = await this.#existing(this.#folder);
    const entries = folder === undefined ? [] : await failing(() => fs.readdir(folder, { withFileTypes: true }));
    const names = entries
      .filter((entry) => entry.isFile() && isObjectName(entry.name))
      .map(({ name }) => name)
      .filter((name) => name.startsWith(prefix) && name > after && !name.endsWith('.partial'))
      .sort();
    return { names: names.slice(0, limit), more: names.length > limit };
  }

  async remove(name: string): Promise<void> {
    const path = await this.#contained(name);
    if (path === undefined) return;
    await failing(() => fs.rm(path, { force: true }));
    // The folder of an attempt goes with its last file; those of others are not empty.
    if (name.includes('/')) await fs.rmdir(dirname(path)).catch(() => undefined);
  }

  /** A link instead of a rename, because a rename would replace what is there. */
  async #publish(file: SteadyFile, partial: string, path: string): Promise<Creation> {
    let creation: Creation;
    try {
      await file.finish();
      await this.#folders;
      creation = await fs.link(partial, path).then(
        () => 'created' as const,
        (error: unknown) => {
          if (codeOf(error) === 'EEXIST') return 'exists' as const;
          throw error;
        },
      );
    } catch (error) {
      await this.#discard(file, partial);
      throw error;
    }
    // The object is there, also where its other name stays.
    await fs.rm(partial, { force: true }).catch(() => undefined);
    return creation;
  }

  /** Lets go of an unfinished file, as far as that is possible. */
  async #discard(file: SteadyFile, partial: string): Promise<void> {
    await this.#folders.catch(() => undefined);
    await file.abandon();
    await fs.rm(partial, { force: true }).catch(() => undefined);
  }

  /** The path of an object to be written, its folders made. */
  async #prepared(name: string): Promise<string> {
    assert(isObjectName(name), 'an object of a name that a backup does not give');
    const folder = dirname(join(this.#folder, name));
    await this.#existing(folder);
    const made = await failing(() => fs.mkdir(folder, { recursive: true, mode: 0o700 }));
    const real = await this.#existing(folder);
    if (real === undefined) throw outside();
    if (made !== undefined) {
      this.#folders = Promise.all([this.#folders, syncAbove(folder, made)]);
      // A failure is thrown where an object is published.
      this.#folders.catch(() => undefined);
    }
    return join(real, name.slice(name.lastIndexOf('/') + 1));
  }

  async #contained(name: string): Promise<string | undefined> {
    if (!isObjectName(name)) return undefined;
    const path = join(this.#folder, name);
    const folder = await this.#existing(dirname(path));
    return folder === undefined ? undefined : join(folder, path.slice(path.lastIndexOf('/') + 1));
  }

  /** The real path of a folder, which must lie within the root; undefined when it does not exist. */
  async #existing(folder: string): Promise<string | undefined> {
    const root = await failing(() => fs.realpath(this.#root));
    const real = await failing(() => fs.realpath(folder).catch(missing));
    if (real === undefined) {
      // The root exists, so the way up ends there. What is there already must lie within before more is made.
      await this.#existing(dirname(folder));
      return undefined;
    }
    if (real === root || real.startsWith(root.endsWith(sep) ? root : root + sep)) return real;
    throw outside();
  }
}

async function openNew(path: string): Promise<SteadyFile> {
  return new SteadyFile(await fs.open(path, 'wx', 0o600));
}

/** Makes new folders durable, from `folder` up to the first that was made: a folder is there when the one above it says so. */
async function syncAbove(folder: string, made: string): Promise<void> {
  for (let each = folder; each !== dirname(made); each = dirname(each)) await syncFolder(dirname(each));
}

async function syncFolder(path: string): Promise<void> {
  const folder = await fs.open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function missing(error: unknown): undefined {
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
  throw error;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function outside(): ServiceError {
  return new ServiceError('forbidden', 'the location leads out of the root of its connection');
}

function notAFile(name: string): ServiceError {
  return new ServiceError('backup_corrupted', `"${name}" of the backup is not a file`);
}

async function failing<Result>(work: () => Promise<Result>, details: Record<string, unknown> = {}): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const code = codeOf(error);
    if (code === 'ELOOP') throw new ServiceError('backup_corrupted', 'a file of the backup is a symbolic link');
    const full = code === 'ENOSPC' || code === 'EDQUOT';
    const message = full ? 'the disk of the location is full' : 'the location cannot be read or written';
    throw new ServiceError('location_unavailable', `${message}; make it usable and try again`, {
      cause: error,
      details: { ...details, reason: String(code) },
    });
  }
}
