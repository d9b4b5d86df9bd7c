import { SQLiteError } from 'bun:sqlite';
import { rmSync, truncateSync } from 'node:fs';
import { MiB } from '../lib/units.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { fileBytes } from './directory/disk-usage.ts';
import { writeSynced } from './directory/synced-file.ts';

export function isSqliteError(error: unknown): boolean {
  return error instanceof SQLiteError;
}

/** Bytes that a probe writes, and those that it leaves of them: more than a file system keeps inside an inode. */
const probeBytes = 8_192;
const cutProbeBytes = 4_096;
/** A file that may not grow by this many is taken for one that has reached the largest size of files. */
const growthBytes = 4 * MiB;

/** Bytes that were written before may be lost: nothing may be acknowledged any more. */
const failedSyncs: ReadonlySet<string> = new Set(['SQLITE_IOERR_FSYNC', 'SQLITE_IOERR_DIR_FSYNC']);
const failedReads: ReadonlySet<string> = new Set([
  'SQLITE_IOERR_READ',
  'SQLITE_IOERR_SHORT_READ',
  'SQLITE_IOERR_CORRUPTFS',
]);
/** A file could not be made smaller or removed, for which a file system that copies on write needs room. */
const failedCuts: ReadonlySet<string> = new Set(['SQLITE_IOERR_TRUNCATE', 'SQLITE_IOERR_DELETE']);

/** Errors of the system after which the same call may work a moment later. */
const passingFaults: ReadonlySet<string> = new Set([
  'EIO',
  'ENOMEM',
  'EBUSY',
  'EAGAIN',
  'EINTR',
  'ESTALE',
  'ETIMEDOUT',
]);

/**
 * Translates a failed statement, commit or file operation for callers. A file beside the database of this path may be
 * written to find out why: SQLite does not tell a read-only file system from a broken disk.
 */
export function translateStorageError(error: unknown, path: string, file = 'a data file'): unknown {
  if (!(error instanceof SQLiteError)) return translateFileError(error);
  const code = error.code ?? '';
  // The memory that connections share is a file that grows when a database is opened.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE') return insufficientStorage(error);
  if (code.startsWith('SQLITE_READONLY')) return probe(error, path, mayNotBeWritten(file, error));
  if (isDamage(code)) {
    return new ServiceError('data_corrupted', `${file} is damaged; run "sundew check"`, { cause: error });
  }
  if (code === 'SQLITE_CANTOPEN' || code === 'SQLITE_NOMEM') {
    return notNow(`${file} cannot be opened now`, error);
  }
  if (failedSyncs.has(code)) return storageFailed(error);
  return code.startsWith('SQLITE_IOERR') ? probe(error, path, notNow(`${file} cannot be written now`, error)) : error;
}

/** The file does not hold what it should, or cannot be read. */
function isDamage(code: string): boolean {
  return code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB' || failedReads.has(code);
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
    if (isDamage(code)) {
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
  const isSync = 'syscall' in error && String(error.syscall).includes('sync');
  if (error.code === 'EIO' && isSync) return storageFailed(error);
  if (passingFaults.has(String(error.code))) return notNow('a file of the data directory cannot be changed now', error);
  return meaningOf(error.code, error) ?? error;
}

/**
 * A change that was not carried out. Where the disk takes others it is
 * `ofFile`: nothing is lost, and the next attempt may work.
 */
function probe(error: SQLiteError, path: string, ofFile: ServiceError): ServiceError {
  try {
    probeDisk(path);
  } catch (failure) {
    const meant = translateFileError(failure);
    if (meant instanceof ServiceError) return meant;
  }
  return failedCuts.has(error.code ?? '') ? insufficientStorage(error) : ofFile;
}

/** Throws what keeps the files of a database from being written, or from growing, as far as the disk tells it. */
export function probeDisk(path: string): void {
  const probePath = `${path}-wal-probe`;
  try {
    writeSynced(probePath, 'w', new Uint8Array(probeBytes));
    truncateSync(probePath, cutProbeBytes);
    truncateSync(probePath, Math.max(fileBytes(path), fileBytes(`${path}-wal`)) + growthBytes);
    rmSync(probePath);
  } catch (error) {
    // Other failures leave a small file, which the next probe writes again.
    if (isTooLarge(error)) rmSync(probePath);
    throw error;
  }
}

/** Whether a failed write to a file was refused for this file alone: the disk takes others. */
export function isRefusedFile(error: unknown, reported: unknown): reported is ServiceError {
  const isFile = error instanceof SQLiteError ? /^SQLITE_(IOERR|READONLY)/.test(error.code ?? '') : isTooLarge(error);
  return isFile && reported instanceof ServiceError && reported.code === 'unavailable';
}

/** Whether a failed write was refused by the disk, or by the file: what is stored can be read. */
export function isRefused(error: unknown, reported: unknown): reported is ServiceError {
  const isOfDisk = isFullDisk(reported) || isReadOnly(reported);
  return isOfDisk || isRefusedFile(error, reported);
}

export function isReadOnly(failure: unknown): boolean {
  return failure instanceof ServiceError && failure.code === 'read_only';
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EFBIG';
}

function notNow(what: string, cause: unknown): ServiceError {
  return new ServiceError('unavailable', `${what}; try again`, { cause });
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
    case 'EFBIG': {
      const message =
        'a data file has reached the size that files may have; raise "ulimit -f" of the server, where its file system takes larger ones';
      return new ServiceError('unavailable', message, { cause });
    }
    case 'EMFILE':
    case 'ENFILE':
      return new ServiceError('unavailable', 'the process has no file descriptors left; try again', { cause });
    default:
      return undefined;
  }
}

export function insufficientStorage(cause?: unknown): ServiceError {
  return new ServiceError('insufficient_storage', 'the disk is full; nothing of this request was written', { cause });
}

export function isFullDisk(failure: unknown): boolean {
  return failure instanceof ServiceError && failure.code === 'insufficient_storage';
}

function mayNotBeWritten(file: string, cause: unknown): ServiceError {
  const message = `${file} may not be written by the user of the server; give it the right to, and start the server again`;
  return new ServiceError('unavailable', message, { cause });
}

function readOnly(cause: unknown): ServiceError {
  return new ServiceError('read_only', 'the data directory cannot be written', { cause });
}

function storageFailed(cause: unknown): ServiceError {
  return new ServiceError('storage_failed', 'the disk failed; the server stops and recovers at its next start', {
    cause,
  });
}
