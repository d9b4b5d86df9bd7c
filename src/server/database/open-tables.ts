import type { LimitOptions } from '../../config/limits.ts';
import { JointDisk } from '../../engine/joint-disk.ts';
import { NativeIndex } from '../../engine/native-index.ts';
import { Enrichment } from '../../enrichment/enrichment.ts';
import type { IndexDefinition } from '../../index-kinds/all-kinds.ts';
import { ClosedRanges } from '../../indexing/at-rest/closed-ranges.ts';
import { IndexedRange } from '../../indexing/indexed-range.ts';
import type { RangeIndexOpener } from '../../indexing/indexed-range-deps.ts';
import { openRangesFor, RangePool } from '../../indexing/range-pool.ts';
import { WriterBudget } from '../../indexing/writer-budget.ts';
import type { JobRunner } from '../../jobs/job-runner.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { descriptorLimit } from '../../runtime/descriptors.ts';
import { indexDirectory } from '../../storage/directory/index-directory.ts';
import { isRelational } from '../../tables/relational/relational-schema.ts';
import type { Table } from '../../tables/table.ts';
import { TableService } from '../../tables/table-service.ts';
import { indexEvents } from '../observability/index-events.ts';
import { buildJobs } from './background-services.ts';
import { type DatabaseCore, serviceFailed } from './database-core.ts';

/** The tables of the catalog, and the pool that opens their ranges with the indexes of each. */
export async function openTables(
  core: DatabaseCore,
): Promise<{ tables: TableService; pool: RangePool; jobs: JobRunner; enrichment: Enrichment }> {
  const { storage, log, clock, limits, logger, metrics, health, options } = core;
  const jobs = buildJobs(core);
  const writers = new WriterBudget(limits.indexWritersMax);
  const pool = new RangePool({
    open: (rangeId) => openRange(rangeId),
    closed: new ClosedRanges({
      saved: storage.catalog.rangeFacts(),
      stampOf: (rangeId) => storage.rangeStamp(rangeId),
      save: (facts) => storage.catalog.saveRangeFacts(facts),
    }),
    options: { ...limits, openRangesMax: openRangesFor(descriptorLimit(), limits) },
    clock,
    openDisk: () => new JointDisk(storage.directory.root),
    onCloseFailed: (range_id, error) => logger.warn('a range at rest could not be closed', { range_id }, error),
  });
  // A range that is closed may still take what a full disk has kept from it.
  log.subscribeAll(({ rangeId }) => pool.changed(rangeId));
  const enrichment = new Enrichment({
    embedderOf: (config) => {
      if (core.providers) return core.providers.embedder(config);
      throw new ServiceError('not_implemented', 'this database was opened without providers of models');
    },
    providerOf: (config) => {
      if (core.providers) return core.providers.provider(config);
      throw new ServiceError('not_implemented', 'this database was opened without providers of models');
    },
    media: core.media,
    log,
    clock,
    onFailed: ({ name: index }, error, attempt) =>
      logger.warn('documents wait to be enriched: a provider of models failed', { index, attempt }, error),
    onProduced: (texts) => metrics.increment('enrichedTexts', [], texts),
  });
  const defaultShards = options().defaultShardsPerTable;
  const onServiceFailed = serviceFailed(logger);
  const tables = new TableService({ storage, log, pool, jobs, clock, enrichment, defaultShards, onServiceFailed });
  const doubted = new Set<string>();
  const openRange = async (rangeId: number) => {
    const table = tables.ownerOf(rangeId);
    const packsBodies = options().compressBodies && !isRelational(table.settings.schema);
    const stored = await storage.openRange(rangeId, table.rangeTtl, packsBodies);
    for (const warning of stored.warnings) logger.warn(warning, { table: table.name, range_id: rangeId });
    const deps = {
      stored,
      log,
      indexesDirectory: storage.directory.indexesDirectory(rangeId, stored.info().generation),
      openIndex: openIndexOf(table),
      removeIndexFiles: (directory: string, definition: IndexDefinition) =>
        storage.remove(indexDirectory(directory, definition)),
      clock,
      options: table.isStaged ? loadBounds(limits) : applierBounds(limits),
      onIndexEvent: (range_id: number, { name, kind }: IndexDefinition) =>
        indexEvents({ logger, metrics, health }, { table: table.name, index: name, range_id, kind }),
      writers,
      mayDoubt: ({ incarnation }: IndexDefinition) => {
        const index = `${rangeId}@${incarnation}`;
        const isFirst = !doubted.has(index);
        doubted.add(index);
        return isFirst;
      },
      // A restore brings the vectors and artifacts along.
      ...(table.isStaged ? {} : { openProducer: enrichment.open, openArtifact: enrichment.openArtifact }),
      hasTtl: () => table.ttlDurationMs !== undefined,
    };
    return new IndexedRange(
      deps,
      table.indexes.map(({ definition }) => definition),
      table.artifacts,
    );
  };
  await tables.load();
  return { tables, pool, jobs, enrichment };
}

function applierBounds(limits: LimitOptions) {
  return {
    // Of the time within which a write is found, a tenth.
    gatherMs: limits.visibilityDelayMs / 10,
    visibilityMs: limits.visibilityDelayMs,
    busyVisibilityMs: limits.busyVisibilityDelayMs,
    visibilityBytes: limits.visibilityBytesMax,
    // Writes that were let in at the same time go beyond the backlog together; to read them again would hold all others up.
    queueBytesMax: limits.backlogBytesMax + limits.bodiesInFlightBytesMax,
    backlogBytesMax: limits.backlogBytesMax,
    checkpointMs: limits.checkpointIntervalMs,
    checkpointBytes: limits.checkpointBytesMax,
    writerIdleMs: limits.writerIdleMs,
    verifyDelayMs: limits.verifyDelayMs,
    vectorWriterIdleMs: limits.vectorWriterIdleMs,
  };
}

/** Of a table that a restore loads: nobody sees its rows before all are there, so they are shown with each checkpoint. */
function loadBounds(limits: LimitOptions) {
  const { checkpointIntervalMs: visibilityMs, checkpointBytesMax: visibilityBytes } = limits;
  return { ...applierBounds(limits), visibilityMs, busyVisibilityMs: visibilityMs, visibilityBytes };
}

function openIndexOf({ isStaged }: Table): RangeIndexOpener {
  return (directory, definition) => (wipe) =>
    NativeIndex.open(indexDirectory(directory, definition), definition, wipe, isStaged);
}
