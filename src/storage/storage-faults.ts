import type { Fault, Health } from '../observability/health.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { RangeId } from './entry-group.ts';
import type { ReadSource } from './storage-error.ts';

/** Says to `health` what the calls of an open data directory meet. */
export class StorageFaults {
  readonly health: Health;

  constructor(health: Health) {
    this.health = health;
  }

  /** Follows a write: one that fails for the disk raises a fault, the next that succeeds clears it. */
  async writing<T>(write: Promise<T>): Promise<T> {
    try {
      const result = await write;
      this.health.clear('disk_full');
      this.health.clear('disk_read_only');
      return result;
    } catch (error) {
      const fault = diskFault(error);
      if (fault) this.health.raise(fault);
      throw error;
    }
  }

  /** Follows the opening of a range. */
  async opening<T>(rangeId: RangeId, open: Promise<T>): Promise<T> {
    try {
      const result = await open;
      this.health.clear('file_damaged', { rangeId });
      return result;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'data_corrupted') this.health.raise(damagedFile(rangeId));
      throw error;
    }
  }

  /** What reads of a range go by. */
  readsOf(rangeId: RangeId): ReadSource {
    return {
      name: `range ${rangeId}`,
      rangeId,
      fileDamaged: () => this.health.raise(damagedFile(rangeId)),
      documentDamaged: (key) => this.health.documentDamaged(rangeId, key),
    };
  }
}

function diskFault(error: unknown): Fault | undefined {
  switch (error instanceof ServiceError ? error.code : undefined) {
    case 'insufficient_storage':
      return {
        kind: 'disk_full',
        blocks: 'writes',
        message: 'the disk is full; writes follow when there is room again',
      };
    case 'read_only':
      return { kind: 'disk_read_only', blocks: 'writes', message: 'the data directory cannot be written' };
    case 'storage_failed':
      return { kind: 'disk_failed', blocks: 'writes', message: 'the disk failed; the server stops' };
    default:
      return undefined;
  }
}

function damagedFile(rangeId: RangeId): Fault {
  const message = 'the file of its documents is damaged; run `sundew check` and restore the range from a backup';
  return { kind: 'file_damaged', rangeId, blocks: 'reads', message };
}
