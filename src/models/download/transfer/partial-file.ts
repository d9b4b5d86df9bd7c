import { closeSync, existsSync, fsync, openSync, rmSync, statSync, truncateSync } from 'node:fs';
import { promisify } from 'node:util';
import { writeWhole } from '../../../storage/directory/synced-file.ts';
import { DownloadError, DownloadStopped } from './download-error.ts';

/** The size and digest of a whole file. */
export interface WantedFile {
  readonly bytes: number;
  readonly digest: FileDigest;
}

/** Hexadecimal. `git` is the SHA-1 that git gives a file: over a head with its length, and its bytes. */
export type FileDigest = { readonly sha256: string } | { readonly git: string };

/** Appends all of the bytes to an open file. Throws what the system throws. */
export type WriteBytes = (descriptor: number, bytes: Uint8Array) => void;

/**
 * A file in quarantine that grows as its bytes arrive. What an earlier attempt left is hashed again and kept, so that
 * only the rest need be fetched.
 */
export class PartialFile implements Disposable {
  readonly wanted: WantedFile;
  readonly path: string;
  readonly #write: WriteBytes;
  #hashers: Hashers;
  #descriptor: number;
  #received = 0;

  private constructor(path: string, wanted: WantedFile, write: WriteBytes) {
    this.path = path;
    this.wanted = wanted;
    this.#write = write;
    this.#hashers = hashersOf(wanted);
    this.#descriptor = openSync(path, 'a', 0o644);
  }

  static async open(path: string, wanted: WantedFile, write: WriteBytes = writeWhole): Promise<PartialFile> {
    if (existsSync(path) && statSync(path).size > wanted.bytes) rmSync(path);
    const file = new PartialFile(path, wanted, write);
    for await (const piece of Bun.file(path).stream()) {
      update(file.#hashers, piece);
      file.#received += piece.byteLength;
    }
    return file;
  }

  get received(): number {
    return this.#received;
  }

  get isComplete(): boolean {
    return this.#received === this.wanted.bytes;
  }

  write(bytes: Uint8Array): void {
    if (this.#received + bytes.byteLength > this.wanted.bytes) {
      this.reset();
      throw new DownloadError(`there are more than the ${this.wanted.bytes} bytes that the file has`);
    }
    try {
      this.#write(this.#descriptor, bytes);
    } catch (cause) {
      this.#forgetTorn();
      const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
      const full = code === 'ENOSPC' || code === 'EDQUOT';
      const reason = full ? 'the disk is full; make room and pull again' : `the disk cannot be written (${code})`;
      throw new DownloadStopped(`${reason}; what has arrived is kept`, { cause });
    }
    update(this.#hashers, bytes);
    this.#received += bytes.byteLength;
  }

  /** Forgets what has arrived. */
  reset(): void {
    truncateSync(this.path, 0);
    this.#hashers = hashersOf(this.wanted);
    this.#received = 0;
  }

  /** Makes a complete file durable, once its bytes are the right ones; wrong ones are thrown away. Answers its SHA-256. */
  async finish(): Promise<string> {
    if (!this.isComplete) {
      throw new DownloadError(`only ${this.#received} of ${this.wanted.bytes} bytes arrived`);
    }
    const sha256 = this.#hashers.sha256.digest('hex');
    const found = this.#hashers.git?.digest('hex') ?? sha256;
    if (found !== digestText(this.wanted.digest)) {
      this.reset();
      throw new DownloadError(`the bytes are not those that were expected (their digest is ${found})`);
    }
    await promisify(fsync)(this.#descriptor);
    return sha256;
  }

  /** A write that failed may have left a part behind that the hash does not know. */
  #forgetTorn(): void {
    truncateSync(this.path, this.#received);
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

export function digestText(digest: FileDigest): string {
  return 'git' in digest ? digest.git : digest.sha256;
}

interface Hashers {
  readonly sha256: Bun.CryptoHasher;
  readonly git: Bun.CryptoHasher | undefined;
}

function hashersOf({ bytes, digest }: WantedFile): Hashers {
  const git = 'git' in digest ? new Bun.CryptoHasher('sha1').update(`blob ${bytes}\0`) : undefined;
  return { sha256: new Bun.CryptoHasher('sha256'), git };
}

function update({ sha256, git }: Hashers, bytes: Uint8Array): void {
  sha256.update(bytes);
  git?.update(bytes);
}
