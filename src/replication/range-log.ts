import type { AppliedWrite, EntryGroup, RangeId, RangeWrite } from '../storage/entry-group.ts';
import type { RangeSnapshot } from '../storage/range-snapshot.ts';

/** One range's part of a request, with what the request as a whole carries. */
export interface RangeEntry extends Omit<EntryGroup, 'writes'> {
  write: Omit<RangeWrite, 'rangeId'>;
}

/**
 * The ordered log through which all writes of a range go. An entry is durable, applied on this node and visible to
 * reads when `append` resolves; a request that fails has changed nothing.
 */
export interface RangeLog {
  readonly rangeId: RangeId;
  append(entry: RangeEntry): Promise<AppliedWrite>;
  /** Where the log stands, as of the last answered append. */
  info(): RangeSnapshot;
}
