import type { RangePool } from '../../indexing/range-pool.ts';
import { StartReplay } from '../../indexing/start-replay.ts';
import { JobRunner } from '../../jobs/job-runner.ts';
import { EdgeSweeper } from '../../tables/graph/edge-sweeper.ts';
import type { TableService } from '../../tables/table-service.ts';
import { ClockGuard } from '../../tables/upkeep/clock-guard.ts';
import { Scrubber } from '../../tables/upkeep/scrubber.ts';
import { TtlSweeper } from '../../tables/upkeep/ttl-sweeper.ts';
import type { DatabaseCore } from './database-core.ts';

/** Ranges that were closed cleanly, but before their indexes showed everything. */
function closedBehind(tables: TableService, pool: RangePool): number[] {
  const rangeIds = tables.all().flatMap(({ ranges }) => ranges.map(({ rangeId }) => rangeId));
  return rangeIds.filter((rangeId) => pool.knownClosed(rangeId)?.indexes.some(({ lag }) => lag > 0));
}

/** Brings the indexes up that an unclean stop has left behind their ranges. */
export function buildReplay({ storage, logger }: DatabaseCore, tables: TableService, pool: RangePool): StartReplay {
  return new StartReplay({
    rangeIds: [...new Set([...storage.start.unclean, ...closedBehind(tables, pool)])],
    lease: (rangeId) => pool.lease(rangeId, 'upkeep'),
    closing: (rangeId) => tables.findOwner(rangeId)?.closing,
    onFailed: (range_id, error) =>
      logger.error('a range could not be opened after an unclean stop', { range_id }, error),
  });
}

/** Runs the jobs of the catalog. */
export function buildJobs({ storage, clock, limits, logger }: DatabaseCore): JobRunner {
  return new JobRunner({
    store: storage.jobs,
    clock,
    keptMs: limits.jobsKeptMs,
    onFailed: ({ jobId: job_id, kind }, attempt, error) =>
      logger.warn('a job failed and is tried again', { job_id, kind, attempt }, error),
  });
}

/** Tells the sweepers the time, but for a while after a jump of the clock. */
export function buildClockGuard({ storage, clock, limits, logger }: DatabaseCore): ClockGuard {
  return new ClockGuard({
    clock,
    limits,
    notedMs: storage.catalog.notedWallClock(),
    onJump: (jumpMs) =>
      logger.warn('the clock jumped; expired documents stay on disk for a while', { jump_ms: jumpMs }),
  });
}

/** Removes expired documents from disk. */
export function buildSweeper(
  { storage, log, clock, limits, logger, metrics }: DatabaseCore,
  tables: TableService,
  guard: ClockGuard,
): TtlSweeper {
  return new TtlSweeper({
    tables: () => tables.all(),
    log,
    noteWallClock: (nowMs) => storage.catalog.noteWallClock(nowMs),
    clock,
    guard,
    limits,
    onSwept(table, documents) {
      metrics.increment('ttlDeleted', [], documents);
      logger.debug('expired documents removed', { table, documents });
    },
    onFailed: (table, error) => logger.warn('expired documents could not be removed', { table }, error),
  });
}

/** Removes edges from disk that have expired, or that lead to deleted documents. */
export function buildEdgeSweeper(
  { log, clock, limits, logger }: DatabaseCore,
  tables: TableService,
  guard: ClockGuard,
): EdgeSweeper {
  return new EdgeSweeper({
    tables: () => tables.all(),
    log,
    clock,
    limits,
    guard,
    onSwept: (table, edges) => logger.debug('edges removed that had expired or lost their target', { table, edges }),
    onFailed: (table, error) => logger.warn('edges could not be removed', { table }, error),
  });
}

/** Reads all stored rows from time to time and compares their checksums. */
export function buildScrubber({ clock, options, logger, health }: DatabaseCore, tables: TableService): Scrubber {
  return new Scrubber({
    tables: () => tables.all(),
    clock,
    intervalMs: options().scrubIntervalMs,
    onDamaged: (rangeId, key) => health.documentDamaged(rangeId, key),
    onRangeRead: (rangeId, damaged) => health.rangeRead(rangeId, damaged),
    onFailed: (table, error) => logger.warn('a table could not be scrubbed', { table }, error),
  });
}
