import type { RangeId, RangeTotals } from '../write-request.ts';

/** Where a range stands. */
export interface RangeSnapshot extends RangeTotals {
  rangeId: RangeId;
  generation: number;
  /** The first document of this generation got this sequence. */
  firstSequence: number;
  /**
   * The range's own changes begin here. A range that was made of another one's file holds older sequences; to clients, what
   * has them has this version.
   */
  ownSince: number;
  /** Last committed sequence; `firstSequence - 1` before the first write. */
  head: number;
  /** Entries in the log so far. */
  entryIndex: number;
}

/**
 * The version of a row to clients. A restored range keeps the sequences of its backup, by which its indexes know the rows, but a
 * version that was given out before the restore must not match one after it.
 */
export function versionOf({ ownSince }: Pick<RangeSnapshot, 'ownSince'>, sequence: number): number {
  return Math.max(sequence, ownSince);
}

/** The note of a range that was made of another one's file: `ownSince`, as decimal text. */
export const imageNote = 'image';
