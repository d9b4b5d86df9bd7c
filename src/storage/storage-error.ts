import { SQLiteError } from 'bun:sqlite';
import { rmSync } from 'node:fs';
import { ServiceError } from '../protocol/service-error.ts';
import { writeSynced } from './directory/synced-file.ts';

export function isSqliteError(error: unknown): boolean {
  return error instanceof SQLiteError;
}

/** Bytes that a probe writes: more than a file system keeps inside an inode. */
const probeBytes = 8_192;

/**
 * Translates a failed statement, commit or file operation for callers. `probePath` is a file beside the database that
 * may be written to find out why: SQLite does not tell a read-only file system from a broken disk.
 */
export function translateStorageError(error: unknown, probePath: string, file = 'a data file'): unknown {
  if (!(error instanceof SQLiteError)) return translateFileError(error);
  const code = error.code ?? '';
  // The memory that connections share is a file that grows when a database is opened.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE') return insufficientStorage(error);
  if (code.startsWith('SQLITE_READONLY')) return readOnly(error);
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') {
    return new ServiceError('data_corrupted', `${file} is damaged; run "sundew check"`, { cause: error });
  }
  if (code === 'SQLITE_CANTOPEN' || code === 'SQLITE_NOMEM') {
    return new ServiceError('unavailable', `${file} cannot be opened now; try again`, { cause: error });
  }
  if (code.startsWith('SQLITE_IOERR'))
    return code === 'SQLITE_IOERR_FSYNC' ? storageFailed(error) : probe(error, probePath);
  return error;
}

/** The file that is read, and what hears of damage in it. */
export interface ReadSource {
  /** For people, such as "range 7". */
  readonly name: string;
  /** Undefined for the catalog. */
  readonly rangeId?: number;
  fileDamaged?(): void;
  /** A document or a vector of this key does not match its checksum. */
  documentDamaged?(key: string): void;
}

/**
 * Runs a read on the calling thread and translates its failure. A read that fails condemns nothing: the writer decides
 * whether the disk has failed.
 */
export function reading<Result>(source: ReadSource, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SQLiteError)) throw error;
    const code = error.code ?? '';
    const { name, rangeId } = source;
    const options = { cause: error, ...(rangeId === undefined ? {} : { details: { range_id: rangeId } }) };
    if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_IOERR')) {
      source.fileDamaged?.();
      throw new ServiceError('data_corrupted', `${name} cannot be read; run "sundew check"`, options);
    }
    throw new ServiceError('unavailable', `${name} cannot be read now; try again`, options);
  }
}

/** The error of a row that does not match its checksum, which the source is told of. `what`: document or vector. */
export function damagedRow(source: ReadSource, what: string, key: string): ServiceError {
  source.documentDamaged?.(key);
  const details = { key, ...(source.rangeId === undefined ? {} : { range_id: source.rangeId }) };
  return new ServiceError('data_corrupted', `${what} "${key}" does not match its checksum`, { details });
}

/** Directories are made and files removed without SQLite; other errors than those of files pass unchanged. */
function translateFileError(error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && 'errno' in error)) return error;
  return error.code === 'EIO' ? storageFailed(error) : (meaningOf(error.code, error) ?? error);
}

function probe(error: SQLiteError, path: string): ServiceError {
  return meaningOf(writeFailure(path), error) ?? storageFailed(error);
}

/** The meaning of an error number's name, where it is not the disk's own fault. */
function meaningOf(name: unknown, cause: Error): ServiceError | undefined {
  switch (name) {
    case 'ENOSPC':
    case 'EDQUOT':
      return insufficientStorage(cause);
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return readOnly(cause);
    case 'EMFILE':
    case 'ENFILE':
      return new ServiceError('unavailable', 'the process has no file descriptors left; try again', { cause });
    default:
      return undefined;
  }
}

/** The error number with which a small synced write at `path` fails; undefined when it works. */
function writeFailure(path: string): string | undefined {
  try {
    writeSynced(path, 'w', new Uint8Array(probeBytes));
    rmSync(path, { force: true });
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  }
}

export function insufficientStorage(cause?: unknown): ServiceError {
  return new ServiceError('insufficient_storage', 'the disk is full; nothing of this request was written', { cause });
}

function readOnly(cause: unknown): ServiceError {
  return new ServiceError('read_only', 'the data directory cannot be written', { cause });
}

function storageFailed(cause: unknown): ServiceError {
  return new ServiceError('storage_failed', 'the disk failed; the server stops and recovers at its next start', {
    cause,
  });
}
