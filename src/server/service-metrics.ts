import type { RunningConfig } from '../config/reload.ts';
import type { App } from '../http/app.ts';
import type { RangePool } from '../indexing/range-pool.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { TableService } from '../tables/table-service.ts';
import type { Database } from './open-database.ts';

/** Refreshes, at every scrape, what is counted elsewhere. Only ranges that are open are looked at. */
export function collectServiceMetrics(
  metrics: Metrics,
  parts: { app: App; config: RunningConfig; database: Database },
): void {
  const { app, config, database } = parts;
  const { pool, sweeper } = database;
  const { tables } = database.services;
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
