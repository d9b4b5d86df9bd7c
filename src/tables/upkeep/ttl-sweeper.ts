import type { LimitOptions } from '../../config/limits.ts';
import type { Clock } from '../../lib/clock.ts';
import { pause } from '../../lib/clock.ts';
import type { Service } from '../../lib/concurrency/supervise.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { GraphWrites } from '../../storage/write-request.ts';
import { graphWritesOf, hasGraphs } from '../graph/graph-writes.ts';
import type { Table } from '../table.ts';
import type { ClockGuard } from './clock-guard.ts';

interface TtlSweeperDeps {
  tables: () => Table[];
  noteWallClock(nowMs: number): Promise<void>;
  log: RangeLog;
  clock: Clock;
  guard: ClockGuard;
  limits: LimitOptions;
  onSwept(tableName: string, documents: number): void;
  onFailed(tableName: string, error: unknown): void;
}

interface SweepPass {
  /** Documents that were removed. */
  removed: number;
  /** There were more than a batch takes. */
  leavesSome: boolean;
}

/**
 * Removes expired documents from disk. They vanish from every read the moment they expire; this only frees their
 * space, so it may lag, and it stops for a while when the wall clock jumps: a wrong clock must not delete.
 */
export class TtlSweeper implements Service {
  readonly name = 'ttl-sweeper';
  readonly #deps: TtlSweeperDeps;

  constructor(deps: TtlSweeperDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#deps.clock, this.#deps.limits.ttlSweepIntervalMs, signal);
      // A pass may leave documents where many have expired. They are removed faster than they can be written.
      while (!signal.aborted && (await this.sweep()).leavesSome);
    }
  }

  /** One pass over all tables with a TTL: at most one batch a range. */
  async sweep(): Promise<SweepPass> {
    const pass: SweepPass = { removed: 0, leavesSome: false };
    const nowMs = this.#deps.guard.trustedMs();
    if (nowMs === undefined) return pass;
    if (!this.#deps.tables().some((table) => table.ttlDurationMs !== undefined)) return pass;
    await this.#noteClock(nowMs);
    for (const table of this.#deps.tables()) {
      if (table.ttlDurationMs === undefined || table.closing.aborted) continue;
      const before = pass.removed;
      try {
        await this.#sweepTable(table, pass);
      } catch (error) {
        this.#deps.onFailed(table.name, error);
      }
      if (pass.removed > before) this.#deps.onSwept(table.name, pass.removed - before);
    }
    return pass;
  }

  async #sweepTable(table: Table, pass: SweepPass): Promise<void> {
    const { guard, limits, log } = this.#deps;
    for (const { rangeId } of table.ranges) {
      // A pass over many tables takes a while, in which the clock may jump.
      const timeMs = guard.trustedMs();
      if (timeMs === undefined) return;
      const bound = table.expiredAtOrBeforeMs(timeMs - limits.ttlGraceMs);
      if (bound === undefined) return;
      // A closed range is left closed until something in it has expired.
      if (table.oldestTtlBaseMs(rangeId) > bound) continue;
      using lease = await table.leaseForUpkeep(rangeId);
      const { range } = lease;
      const deleteIf = range.stored.documents.expired(bound, limits.ttlSweepRowsMax);
      if (deleteIf.length === 0) continue;
      const graphs = await graphsOf(table);
      const [applied] = await log.append({
        writes: [{ rangeId: range.rangeId, deleteIf, ...(graphs ? { graphs } : {}) }],
        requestId: this.name,
        timeMs,
        timestamp: new Date(timeMs).toISOString(),
      });
      const removed = applied?.counts.deleted ?? 0;
      pass.removed += removed;
      // Indexes that are behind catch up until the next pass.
      pass.leavesSome ||= removed > 0 && deleteIf.length === limits.ttlSweepRowsMax && !range.isBehind;
    }
  }

  /** True after a jump of the clock: expired documents are then not deleted yet. */
  get paused(): boolean {
    return this.#deps.guard.trustedMs() === undefined;
  }

  async #noteClock(nowMs: number): Promise<void> {
    try {
      await this.#deps.noteWallClock(nowMs);
    } catch (error) {
      this.#deps.onFailed('', error);
    }
  }
}

/** Edges in every range may lead to what is removed; undefined for a table without graph indexes. */
async function graphsOf(table: Table): Promise<GraphWrites | undefined> {
  if (!hasGraphs(table)) return undefined;
  using lease = await table.lease();
  return graphWritesOf(table, lease.ranges);
}
