import { rmSync } from 'node:fs';
import { join } from 'node:path';
import packageFile from '../../package.json' with { type: 'json' };
import type { LimitOptions } from '../config/limits.ts';
import { limitsOf } from '../config/load.ts';
import type { IndexDefinition } from '../engine/index-definition.ts';
import { NativeIndex } from '../engine/native-index.ts';
import { queryIndexes } from '../engine/native-query.ts';
import { allRoutes } from '../http/all-routes.ts';
import type { App } from '../http/app.ts';
import type { ClusterSource } from '../http/database/cluster.ts';
import { OpenRange, type RangeIndexOpener } from '../indexing/open-range.ts';
import { RangePool } from '../indexing/range-pool.ts';
import type { Inference } from '../inference/inference.ts';
import { systemClock } from '../lib/clock.ts';
import { startEventLoopMonitor } from '../observability/event-loop-monitor.ts';
import type { Health } from '../observability/health.ts';
import { Metrics } from '../observability/metrics.ts';
import { startMetricsServer } from '../observability/metrics-server.ts';
import { addProcessMetrics } from '../observability/process-metrics.ts';
import { Readiness } from '../observability/readiness.ts';
import { CursorSeal } from '../query/page-cursor.ts';
import { LocalRangeLog } from '../replication/local-range-log.ts';
import type { RangeLog } from '../replication/range-log.ts';
import { openStorage, type Storage } from '../storage/open-storage.ts';
import { BatchWriter } from '../tables/batch-writer.ts';
import { DocumentReads } from '../tables/document-reads.ts';
import { IndexService } from '../tables/index-service.ts';
import { Scrubber } from '../tables/scrubber.ts';
import { definitionOf } from '../tables/table.ts';
import { TableQueries } from '../tables/table-queries.ts';
import { TableService } from '../tables/table-service.ts';
import { TtlSweeper } from '../tables/ttl-sweeper.ts';
import { createApp } from './create-app.ts';
import { openInference, startInference, stopInference } from './open-inference.ts';
import type { RunningServer, ServerStart } from './running-server.ts';
import { addHealthChecks, nodeHealth, openHealth } from './service-health.ts';
import { collectServiceMetrics, indexEvents } from './service-metrics.ts';

/** A query waits this long for an index that has just been opened to replay its tail, in milliseconds. */
const freshnessWaitMs = 5_000;

/** Builds every service once and hands the listener over to them. */
export async function startServer({ config, listener, logger, clock }: ServerStart): Promise<RunningServer> {
  const options = config.config;
  const limits = limitsOf(options);
  const metrics = new Metrics();
  const fatal = Promise.withResolvers<void>();
  const health = openHealth(logger, metrics, (rangeId) => service?.findOwner(rangeId)?.name);
  let service: TableService | undefined;
  const storage = await openStorage({
    directory: options.dataDir,
    clock,
    failpoint: options.failpoint,
    health,
    onCommit({ requests, durationMs }) {
      metrics.observe('writerGroup', [], requests);
      metrics.observe('writerCommit', [], durationMs / 1_000);
    },
    onFatal(error) {
      logger.error('the disk failed; the server stops and recovers at its next start', {}, error);
      fatal.resolve();
    },
  });
  for (const warning of storage.start.warnings) logger.warn(warning);
  const log = new LocalRangeLog(storage);
  const shared: Shared = { config, listener, logger, clock, limits, metrics, health, storage, log };
  const { tables, pool } = await openTables(shared);
  service = tables;
  const sweeper = buildSweeper(shared, tables);
  const stopping = new AbortController();
  const background = [sweeper.run(stopping.signal), buildScrubber(shared, tables).run(stopping.signal)];
  const readiness = new Readiness();
  const inferenceParts = { config: options, limits, clock, logger: logger.component('inference'), metrics };
  const inference = openInference(inferenceParts);
  const app = buildApp(shared, tables, inference, readiness);
  readiness.add('draining', () => !app.inFlight.draining);
  addHealthChecks(readiness, health);
  addProcessMetrics(metrics, clock, packageFile.version);
  collectServiceMetrics(metrics, { app, config, pool, sweeper, tables });
  // The thread's own time, whatever the clock of the data says.
  const stopMonitor = startEventLoopMonitor(systemClock, metrics);
  const metricsServer = startMetricsServer(options.metricsHost, options.metricsPort, metrics, readiness);
  startInference(inference, inferenceParts, readiness);
  listener.attach(app);

  return {
    url: listener.url,
    facts: { data_dir: options.dataDir },
    fatal: fatal.promise,
    async drain(deadlineMs) {
      const cut = await listener.drain(app, deadlineMs, clock);
      if (cut > 0) logger.warn('requests were cut at the drain deadline', { requests: cut });
    },
    async stop() {
      stopMonitor();
      stopping.abort();
      await Promise.all(background);
      await stopInference(inference);
      tables.stop();
      await pool.closeAll();
      await storage.close();
      await metricsServer.stop();
    },
  };
}

/** What every part of the server leans on. */
interface Shared extends ServerStart {
  limits: LimitOptions;
  metrics: Metrics;
  health: Health;
  storage: Storage;
  log: RangeLog;
}

