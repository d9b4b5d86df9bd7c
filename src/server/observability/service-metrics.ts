import { statfsSync } from 'node:fs';
import type { RunningConfig } from '../../config/reload.ts';
import type { App } from '../../http/listener/app.ts';
import type { RangePool } from '../../indexing/range-pool.ts';
import type { Metrics } from '../../observability/metrics.ts';
import { openConnections } from '../../observability/open-connections.ts';
import type { Table } from '../../tables/table.ts';
import type { Database } from '../database/open-database.ts';

/** Refreshes, at every scrape, what is counted elsewhere. No range is opened for it. */
export function collectServiceMetrics(
  metrics: Metrics,
  parts: { app: App; config: RunningConfig; database: Database; port: number },
): void {
  const { app, config, database, port } = parts;
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
    const connections = openConnections(port);
    if (connections !== undefined) metrics.set('httpConnections', [], connections);
    const replay = database.replay.progress();
    metrics.set('replayingRanges', [], replay === undefined ? 0 : replay.ranges - replay.rangesDone);
    metrics.set('ttlPaused', [], sweeper.paused ? 1 : 0);
    const { reloadSuccesses, reloadFailures } = config.state;
    metrics.clear('configReloads');
    metrics.increment('configReloads', ['success'], reloadSuccesses);
    metrics.increment('configReloads', ['failure'], reloadFailures);
    collectTables(metrics, pool, all);
    collectOpenRanges(metrics, pool);
    collectDisk(metrics, database);
  });
}

/** A table of which a range is just being opened or closed keeps the values of the scrape before. */
function collectTables(metrics: Metrics, pool: RangePool, tables: readonly Table[]): void {
  const names = new Set(tables.map(({ name }) => name));
  for (const metric of ['documents', 'storedBytes', 'logHead', 'indexLag'] as const) {
    metrics.forget(metric, (table) => !names.has(table));
  }
  for (const { name, ranges } of tables) {
    const facts = ranges.flatMap(({ rangeId }) => pool.known(rangeId) ?? []);
    if (facts.length < ranges.length) continue;
    metrics.set(
      'documents',
      [name],
      sum(facts, ({ documents }) => documents),
    );
    metrics.set(
      'storedBytes',
      [name],
      sum(facts, ({ bytes }) => bytes),
    );
    metrics.set('logHead', [name], Math.max(...facts.map(({ head }) => head)));
    const lags = new Map<string, number>();
    for (const { name: index, lag } of facts.flatMap(({ indexes }) => indexes)) {
      lags.set(index, (lags.get(index) ?? 0) + lag);
    }
    for (const [index, lag] of lags) metrics.set('indexLag', [name, index], lag);
  }
}

function collectOpenRanges(metrics: Metrics, pool: RangePool): void {
  const open = pool.openRanges();
  metrics.set('openRanges', [], open.length);
  metrics.set('openRangesMax', [], pool.openRangesMax);
  metrics.set(
    'indexBacklog',
    [],
    sum(open, ({ backlogBytes }) => backlogBytes),
  );
  metrics.clear('rangesOpened');
  metrics.clear('rangesEvicted');
  metrics.increment('rangesOpened', [], pool.counts.opened);
  metrics.increment('rangesEvicted', [], pool.counts.evicted);
  const { heapUsed, external } = process.memoryUsage();
  metrics.set('memoryByPart', ['javascript_heap'], heapUsed);
  metrics.set('memoryByPart', ['javascript_buffers'], external);
  metrics.set(
    'memoryByPart',
    ['index_files'],
    sum(open, (range) => range.indexMemoryBytes()),
  );
}

function collectDisk(metrics: Metrics, { directory, pool, catalogLogBytes }: Database): void {
  const disk = statfsSync(directory);
  metrics.set('diskFree', [], disk.bavail * disk.bsize);
  metrics.set('diskSize', [], disk.blocks * disk.bsize);
  const ranges = sum(pool.openRanges(), ({ stored }) => stored.logBytes());
  metrics.set('walBytes', [], ranges + catalogLogBytes());
}

function sum<Item>(items: readonly Item[], value: (item: Item) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
