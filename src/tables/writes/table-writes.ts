import type { IndexedRange } from '../../indexing/indexed-range.ts';
import type { BatchCounts } from '../../protocol/database/writes.ts';
import type { AnsweredWrite } from '../../storage/range/request-answers.ts';
import type { AppliedWrite, RangeWrite } from '../../storage/write-request.ts';
import type { Table, TableLease } from '../table.ts';

/** The changes of a request to one table, whose ranges are held open for it. */
export interface TableWrites {
  table: Table;
  lease: TableLease;
  writes: RangeWrite[];
}

/** The result of a request in one range. */
export type WrittenRange = AnsweredWrite & Pick<AppliedWrite, 'isLater'> & { firstSequence?: number | undefined };

export function rangesOf(parts: TableWrites[]): Map<number, IndexedRange> {
  return new Map(parts.flatMap(({ lease }) => lease.ranges.map((range) => [range.rangeId, range] as const)));
}

export function batchCounts(applied: Pick<AppliedWrite, 'counts'>[]): BatchCounts {
  const total: BatchCounts = { inserted: 0, deleted: 0, transformed: 0 };
  let failed = 0;
  for (const { counts } of applied) {
    failed += counts.failed;
    total.inserted += counts.inserted + counts.updated;
    total.deleted += counts.deleted;
    total.transformed += counts.transformed;
  }
  return failed === 0 ? total : { ...total, failed };
}
