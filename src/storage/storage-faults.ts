import { resolve } from 'node:path';
import type { Fault, Health } from '../observability/health.ts';
import { ServiceError, withDetails } from '../protocol/service-error.ts';
import type { DataDirectory } from './directory/data-directory.ts';
import { isDataDirectoryError } from './directory/data-directory-error.ts';
import type { OpenedRange } from './storage-calls.ts';
import type { ReadSource } from './storage-error.ts';
import type { RangeId, RefusedFile } from './write-request.ts';
import type { DiskCondition } from './writer/disk-space.ts';

/** Says to `health` what the calls of an open data directory meet. */
export class StorageFaults {
  readonly health: Health;

  readonly #directory: DataDirectory;

  constructor(health: Health, directory: DataDirectory) {
    this.health = health;
    this.#directory = directory;
  }

  /** The disk takes no writes any more, or takes them again. */
  disk(condition: DiskCondition): void {
    if (condition !== 'full') this.health.clear('disk_full');
    if (condition !== 'read_only') this.health.clear('disk_read_only');
    const details = { path: resolve(this.#directory.root) };
    if (condition === 'full') {
      const message =
        'the disk is full: the server is read-only, but for deletes and drops, until there is room for the reserve (storage.reserve) and 4 MiB';
      this.health.raise({ kind: 'disk_full', blocks: 'writes', message, details });
    } else if (condition === 'read_only') {
      const message = 'the data directory cannot be written: the server is read-only';
      this.health.raise({ kind: 'disk_read_only', blocks: 'writes', message, details });
    }
  }

  /** Follows a write: one that meets a failed sync raises a fault. */
  async writing<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'storage_failed') {
        this.health.raise({ kind: 'disk_failed', blocks: 'writes', message: error.message });
      }
      const { key, range_id: rangeId } = error.details ?? {};
      if (error.code === 'data_corrupted' && typeof key === 'string' && typeof rangeId === 'number') {
        this.health.documentDamaged(rangeId, key);
      }
      throw error;
    }
  }

  /** The range has yet to take its part of a committed write. */
  fellBehind(rangeId: RangeId): void {
    const message = 'it has yet to take a committed write; it does so by itself when its disk has room';
    this.health.raise({ kind: 'redo_pending', rangeId, blocks: 'nothing', message });
  }

  /** A file refuses writes, for this reason, or takes them again. */
  refusal(file: RefusedFile, reason: string | undefined): void {
    const subject = file === 'catalog' ? {} : { rangeId: file };
    if (reason === undefined) {
      this.health.clear('writes_refused', subject);
      return;
    }
    const what =
      file === 'catalog'
        ? 'the catalog refuses writes, and with it changes of tables and writes over several ranges'
        : 'it refuses writes';
    this.health.raise({ kind: 'writes_refused', ...subject, blocks: 'writes', message: `${what}: ${reason}` });
  }

  caughtUp(rangeId: RangeId): void {
    this.health.clear('redo_pending', { rangeId });
  }

  /** Follows the opening of a range. */
  async opening(rangeId: RangeId, open: Promise<OpenedRange>): Promise<OpenedRange> {
    try {
      const result = await open;
      this.health.clear('file_damaged', { rangeId });
      if (result.missingChanges > 0) this.health.raise(shortLog(rangeId, result.missingChanges));
      return result;
    } catch (thrown) {
      const error = isDataDirectoryError(thrown) ? ofLaterRelease(thrown) : thrown;
      if (error instanceof ServiceError && error.code === 'data_corrupted') {
        this.health.raise(error === thrown ? damagedFile(rangeId) : laterFile(rangeId));
      }
      throw withDetails(error, { range_id: rangeId });
    }
  }

  /** The name of a range for its reads, and the faults that they note. */
  readsOf(rangeId: RangeId): ReadSource {
    return {
      name: `range ${rangeId}`,
      rangeId,
      fileDamaged: () => this.health.raise(damagedFile(rangeId)),
      documentDamaged: (key) => this.health.documentDamaged(rangeId, key),
    };
  }
}

function shortLog(rangeId: RangeId, missing: number): Fault {
  const message = `it lacks at least ${missing} changes that were acknowledged: its write-ahead log was lost or cut`;
  return { kind: 'log_damaged', rangeId, blocks: 'nothing', message };
}

const laterRelease = 'was written by a later release: start that release, or a later one';

/** The format of the directory says that there are none: somebody has put the file there. */
function ofLaterRelease(cause: Error): ServiceError {
  const message = `a data file ${laterRelease}`;
  return new ServiceError('data_corrupted', message, { cause });
}

function laterFile(rangeId: RangeId): Fault {
  return { kind: 'file_damaged', rangeId, blocks: 'reads', message: `the file of its documents ${laterRelease}` };
}

function damagedFile(rangeId: RangeId): Fault {
  const message = 'the file of its documents is damaged; run "sundew check" and restore the range from a backup';
  return { kind: 'file_damaged', rangeId, blocks: 'reads', message };
}
