import type { Storage } from '../storage/open-storage.ts';
import type { AppliedWrite, EntryListener, RangeId, WriteRequest } from '../storage/write-request.ts';
import type { RangeLog } from './range-log.ts';

/**
 * The logs of a single node: an append is a SQLite transaction, shared with whatever else waits. One range takes the
 * short way; several go through the catalog's redo record.
 */
export class LocalRangeLog implements RangeLog {
  readonly #storage: Storage;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  append(request: WriteRequest): Promise<AppliedWrite[]> {
    return this.#storage.append(request);
  }

  subscribe(rangeId: RangeId, listener: EntryListener): () => void {
    return this.#storage.subscribe(rangeId, listener);
  }

  subscribeAll(listener: EntryListener): void {
    this.#storage.subscribeAll(listener);
  }
}