async function openTables(shared: Shared): Promise<{ tables: TableService; pool: RangePool }> {
  const { storage, log, clock, limits, logger, metrics, health, config } = shared;
  const pool = new RangePool((rangeId) => openRange(rangeId), limits.openRangesMax);
  const tables = new TableService({ storage, log, pool, clock, defaultShards: config.config.defaultShardsPerTable });
  const openRange = async (rangeId: number) => {
    const table = tables.ownerOf(rangeId);
    const stored = await storage.openRange(rangeId, table.ttlDurationMs);
    for (const warning of stored.warnings) logger.warn(warning, { table: table.name, range_id: rangeId });
    const parts = {
      stored,
      indexesDirectory: storage.directory.indexesDirectory(rangeId, stored.info().generation),
      openIndex,
      removeIndexFiles: (directory: string, definition: IndexDefinition) =>
        rmSync(indexDirectory(directory, definition), { recursive: true, force: true }),
      clock,
      bounds: applierBounds(limits),
      onIndexEvent: (range_id: number, { name, kind }: IndexDefinition) =>
        indexEvents({ logger, metrics, health }, { table: table.name, index: name, range_id, kind }),
    };
    return new OpenRange(parts, table.indexes.map(definitionOf));
  };
  await tables.load();
  return { tables, pool };
}

function buildSweeper({ storage, log, clock, limits, logger, metrics }: Shared, tables: TableService): TtlSweeper {
  return new TtlSweeper({
    tables: () => tables.all(),
    log,
    wallClockMark: storage.catalog.wallClockMark(),
    noteWallClock: (nowMs) => storage.catalog.noteWallClock(nowMs),
    clock,
    limits,
    onSwept(table, documents) {
      metrics.increment('ttlDeleted', [], documents);
      logger.debug('expired documents removed', { table, documents });
    },
    onPaused: (jumpMs) =>
      logger.warn('the clock jumped; expired documents stay on disk for a while', { jump_ms: jumpMs }),
    onFailed: (table, error) => logger.warn('expired documents could not be removed', { table }, error),
  });
}

function buildScrubber({ clock, config, logger, health }: Shared, tables: TableService): Scrubber {
  return new Scrubber({
    tables: () => tables.all(),
    clock,
    intervalMs: config.config.scrubIntervalMs,
    onDamaged: (rangeId, key) => health.documentDamaged(rangeId, key),
    onRangeRead: (rangeId, damaged) => health.rangeRead(rangeId, damaged),
    onFailed: (table, error) => logger.warn('a table could not be scrubbed', { table }, error),
  });
}

function buildApp(shared: Shared, tables: TableService, inference: Inference, readiness: Readiness): App {
  const { storage, log, clock, metrics } = shared;
  const writes = new BatchWriter(tables, log, clock, {
    wrote({ inserted, deleted, transformed }) {
      if (inserted > 0) metrics.increment('batchDocuments', ['insert', 'ok'], inserted);
      if (deleted > 0) metrics.increment('batchDocuments', ['delete', 'ok'], deleted);
      if (transformed > 0) metrics.increment('batchDocuments', ['transform', 'ok'], transformed);
    },
    refused: () => metrics.increment('backpressure'),
  });
  const services = {
    tables,
    writes,
    documents: new DocumentReads(tables, clock),
    queries: buildQueries(shared, tables),
    indexes: new IndexService(tables, storage),
    cluster: clusterSource(shared, tables),
    inference,
    readiness,
  };
  return createApp(shared, allRoutes(services, packageFile.version));
}

function buildQueries({ storage, clock, limits, logger, metrics, config }: Shared, tables: TableService): TableQueries {
  return new TableQueries({
    tables,
    run: (indexes, plan, caller) => queryIndexes(indexes.handles, JSON.stringify(plan), caller, indexes),
    clock,
    cursors: new CursorSeal(storage.secrets.cursorKey),
    queryTimeoutMs: limits.queryDeadlineMs,
    freshnessWaitMs,
    onQuery({ table, planMs, searchMs, tookMs }) {
      metrics.increment('queries', ['ok']);
      metrics.observe('queryStage', ['plan'], planMs / 1_000);
      metrics.observe('queryStage', ['search'], searchMs / 1_000);
      if (tookMs < config.config.slowQueryMs) return;
      metrics.increment('slowQueries');
      logger.warn('slow query', { table, duration_ms: tookMs });
    },
    onFailure: () => metrics.increment('queries', ['error']),
  });
}

function applierBounds(limits: LimitOptions) {
  return {
    visibilityMs: limits.visibilityDelayMs,
    busyVisibilityMs: limits.busyVisibilityDelayMs,
    visibilityBytes: limits.visibilityBytesMax,
    queueBytesMax: limits.backlogBytesMax,
    backlogBytesMax: limits.backlogBytesMax,
    checkpointMs: limits.checkpointIntervalMs,
    checkpointBytes: limits.checkpointBytesMax,
    writerIdleMs: limits.writerIdleMs,
    verifyDelayMs: limits.verifyDelayMs,
    vectorWriterIdleMs: limits.vectorWriterIdleMs,
  };
}

const openIndex: RangeIndexOpener = (directory, definition) => (wipe) =>
  NativeIndex.open(indexDirectory(directory, definition), definition, wipe);

/** The number alone tells directories apart; the name, cut to what any file system takes, is for people. */
function indexDirectory(indexesDirectory: string, definition: { name: string; incarnation: number }): string {
  const readable = definition.name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
  return join(indexesDirectory, `${readable}@${definition.incarnation}`);
}

function clusterSource({ storage, config, listener, health }: Shared, tables: TableService): ClusterSource {
  return {
    tables: () => tables.all(),
    health: () => nodeHealth(health, tables),
    config: () => config.state,
    dataDirectory: storage.directory.root,
    apiUrl: () => listener.url,
  };
}
