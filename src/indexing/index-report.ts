import type { ApplierState } from './applier/applier-standing.ts';
import type { ProductionReport } from './enrichment/part-producer.ts';
import type { RangeArtifactReport } from './enrichment/range-artifacts.ts';
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
  /** As `IndexStandings.isWhole`. */
  isWhole: boolean;
  checkpointed: number;
  backfilledRows: number;
  skippedCount: number;
  queuedBytes: number;
  error: string | undefined;
  /** Why its checkpoints cannot be written at present; it is searched all the same. */
  unwritten?: string | undefined;
  stats: RangeIndexStats | undefined;
  /** How far the parts are made that the index is built from; undefined where they come with the documents. */
  production?: ProductionReport | undefined;
  /** How far the artifacts are made whose texts it holds. */
  artifacts?: readonly RangeArtifactReport[];
}

type ReadinessState = 'pending' | 'queryable_partial' | 'ready' | 'failed';

export interface Readiness {
  state: ReadinessState;
  queryable: boolean;
  complete: boolean;
  /**
   * Why it is not complete: `backfill` (being built), `replay` (rows are still to be read), `publication` (rows were
   * read and wait for their commit), `damaged` (something stored was, and is left out), `load_failure`, `index_failed`;
   * of an index that the server makes the vectors of also `enrichment` (documents wait for theirs), `enrichment_retry`
   * and `embedder_unavailable`.
   */
  reasons: string[];
}

/** Whether the index shows everything that its range has committed. */
export function isComplete(report: RangeIndexReport): boolean {
  const { state, stats, published, head, isWhole, production, artifacts = [] } = report;
  const isMade = (!production || isCovered(production, head)) && artifacts.every((each) => each.isComplete);
  return state !== 'failed' && stats !== undefined && published >= head && isMade && isWhole;
}

/** How far the parts of an index are made that are made of artifacts: each waits for its artifact. */
export function joinedProduction(own: ProductionReport, artifacts: ProductionReport): ProductionReport {
  return {
    liveThrough: Math.min(own.liveThrough, artifacts.liveThrough),
    coveredThrough: Math.min(own.coveredThrough, artifacts.coveredThrough),
    backfillProgress: Math.min(own.backfillProgress, artifacts.backfillProgress),
    produced: artifacts.produced,
    retrying: own.retrying + artifacts.retrying,
    failed: own.failed + artifacts.failed,
    blocker: own.blocker ?? artifacts.blocker,
  };
}

/** Whether every document has its part, or is left until it changes. */
function isCovered({ coveredThrough, retrying }: ProductionReport, head: number): boolean {
  return coveredThrough >= head && retrying === 0;
}

/** Combines the reports of all ranges: an index is as ready as its slowest range, and not at all before it serves queries. */
export function readinessOf(reports: RangeIndexReport[], serves: boolean): Readiness {
  const reasons = new Set(reports.flatMap(reasonsOf));
  if (!serves && reasons.size === 0) reasons.add('publication');
  const queryable = serves && reports.length > 0 && reports.every(({ stats }) => stats !== undefined);
  const complete = serves && reports.length > 0 && reports.every(isComplete);
  const failed = reports.some((report) => report.state === 'failed');
  const state = failed ? 'failed' : complete ? 'ready' : queryable ? 'queryable_partial' : 'pending';
  return { state, queryable, complete, reasons: [...reasons].sort() };
}

function reasonsOf(report: RangeIndexReport): string[] {
  if (isComplete(report)) return [];
  if (report.state === 'failed') return [report.stats ? 'index_failed' : 'load_failure'];
  const makers = [...(report.production ? [report.production] : []), ...(report.artifacts ?? [])];
  const made = makers.flatMap((each) => productionReasons(each, report.head));
  if (!report.isWhole) made.push('damaged');
  if (report.rebuilding) return [...made, 'backfill'];
  if (report.published >= report.head) return made;
  return [...made, ...(report.applied > report.published ? ['publication', 'replay'] : ['replay'])];
}

/** Why not everything that documents need is made yet; empty when it is. */
export function productionReasons(
  { blocker, backfillProgress, liveThrough, retrying }: ProductionReport,
  head: number,
): string[] {
  return [
    ...(blocker ? ['embedder_unavailable'] : []),
    ...(backfillProgress < 1 ? ['backfill'] : []),
    ...(liveThrough < head ? ['enrichment'] : []),
    ...(retrying > 0 ? ['enrichment_retry'] : []),
  ];
}

/** Said as long as anything is missing, however little. */
const progressMax = 0.999_999;

/** Share of a range's change feed that the index shows, 0..1; 1 only when nothing is missing. */
export function progressOf(report: RangeIndexReport): number {
  const span = report.head - report.firstSequence + 1;
  if (span <= 0) return report.stats ? 1 : 0;
  const done = Math.max(0, report.published - report.firstSequence + 1);
  const made = report.production?.backfillProgress ?? 1;
  return done >= span && isComplete(report) ? 1 : Math.min(progressMax, Math.min(1, done / span) * made);
}
