import type { AppliedWrite, EntryListener, RangeId, WriteRequest } from '../storage/write-request.ts';

/** The ordered logs of the ranges, through which every write goes. */
export interface RangeLog {
  /**
   * A request is durable, applied on this node and visible to reads when `append` resolves, over all the ranges
   * that the request names or over none; a request that fails has changed nothing. Answers come in the order of the request's
   * writes. An answer with `isLater` is committed as well, and its range takes it as soon as it can.
   */
  append(request: WriteRequest): Promise<AppliedWrite[]>;

  /**
   * Calls `listener` with every entry that changes the range from now on, whoever has appended it: in the order of the log,
   * once it is applied, and before its `append` resolves. Sequences have no gaps: a listener that sees one has missed
   * entries and reads them from the change feed. Returns what ends the subscription.
   */
  subscribe(rangeId: RangeId, listener: EntryListener): () => void;

  /** As `subscribe`, for the entries of all ranges until the log is closed. */
  subscribeAll(listener: EntryListener): void;
}
