import type { RunningConfig } from '../config/reload.ts';
import type { IndexKind } from '../engine/index-definition.ts';
import type { App } from '../http/app.ts';
import type { ApplierEvents, IndexStage } from '../indexing/index-applier.ts';
import type { RangePool } from '../indexing/range-pool.ts';
import type { Health } from '../observability/health.ts';
import type { Logger } from '../observability/logger.ts';
import type { MetricName } from '../observability/metric-definitions.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { TableService } from '../tables/table-service.ts';
import type { TtlSweeper } from '../tables/ttl-sweeper.ts';

const stageMetrics: Record<IndexStage, MetricName> = {
  apply: 'indexApply',
  commit: 'indexCommit',
  checkpoint: 'indexCheckpoint',
};

/** What the life of an index tells to the log and to metrics. */
export function indexEvents(
  { logger, metrics, health }: { logger: Logger; metrics: Metrics; health: Health },
  where: { table: string; index: string; range_id: number; kind: IndexKind },
): ApplierEvents {
  const subject = { rangeId: where.range_id, index: where.index };
  return {
    skipped(documents) {
      metrics.increment('indexSkipped', [where.kind], documents.length);
      for (const { reason } of documents) logger.warn('a document could not be indexed', { ...where, reason });
    },
    rebuilding(reason) {
      metrics.increment('indexRebuilds', [reason, where.kind]);
      logger.warn('an index is built again from the documents', { ...where, reason });
    },
    failed(error, attempt) {
      logger.error('an index failed and is opened again from its last checkpoint', { ...where, attempt }, error);
      const message = 'has failed and is opened again; queries are answered once it is open';
      health.raise({ kind: 'index_failed', ...subject, blocks: 'nothing', message });
    },
    live: () => health.clear('index_failed', subject),
    closed: () => health.clear('index_failed', subject),
    timed: (stage, durationMs) => metrics.observe(stageMetrics[stage], [where.kind], durationMs / 1_000),
  };
}

/** Refreshes, at every scrape, what is counted elsewhere. Only ranges that are open are looked at. */
export function collectServiceMetrics(
  metrics: Metrics,
  parts: { app: App; config: RunningConfig; pool: RangePool; sweeper: TtlSweeper; tables: TableService },
): void {
  const { app, config, pool, sweeper, tables } = parts;
  metrics.onCollect(() => {
    const all = tables.all();
    metrics.set('tables', [], all.length);
    metrics.set(
      'ranges',
      [],
      all.reduce((total, table) => total + table.ranges.length, 0),
    );
    metrics.set('httpInFlight', [], app.inFlight.count);
    metrics.set('ttlPaused', [], sweeper.paused ? 1 : 0);
    const { reloadSuccesses, reloadFailures } = config.state;
    metrics.clear('configReloads');
    metrics.increment('configReloads', ['success'], reloadSuccesses);
    metrics.increment('configReloads', ['failure'], reloadFailures);
    collectRanges(metrics, pool, tables);
  });
}

function collectRanges(metrics: Metrics, pool: RangePool, tables: TableService): void {
  const perTable = new Map<string, { documents: number; bytes: number; head: number; lags: Map<string, number> }>();
  for (const range of pool.openRanges()) {
    const { name } = tables.ownerOf(range.rangeId);
    const sums = perTable.get(name) ?? { documents: 0, bytes: 0, head: 0, lags: new Map() };
    const { documents, bytes } = range.stored.info();
    sums.documents += documents;
    sums.bytes += bytes;
    sums.head = Math.max(sums.head, range.head);
    for (const { index, lag } of range.indexLags()) sums.lags.set(index, (sums.lags.get(index) ?? 0) + lag);
    perTable.set(name, sums);
  }
  for (const name of ['documents', 'storedBytes', 'logHead', 'indexLag'] as const) metrics.clear(name);
  for (const [table, { documents, bytes, head, lags }] of perTable) {
    metrics.set('documents', [table], documents);
    metrics.set('storedBytes', [table], bytes);
    metrics.set('logHead', [table], head);
    for (const [index, lag] of lags) metrics.set('indexLag', [table, index], lag);
  }
}
