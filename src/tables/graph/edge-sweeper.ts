import type { LimitOptions } from '../../config/limits.ts';
import { graphsAmong } from '../../index-kinds/all-kinds.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import type { Clock } from '../../lib/clock.ts';
import { pause } from '../../lib/clock.ts';
import type { Service } from '../../lib/concurrency/supervise.ts';
import { FrameBuilder, rowKind } from '../../lib/document-frame.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { EdgeUpkeep, RangeWrite } from '../../storage/write-request.ts';
import type { Table } from '../table.ts';
import type { ClockGuard } from '../upkeep/clock-guard.ts';
import { OpenGraph } from './open-graph.ts';

interface EdgeSweeperDeps {
  tables: () => Table[];
  log: RangeLog;
  clock: Clock;
  limits: LimitOptions;
  guard: ClockGuard;
  onSwept(tableName: string, edges: number): void;
  onFailed(tableName: string, error: unknown): void;
}

/** Batches of one index and pass; the rest waits for the next one. */
const batchesMax = 100;
const noBytes = new Uint8Array(0);

/**
 * Removes edges from disk that have expired, or that lead to deleted documents. They vanish from every answer at once; this
 * only frees their space. A note on deleted documents goes when no edge leads to them any more.
 */
export class EdgeSweeper implements Service {
  readonly name = 'edge-sweeper';
  readonly #deps: EdgeSweeperDeps;

  constructor(deps: EdgeSweeperDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#deps.clock, this.#deps.limits.ttlSweepIntervalMs, signal);
      if (!signal.aborted) await this.sweep(signal);
    }
  }

  /** One pass over the tables that are in use; what is at rest waits until it is opened. Returns the edges removed. */
  async sweep(signal: AbortSignal = new AbortController().signal): Promise<number> {
    let removed = 0;
    for (const table of this.#deps.tables()) {
      if (table.closing.aborted || signal.aborted || !table.isInUse) continue;
      try {
        const swept = await this.#sweepTable(table, signal);
        if (swept > 0) this.#deps.onSwept(table.name, swept);
        removed += swept;
      } catch (error) {
        this.#deps.onFailed(table.name, error);
      }
    }
    return removed;
  }

  async #sweepTable(table: Table, signal: AbortSignal): Promise<number> {
    const graphs = graphsAmong(table.indexes.map(({ definition }) => definition));
    if (graphs.length === 0) return 0;
    using lease = await table.lease();
    const { ranges } = lease;
    const notes = ranges.map(({ removedTargets }) => [...removedTargets.all().keys()]);
    const hasNotes = notes.some(({ length }) => length > 0);
    let [removed, isClean] = [0, true];
    for (const definition of graphs) {
      if (definition.ttlMs === undefined && !hasNotes) continue;
      const graph = new OpenGraph({ table, ranges, clock: this.#deps.clock }, definition);
      const swept = await this.#sweepGraph(graph, ranges, signal);
      removed += swept.edges;
      isClean &&= swept.isClean;
    }
    if (hasNotes && isClean) await this.#forget(ranges, notes);
    return removed;
  }

  /** `isClean`: the index shows everything, and nothing is left to remove. */
  async #sweepGraph(
    graph: OpenGraph,
    ranges: readonly IndexedRange[],
    signal: AbortSignal,
  ): Promise<{ edges: number; isClean: boolean }> {
    const { limits, guard } = this.#deps;
    const { ttlMs, partId, edgeTypes } = graph.definition;
    const keepsEmpty = edgeTypes.some(({ field }) => field !== undefined);
    let edges = 0;
    for (let batch = 0; batch < batchesMax && !signal.aborted; batch += 1) {
      if ((await graph.waitUntilShown(signal)) !== undefined) return { edges, isClean: false };
      const nowMs = guard.trustedMs();
      const expiredAtOrBeforeMs =
        ttlMs === undefined || nowMs === undefined ? undefined : nowMs - limits.ttlGraceMs - ttlMs;
      const { sources = [], total } = await graph.gone(limits.ttlSweepRowsMax, expiredAtOrBeforeMs, { signal });
      if (total === 0) return { edges, isClean: true };
      for (const [at, range] of ranges.entries()) {
        const keys = sources.flatMap((source) => (source.range === at ? [source.key] : []));
        if (keys.length === 0) continue;
        const removed = graph.removedIn(at);
        await this.#append(range, {
          edgeUpkeep: [{ partId, keys, expiredAtOrBeforeMs, removed, keepsEmpty } satisfies EdgeUpkeep],
        });
      }
      edges += total;
    }
    return { edges, isClean: false };
  }

  async #forget(ranges: readonly IndexedRange[], notes: readonly (readonly string[])[]): Promise<void> {
    for (const [at, range] of ranges.entries()) {
      const own = notes[at] ?? [];
      if (own.length === 0) continue;
      const frame = new FrameBuilder(own.length);
      for (const key of own) frame.append(rowKind.state, key, noBytes);
      await this.#append(range, { frame: frame.finish() });
    }
  }

  async #append({ rangeId }: IndexedRange, write: Omit<RangeWrite, 'rangeId'>): Promise<void> {
    const timeMs = this.#deps.clock.nowMs();
    const timestamp = new Date(timeMs).toISOString();
    await this.#deps.log.append({ writes: [{ rangeId, ...write }], requestId: this.name, timeMs, timestamp });
  }
}
