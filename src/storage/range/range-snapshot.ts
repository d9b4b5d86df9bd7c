import type { RangeId, RangeTotals } from '../write-request.ts';

/** Where a range stands. */
export interface RangeSnapshot extends RangeTotals {
  rangeId: RangeId;
  generation: number;
  /** The first document of this generation got this sequence. */
  firstSequence: number;
  /** Last committed sequence; `firstSequence - 1` before the first write. */
  head: number;
  /** Entries in the log so far. */
  entryIndex: number;
}
