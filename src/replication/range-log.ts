import type { AppliedWrite, EntryGroup } from '../storage/entry-group.ts';

/**
 * The ordered logs of the ranges, through which every write goes. What was appended is durable, applied on this node and
 * visible to reads when `append` resolves, over all the ranges that the group names or over none; a request that fails
 * has changed nothing. Answers come in the order of the group's writes.
 */
export interface RangeLog {
  append(group: EntryGroup): Promise<AppliedWrite[]>;
}
