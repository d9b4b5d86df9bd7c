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
  /** Given to the index, visible or not. */
  applied: number;
  published: number;
  /** Head of the range when the index was opened, and whether the index shows everything up to it. */
  replayTarget: number;
  hasReplayed: boolean;
  checkpointed: number;
  backfilledRows: number;
  skippedCount: number;
  queuedBytes: number;
  error: string | undefined;
  stats: RangeIndexStats | undefined;
}

type ReadinessState = 'pending' | 'queryable_partial' | 'ready' | 'failed';

export interface Readiness {
  state: ReadinessState;
  queryable: boolean;
  complete: boolean;
  /**
   * Why it is not complete: `backfill` (being built), `replay` (rows are still to be read), `publication` (rows were
   * read and wait for their commit), `load_failure`, `index_failed`.
   */
  reasons: string[];
}

/** Whether the index shows everything that its range has committed. */
export function isComplete({ state, stats, published, head }: RangeIndexReport): boolean {
  return state !== 'failed' && stats !== undefined && published >= head;
}

/** What the reports of all ranges say together: an index is as ready as its slowest range. */
export function readinessOf(reports: RangeIndexReport[]): Readiness {
  const reasons = new Set(reports.flatMap(reasonsOf));
  const queryable = reports.length > 0 && reports.every(({ stats }) => stats !== undefined);
  const complete = reports.length > 0 && reports.every(isComplete);
  const failed = reports.some((report) => report.state === 'failed');
  const state = failed ? 'failed' : complete ? 'ready' : queryable ? 'queryable_partial' : 'pending';
  return { state, queryable, complete, reasons: [...reasons].sort() };
}

function reasonsOf(report: RangeIndexReport): string[] {
  if (isComplete(report)) return [];
  if (report.state === 'failed') return [report.stats ? 'index_failed' : 'load_failure'];
  if (report.rebuilding) return ['backfill'];
  return report.applied > report.published ? ['publication', 'replay'] : ['replay'];
}

/** Said as long as anything is missing, however little. */
const progressMax = 0.999_999;

/** Share of a range's change feed that the index shows, 0..1; 1 only when nothing is missing. */
export function progressOf(report: RangeIndexReport): number {
  const span = report.head - report.firstSequence + 1;
  if (span <= 0) return report.stats ? 1 : 0;
  const done = Math.max(0, report.published - report.firstSequence + 1);
  return done >= span ? 1 : Math.min(progressMax, done / span);
}
