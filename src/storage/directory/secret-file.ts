import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ServiceError } from '../../protocol/service-error.ts';
import { writeDurably } from './durable-file.ts';

/** A file larger than this is not one of secrets. */
const fileBytesMax = 32 * 1024 * 1024;

/** The file of the secrets in a data directory. */
export function secretFileIn(directory: string): string {
  return join(resolve(directory), 'secret-store.json');
}

/** The file that secrets are kept in, readable by its owner alone when it is written here. */
export class SecretFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Changes whenever the file does; undefined where there is none. */
  stamp(): string | undefined {
    const facts = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    return facts === undefined ? undefined : `${facts.mtimeNs}-${facts.ctimeNs}-${facts.ino}`;
  }

  /** The text of the file. */
  read(): string {
    const { size } = statSync(this.#path);
    if (size > fileBytesMax) throw new Error(`the file has ${size} bytes; it may have ${fileBytesMax}`);
    return readFileSync(this.#path, 'utf8');
  }

  /** Whether others than the owner may read the file. */
  isOpenToOthers(): boolean {
    const facts = statSync(this.#path, { throwIfNoEntry: false });
    return facts !== undefined && (facts.mode & 0o077) !== 0;
  }

  /** Replaces the file whole. Throws `limit_exceeded`, `insufficient_storage`, `read_only` and `unavailable`. */
  write(text: string): void {
    if (Buffer.byteLength(text) > fileBytesMax) {
      const message = `the file of secrets would have more than ${fileBytesMax} bytes; delete some, or shorten their values`;
      throw new ServiceError('limit_exceeded', message);
    }
    try {
      writeDurably(this.#path, text, 0o600);
    } catch (error) {
      throw this.#refusal(error, text);
    }
  }

  #refusal(cause: unknown, text: string): unknown {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
    if (code === '') return cause;
    if (this.#holds(text)) {
      const message = 'the secret was changed, and a loss of power may undo that; send it again';
      return new ServiceError('unavailable', message, { cause });
    }
    if (['ENOSPC', 'EDQUOT'].includes(code)) {
      return new ServiceError('insufficient_storage', 'the disk is full; the secret was not changed', { cause });
    }
    if (['EROFS', 'EACCES', 'EPERM', 'ENOENT', 'ENOTDIR', 'EBUSY', 'EIO'].includes(code)) {
      const details = { directory: dirname(this.#path) };
      const message = 'the file of secrets cannot be written; the secret was not changed';
      return new ServiceError('read_only', message, { cause, details });
    }
    const message = 'the file of secrets cannot be written now; the secret was not changed';
    return new ServiceError('unavailable', message, { cause });
  }

  /** The file was replaced before the failure: only the sync of its directory is missing. */
  #holds(text: string): boolean {
    try {
      return this.read() === text;
    } catch {
      return false;
    }
  }
}
