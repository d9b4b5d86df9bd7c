import { rmSync } from 'node:fs';
import { join } from 'node:path';
import packageFile from '../package.json' with { type: 'json' };
import type { RunningServer, ServerStart } from './cli/serve.ts';
import { exitCodes } from './cli/verb.ts';
import type { LimitOptions } from './config/limits.ts';
import { limitsOf } from './config/load.ts';
import { scanJson } from './engine/binding.ts';
import { NativeTextIndex, queryTextIndexes } from './engine/text-index.ts';
import { allRoutes } from './http/all-routes.ts';
import { App } from './http/app.ts';
import type { ClusterSource } from './http/database/cluster.ts';
import { OpenRange, type TextIndexOpener } from './indexing/open-range.ts';
import { RangePool } from './indexing/range-pool.ts';
import { startEventLoopMonitor } from './observability/event-loop-monitor.ts';
import type { Logger } from './observability/logger.ts';
import { Metrics } from './observability/metrics.ts';
import { startMetricsServer } from './observability/metrics-server.ts';
import { addProcessMetrics } from './observability/process-metrics.ts';
import { Readiness } from './observability/readiness.ts';
import { openStorage, type Storage } from './storage/open-storage.ts';
import { BatchWriter } from './tables/batch-writer.ts';
import { DocumentReads } from './tables/document-reads.ts';
import { IndexService } from './tables/index-service.ts';
import { definitionOf } from './tables/table.ts';
import { TableQueries } from './tables/table-queries.ts';
import { TableService } from './tables/table-service.ts';
import { TtlSweeper } from './tables/ttl-sweeper.ts';

/** A query waits this long for an index that has just been opened to replay its tail, in milliseconds. */
const freshnessWaitMs = 5_000;
/** An index's writer is given back after this long without a row, in milliseconds. */
const writerIdleMs = 5_000;

/** Builds every service once and hands the listener over to them. */
export async function startServer({ config, listener, logger, clock }: ServerStart): Promise<RunningServer> {
  const options = config.config;
  const limits = limitsOf(options);
  const metrics = new Metrics();
  const readiness = new Readiness();
  const fatal = Promise.withResolvers<number>();
  const storage = await openStorage({
    directory: options.dataDir,
    clock,
    failpoint: options.failpoint,
    onFatal(error) {
      logger.error('the disk failed; the server stops and recovers at its next start', {}, error);
      fatal.resolve(exitCodes.storageFailed);
    },
  });
  for (const warning of storage.start.warnings) logger.warn(warning);
  const pool = new RangePool((rangeId) => openRange(rangeId), limits.openRangesMax);
  const tables = new TableService({ storage, pool, clock, defaultShards: options.defaultShardsPerTable });
  const openRange = async (rangeId: number) => {
    const table = tables.ownerOf(rangeId);
    const stored = await storage.openRange(rangeId, table.ttlDurationMs);
    for (const warning of stored.warnings) logger.warn(warning, { table: table.name, range_id: rangeId });
    return new OpenRange(
      {
        stored,
        indexesDirectory: storage.directory.indexesDirectory(rangeId, stored.info().generation),
        openTextIndex,
        removeIndexFiles: (directory, definition) =>
          rmSync(indexDirectory(directory, definition), { recursive: true, force: true }),
        clock,
        bounds: applierBounds(limits),
        onIndexEvent: (range, index) => indexEvents(logger, metrics, table.name, range, index),
      },
      table.indexes.map(definitionOf),
    );
  };
  await tables.load();

  const append = storage.append.bind(storage);
  const sweeper = new TtlSweeper({
    tables: () => tables.all(),
    append,
    clock,
    limits,
    onSwept: (table, documents) => {
      metrics.increment('ttlDeleted', [], documents);
      logger.debug('expired documents removed', { table, documents });
    },
    onPaused: (jumpMs) => logger.warn('the clock jumped; expired documents stay on disk for a while', { jump_ms: jumpMs }),
    onFailed: (table, error) => logger.warn('expired documents could not be removed', { table }, error),
  });
  const stopping = new AbortController();
  const sweeping = sweeper.run(stopping.signal);

  const queries = new TableQueries({
    tables,
    run: (handles, plan, signal) => queryTextIndexes(handles, JSON.stringify(plan), signal),
    clock,
    queryTimeoutMs: limits.queryDeadlineMs,
    freshnessWaitMs,
    onQuery({ table, planMs, searchMs, tookMs }) {
      metrics.observe('queryStage', ['plan'], planMs / 1_000);
      metrics.observe('queryStage', ['search'], searchMs / 1_000);
      if (tookMs < config.config.slowQueryMs) return;
      metrics.increment('slowQueries');
      logger.warn('slow query', { table, duration_ms: tookMs });
    },
  });
  const routes = allRoutes(
    {
      tables,
      writes: new BatchWriter(tables, append, clock),
      documents: new DocumentReads(tables, clock),
      queries,
      indexes: new IndexService(tables, storage),
      cluster: clusterSource({ storage, tables, config, listener }),
      readiness,
    },
    packageFile.version,
  );
  const app = new App({
    routes,
    scanJson,
    clock,
    logger: logger.component('http'),
    freshId: () => crypto.randomUUID(),
    limits,
    observe({ route, method, status, durationMs }) {
      metrics.increment('httpRequests', [route, method, String(status)]);
      metrics.observe('httpDuration', [route, method], durationMs / 1_000);
    },
    onFault: () => metrics.increment('faults'),
    extendIdle: (request, seconds) => listener.extendIdle(request, seconds),
  });
  readiness.add('draining', () => !app.inFlight.draining);
  readiness.add('storage', () => storage.writable);
  addProcessMetrics(metrics, clock, packageFile.version);
  addTableMetrics(metrics, tables, app);
  const stopMonitor = startEventLoopMonitor(clock, metrics);
  const metricsServer = startMetricsServer(options.metricsHost, options.metricsPort, metrics, readiness);
  listener.attach(app);

  return {
    url: listener.url,
    fatal: fatal.promise,
    async drain(deadlineMs) {
      const cut = await listener.drain(app, deadlineMs, clock);
      if (cut > 0) logger.warn('requests were cut at the drain deadline', { requests: cut });
    },
    async stop() {
      stopMonitor();
      stopping.abort();
      await sweeping;
      tables.stop();
      await pool.closeAll();
      await storage.close();
      await metricsServer.stop();
    },
  };
}

