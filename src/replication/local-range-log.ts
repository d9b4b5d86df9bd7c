import { must } from '../lib/assert.ts';
import type { AppliedWrite, EntryGroup, RangeId } from '../storage/entry-group.ts';
import type { Storage } from '../storage/open-storage.ts';
import type { RangeSnapshot } from '../storage/range-snapshot.ts';
import type { StoredRange } from '../storage/stored-range.ts';
import type { RangeEntry, RangeLog } from './range-log.ts';

/** The log of a single node: an append is a SQLite transaction, shared with whatever else waits. */
export class LocalRangeLog implements RangeLog {
  readonly rangeId: RangeId;
  readonly #storage: Storage;
  readonly #range: StoredRange;

  constructor(storage: Storage, range: StoredRange) {
    this.rangeId = range.rangeId;
    this.#storage = storage;
    this.#range = range;
  }

  async append({ write, ...request }: RangeEntry): Promise<AppliedWrite> {
    const applied = await this.#storage.append({ ...request, writes: [{ ...write, rangeId: this.rangeId }] });
    return must(applied[0], 'an append without its answer');
  }

  info(): RangeSnapshot {
    return this.#range.info();
  }
}

/**
 * A request over any number of ranges, all or nothing. One range takes the short way; several go through the
 * catalog's redo record. Answers come in the order of the writes.
 */
export function appendGroup(storage: Storage, group: EntryGroup): Promise<AppliedWrite[]> {
  return storage.append(group);
}
