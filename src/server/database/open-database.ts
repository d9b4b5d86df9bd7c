import type { LimitOptions } from '../../config/limits.ts';
import { queryIndexes } from '../../engine/native-query.ts';
import type { Enrichment } from '../../enrichment/enrichment.ts';
import { Templates } from '../../enrichment/template/templates.ts';
import type { RangePool } from '../../indexing/range-pool.ts';
import type { StartReplay } from '../../indexing/start-replay.ts';
import type { Providers } from '../../inference/providers/providers.ts';
import type { JobRunner } from '../../jobs/job-runner.ts';
import type { Clock } from '../../lib/clock.ts';
import { type Service, supervise } from '../../lib/concurrency/supervise.ts';
import type { Health } from '../../observability/health.ts';
import type { LogFields } from '../../observability/logger.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import { CursorSeal } from '../../query/execution/page-cursor.ts';
import { QueryEmbeddings } from '../../query/inputs/query-embeddings.ts';
import { QueryService } from '../../query/query-service.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { CatalogAccessStore } from '../../storage/catalog/access-store.ts';
import type { Storage } from '../../storage/open-storage.ts';
import { SqlProcesses } from '../../storage/sql/sql-processes.ts';
import { ArtifactService } from '../../tables/artifacts/artifact-service.ts';
import { ArtifactTrace } from '../../tables/artifacts/artifact-trace.ts';
import { AlgorithmJob } from '../../tables/graph/algorithm-job.ts';
import { AlgorithmService } from '../../tables/graph/algorithm-service.ts';
import type { EdgeSweeper } from '../../tables/graph/edge-sweeper.ts';
import { GraphService } from '../../tables/graph/graph-service.ts';
import { TraversalCounts } from '../../tables/graph/traversal-counts.ts';
import { IndexPreviews } from '../../tables/indexes/index-preview.ts';
import { IndexService } from '../../tables/indexes/index-service.ts';
import { DocumentReads } from '../../tables/reads/document-reads.ts';
import { SqlService } from '../../tables/relational/sql-service.ts';
import type { TableService } from '../../tables/table-service.ts';
import { TransactionSessions } from '../../tables/transactions/transaction-sessions.ts';
import type { TtlSweeper } from '../../tables/upkeep/ttl-sweeper.ts';
import { BatchWriter } from '../../tables/writes/batch-writer.ts';
import type { TableOf } from '../observability/service-health.ts';
import { logSlowQuery } from '../observability/slow-query-log.ts';
import { buildClockGuard, buildEdgeSweeper, buildReplay, buildScrubber, buildSweeper } from './background-services.ts';
import { type DatabaseCore, type DatabaseOptions, openCore, serviceFailed } from './database-core.ts';
import { openTables } from './open-tables.ts';

/** A data directory that is open, with the services over it: no listener, no signal handlers, nothing of the command line. */
export interface Database {
  readonly services: {
    readonly tables: TableService;
    readonly writes: BatchWriter;
    readonly documents: DocumentReads;
    readonly transactions: TransactionSessions;
    readonly queries: QueryService;
    readonly indexes: IndexService;
    readonly indexPreviews: IndexPreviews;
    readonly graphs: GraphService;
    readonly graphAlgorithms: AlgorithmService;
    readonly sql: SqlService;
    readonly artifacts: ArtifactService;
    readonly artifactTrace: ArtifactTrace;
  };
  readonly storage: Storage;
  readonly log: RangeLog;
  readonly jobs: JobRunner;
  /** Where users and keys are kept. */
  readonly access: CatalogAccessStore;
  readonly health: Health;
  readonly pool: RangePool;
  readonly replay: StartReplay;
  readonly sweeper: TtlSweeper;
  readonly edgeSweeper: EdgeSweeper;
  /** The absolute path of the data directory. */
  readonly directory: string;
  /** Bytes of the catalog's write-ahead log. */
  catalogLogBytes(): number;
  /** Resolves when a sync has failed: what was acknowledged is durable, and the directory has to be opened again. */
  readonly failed: Promise<void>;
  /** Ends what runs in the background and closes the directory. */
  close(): Promise<void>;
}

/** Opens the data directory that the options name, and starts what runs in the background. */
export async function openDatabase(given: DatabaseOptions): Promise<Database> {
  const failed = Promise.withResolvers<void>();
  const { core, tables, pool, jobs, enrichment } = await openParts(given, () => failed.resolve());
  const guard = buildClockGuard(core);
  const sweeper = buildSweeper(core, tables, guard);
  const edgeSweeper = buildEdgeSweeper(core, tables, guard);
  const stopping = new AbortController();
  const replay = buildReplay(core, tables, pool);
  const writes = buildWrites(core, tables, enrichment);
  const templates = new Templates(core.clock, core.limits.templateKeptMs);
  const documents = new DocumentReads(tables, core.clock, templates);
  const traversals = new TraversalCounts();
  const graphs = new GraphService(tables, core.clock, traversals);
  const transactions = buildTransactions(core, writes, documents);
  const { sqlProcessesMax: processesMax, sqlMemoryBytesMax: memoryBytes } = core.limits;
  const processes = new SqlProcesses(core.clock, { processesMax, memoryBytes });
  const services: Service[] = [replay, sweeper, edgeSweeper, buildScrubber(core, tables), pool, jobs, transactions];
  const background = services.map((service) => supervise(service, supervision(core, stopping.signal)));
  return {
    services: {
      tables,
      writes,
      documents,
      transactions,
      queries: buildQueries(core, tables, templates, graphs),
      indexes: new IndexService(tables, { storage: core.storage, enrichment, clock: core.clock, traversals }),
      indexPreviews: new IndexPreviews({ tables, enrichment, clock: core.clock }),
      graphs,
      graphAlgorithms: new AlgorithmService(tables, jobs, new AlgorithmJob({ tables, writes, clock: core.clock })),
      sql: buildSql(core, tables, processes),
      artifacts: new ArtifactService(tables, core.storage, enrichment),
      artifactTrace: new ArtifactTrace(tables, documents),
    },
    storage: core.storage,
    log: core.log,
    jobs,
    access: core.storage.access,
    health: core.health,
    pool,
    replay,
    sweeper,
    edgeSweeper,
    directory: core.storage.directory.root,
    catalogLogBytes: () => core.storage.catalogLogBytes(),
    failed: failed.promise,
    async close() {
      stopping.abort();
      await Promise.all(background);
      await processes.close();
      tables.stop();
      try {
        await pool.closeAll(core.limits.stopCheckpointsMs);
      } finally {
        await core.storage.close();
      }
    },
  };
}