function applierBounds(limits: LimitOptions) {
  return {
    visibilityMs: limits.visibilityDelayMs,
    visibilityBytes: limits.visibilityBytesMax,
    queueBytesMax: limits.backlogBytesMax,
    backlogBytesMax: limits.backlogBytesMax,
    checkpointMs: limits.checkpointIntervalMs,
    checkpointBytes: limits.checkpointBytesMax,
    writerIdleMs,
  };
}

const openTextIndex: TextIndexOpener = (directory, definition) => (wipe) =>
  NativeTextIndex.open(
    indexDirectory(directory, definition),
    {
      name: definition.name,
      incarnation: String(definition.incarnation),
      memOnly: definition.memOnly,
      schema: definition.schema,
    },
    wipe,
  );

/** The number alone tells directories apart; the name, cut to what any file system takes, is for people. */
function indexDirectory(indexesDirectory: string, definition: { name: string; incarnation: number }): string {
  const readable = definition.name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
  return join(indexesDirectory, `${readable}@${definition.incarnation}`);
}

function indexEvents(logger: Logger, metrics: Metrics, table: string, rangeId: number, index: string) {
  const where = { table, index, range_id: rangeId };
  return {
    skipped(documents: { key: string; reason: string }[]) {
      metrics.increment('indexSkipped', [], documents.length);
      for (const { reason } of documents) logger.warn('a document could not be indexed', { ...where, reason });
    },
    failed(error: unknown, attempt: number) {
      logger.error('an index failed and is opened again from its last checkpoint', { ...where, attempt }, error);
    },
  };
}

function addTableMetrics(metrics: Metrics, tables: TableService, app: App): void {
  metrics.onCollect(() => {
    const all = tables.all();
    metrics.set('tables', [], all.length);
    metrics.set('ranges', [], all.reduce((total, table) => total + table.ranges.length, 0));
    metrics.set('httpInFlight', [], app.inFlight.count);
  });
}

function clusterSource(parts: {
  storage: Storage;
  tables: TableService;
  config: ServerStart['config'];
  listener: ServerStart['listener'];
}): ClusterSource {
  const { storage, tables, config, listener } = parts;
  return {
    tables: () => tables.all(),
    problems: () => (storage.writable ? [] : ['The data directory cannot be written.']),
    writable: () => storage.writable,
    config: () => config.state,
    dataDirectory: storage.directory.root,
    apiUrl: () => listener.url,
  };
}

