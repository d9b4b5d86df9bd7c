import { limits } from '../../config/limits.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Table } from '../table.ts';
import type { IndexWait } from './sync-level.ts';
import { rangesOf, type TableWrites, type WrittenRange } from './table-writes.ts';

/** The result of a write. `error` says which part of a committed write cannot be seen yet. */
export interface WriteOutcome<Counts> {
  status: 'committed' | 'committed_repair_required';
  counts: Counts;
  error?: string;
}

/**
 * Waits for the indexes that `sync_level` names, or until a table closes. The write is committed by now, so nothing
 * here undoes it. The caller keeps its leases meanwhile: a range that is closed shows nothing.
 */
export async function settle<Counts>(
  parts: TableWrites[],
  applied: WrittenRange[],
  wait: IndexWait,
  counts: Counts,
  clock: Clock,
): Promise<WriteOutcome<Counts>> {
  if (applied.some(({ isLater }) => isLater)) {
    const error = 'the write is committed; a part of it can be read once the disk has room; do not send it again';
    return { status: 'committed_repair_required', counts, error };
  }
  if (wait === 'none') return { status: 'committed', counts };
  const late = new AbortController();
  const cancel = clock.after(limits.syncWaitMs, () => late.abort());
  const signal = AbortSignal.any([late.signal, ...parts.map(({ table }) => table.closing)]);
  const ranges = rangesOf(parts);
  const tableOf = new Map(parts.flatMap(({ table }) => table.ranges.map((range) => [range.rangeId, table] as const)));
  try {
    await Promise.all(
      applied.map(async ({ rangeId, lastSequence }) => {
        if (lastSequence === undefined) return;
        const range = must(ranges.get(rangeId), 'a range that was written');
        const table = must(tableOf.get(rangeId), 'the table of a range');
        if (wait === 'full_text') await waitForServing(table, range, lastSequence, signal);
        else await range.waitForIndexes('all', lastSequence, signal);
      }),
    );
    const failed = wait === 'full_text' ? 0 : failuresOf(applied, ranges);
    if (failed === 0) return { status: 'committed', counts };
    const error = `the write is committed; ${failed} vectors or other parts of its documents could not be made: the states of the indexes and enrichments say why`;
    return { status: 'committed_repair_required', counts, error };
  } catch {
    const error = 'the write is committed; an index that it waits for has not shown it within the time allowed';
    return { status: 'committed_repair_required', counts, error };
  } finally {
    cancel();
  }
}

/** Vectors, edges and artifacts of the documents of a write that could not be made. */
function failuresOf(applied: readonly WrittenRange[], ranges: ReadonlyMap<number, IndexedRange>): number {
  return applied.reduce((failed, { rangeId, firstSequence, lastSequence }) => {
    if (firstSequence === undefined || lastSequence === undefined) return failed;
    return failed + (ranges.get(rangeId)?.failuresWithin(firstSequence, lastSequence) ?? 0);
  }, 0);
}

/** Another index may take over while the serving one is waited for: then the new one has to show the rows. */
async function waitForServing(
  table: Table,
  range: IndexedRange,
  sequence: number,
  deadline: AbortSignal,
): Promise<void> {
  for (let waited: string | undefined; waited !== table.servingIndex.name; ) {
    const { name } = table.servingIndex;
    waited = name;
    await range.waitForIndexes([name], sequence, deadline).catch((error: unknown) => {
      if (table.servingIndex.name === name) throw error;
    });
  }
}
