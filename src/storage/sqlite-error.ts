import { SQLiteError } from 'bun:sqlite';
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { ServiceError } from '../protocol/service-error.ts';

export function isSqliteError(error: unknown): boolean {
  return error instanceof SQLiteError;
}

/** Bytes that a probe writes: more than a file system keeps inside an inode. */
const probeBytes = 8_192;

/**
 * What a failed statement or commit means for callers. `probePath` is a file beside the database that may be written
 * to find out why: SQLite does not tell a read-only file system from a broken disk.
 */
export function translateSqliteError(error: unknown, probePath: string): unknown {
  if (!(error instanceof SQLiteError)) return error;
  const code = error.code ?? '';
  if (code === 'SQLITE_FULL') return insufficientStorage(error);
  if (code.startsWith('SQLITE_READONLY')) return readOnly(error);
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') {
    return new ServiceError('data_corrupted', 'a data file is damaged; run `sundew check`', { cause: error });
  }
  if (code === 'SQLITE_CANTOPEN' || code === 'SQLITE_NOMEM') {
    return new ServiceError('unavailable', 'a data file cannot be opened now; try again', { cause: error });
  }
  if (code.startsWith('SQLITE_IOERR'))
    return code === 'SQLITE_IOERR_FSYNC' ? storageFailed(error) : probe(error, probePath);
  return error;
}

function probe(error: SQLiteError, path: string): ServiceError {
  switch (writeFailure(path)) {
    case 'ENOSPC':
    case 'EDQUOT':
      return insufficientStorage(error);
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return readOnly(error);
    case 'EMFILE':
    case 'ENFILE':
      return new ServiceError('unavailable', 'the process has no file descriptors left; try again', { cause: error });
    default:
      return storageFailed(error);
  }
}

/** The error number with which a small synced write at `path` fails; undefined when it works. */
function writeFailure(path: string): string | undefined {
  try {
    const descriptor = openSync(path, 'w');
    try {
      writeSync(descriptor, new Uint8Array(probeBytes));
      fdatasyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    rmSync(path, { force: true });
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  }
}

function insufficientStorage(cause: unknown): ServiceError {
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