async function openParts(given: DatabaseOptions, onFailed: () => void) {
  const tablesOpen = Promise.withResolvers<TableOf>();
  try {
    await using opened = new AsyncDisposableStack();
    const core = await openCore(given, onFailed, tablesOpen.promise);
    opened.defer(() => core.storage.close());
    const { tables, pool, jobs, enrichment } = await openTables(core);
    opened.move();
    tablesOpen.resolve((rangeId) => tables.findOwner(rangeId)?.name);
    return { core, tables, pool, jobs, enrichment };
  } catch (error) {
    tablesOpen.resolve(() => undefined);
    throw error;
  }
}

function supervision({ clock, logger }: DatabaseCore, signal: AbortSignal) {
  return { clock, signal, onFailed: serviceFailed(logger) };
}

function buildWrites(
  { log, clock, limits, metrics }: DatabaseCore,
  tables: TableService,
  enrichment: Enrichment,
): BatchWriter {
  return new BatchWriter(
    { tables, log, clock, enrichment, columns: tables.columns, limits },
    {
      wrote({ inserted, deleted, transformed, failed = 0 }) {
        if (inserted > 0) metrics.increment('batchDocuments', ['insert', 'ok'], inserted);
        if (deleted > 0) metrics.increment('batchDocuments', ['delete', 'ok'], deleted);
        if (transformed > 0) metrics.increment('batchDocuments', ['transform', 'ok'], transformed);
        if (failed > 0) metrics.increment('batchDocuments', ['transform', 'failed'], failed);
      },
      paced: () => metrics.increment('pacedWrites'),
      refused: () => metrics.increment('backpressure'),
    },
  );
}

function buildSql({ storage, clock, limits }: DatabaseCore, tables: TableService, processes: SqlProcesses): SqlService {
  return new SqlService({ tables, processes, clock, storage, timeoutMs: limits.queryDeadlineMs });
}

function buildTransactions(
  { clock, limits, metrics }: DatabaseCore,
  writer: BatchWriter,
  documents: DocumentReads,
): TransactionSessions {
  const freshId = () => crypto.randomUUID().replaceAll('-', '');
  const sessions = new TransactionSessions({ writer, documents, clock, bounds: limits, freshId });
  metrics.onCollect(() => {
    metrics.set('transactions', [], sessions.size.sessions);
    metrics.set('transactionBytes', [], sessions.size.bytes);
  });
  return sessions;
}

/** Table and range of an error, as far as it names them. */
function whereOf({ details }: ServiceError): LogFields {
  const { table, range_id: rangeId } = details ?? {};
  return {
    table: typeof table === 'string' ? table : undefined,
    range_id: typeof rangeId === 'number' ? rangeId : undefined,
  };
}

function queryEmbeddings(providers: Providers, clock: Clock, limits: LimitOptions): QueryEmbeddings {
  return new QueryEmbeddings({
    embedder: (config) => providers.embedder(config),
    clock,
    keptMs: limits.queryVectorsKeptMs,
    bytesMax: limits.queryVectorsBytesMax,
  });
}

function buildQueries(
  { storage, clock, limits, logger, metrics, options, providers, foreign, media }: DatabaseCore,
  tables: TableService,
  templates: Templates,
  graphs: GraphService,
): QueryService {
  return new QueryService({
    tables,
    searchGraphs: graphs.searches.bind(graphs),
    run: (indexes, plan, caller) => queryIndexes(indexes.handles, JSON.stringify(plan), caller, indexes),
    clock,
    cursors: new CursorSeal(storage.secrets.cursorKey),
    templates,
    media,
    embeddings: providers && queryEmbeddings(providers, clock, limits),
    provider: providers && ((config) => providers.provider(config)),
    foreign: foreign && ((connection, table, caller) => foreign.table(connection, table, caller)),
    queryTimeoutMs: limits.queryDeadlineMs,
    onQuery(report) {
      const { stages, tookMs } = report;
      metrics.increment('queries', ['ok']);
      for (const [stage, ms] of Object.entries(stages)) metrics.observe('queryStage', [stage], ms / 1_000);
      if (tookMs < options().slowQueryMs) return;
      metrics.increment('slowQueries');
      logSlowQuery(logger, report, options().slowQueryText);
    },
    onFailure: () => metrics.increment('queries', ['error']),
    onFailedAmongSeveral: (error, request_id) =>
      logger.warn('a query among several failed', { request_id, code: error.code, ...whereOf(error) }, error),
  });
}
