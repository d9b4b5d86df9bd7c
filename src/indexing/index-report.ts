import type { ApplierState } from './index-applier.ts';
import type { RangeIndexStats } from './range-index.ts';

/** One index of one range, as it stands now. Sequences are those of the range. */
export interface RangeIndexReport {
  rangeId: number;
  /** Last committed sequence of the range. */
  head: number;
  /** Sequence with which the range's generation began; what lies between is its life so far. */
  firstSequence: number;
  documents: number;
  state: ApplierState;
  rebuilding: boolean;
  published: number;
  checkpointed: number;
  backfilledRows: number;
  skippedCount: number;
  queuedPages: number;
  queuedBytes: number;
  error: string | undefined;
  stats: RangeIndexStats | undefined;
}

export type ReadinessState = 'pending' | 'queryable_partial' | 'ready' | 'failed';

export interface Readiness {
  state: ReadinessState;
  queryable: boolean;
  complete: boolean;
  /** Why it is not complete: `backfill`, `replay`, `publication`, `load_failure`, `index_failed`. */
  reasons: string[];
}

/** What the reports of all ranges say together: an index is as ready as its slowest range. */
export function readinessOf(reports: RangeIndexReport[]): Readiness {
  const reasons = new Set<string>();
  let queryable = reports.length > 0;
  for (const report of reports) {
    if (report.state === 'failed') reasons.add(report.stats ? 'index_failed' : 'load_failure');
    else if (report.rebuilding) reasons.add('backfill');
    else if (report.state === 'opening' || report.state === 'catching_up') reasons.add('replay');
    else if (report.published < report.head) reasons.add('publication');
    if (!report.stats) queryable = false;
  }
  // Rows that wait for their commit are the normal state of a busy index, not a gap in it.
  const complete = queryable && [...reasons].every((reason) => reason === 'publication');
  const failed = reports.some((report) => report.state === 'failed');
  const state = failed ? 'failed' : complete ? 'ready' : queryable ? 'queryable_partial' : 'pending';
  return { state, queryable, complete, reasons: complete ? [] : [...reasons].sort() };
}

/** Share of a range's change feed that the index shows, 0..1. */
export function progressOf(report: RangeIndexReport): number {
  const span = report.head - report.firstSequence + 1;
  if (span <= 0) return report.stats ? 1 : 0;
  const done = Math.max(0, report.published - report.firstSequence + 1);
  return Math.min(1, done / span);
}
