import type { CountedStats, IndexCounts } from '../../index-kinds/index-kind.ts';
import {
  isComplete,
  productionReasons,
  progressOf,
  type RangeIndexReport,
  type Readiness,
  readinessOf,
} from '../../indexing/index-report.ts';
import { checkpointFingerprint, notBuilt, repairScan, singleNode, textMerge } from './constant-members.ts';

/** The index details of the wire (specification 2.5). */
interface IndexDetailsSource {
  config: { name: string; type: string; description: string; version: number; enrichments: unknown[] } & Record<
    string,
    unknown
  >;
  incarnation: string;
  /** The counters that its kind has. */
  counts(stats: CountedStats): IndexCounts;
  ranges: RangeIndexReport[];
  /** Whether queries are answered by it. */
  serves: boolean;
  traversal?: object | undefined;
}

export function renderIndexDetails(source: IndexDetailsSource) {
  const shards = Object.fromEntries(
    source.ranges.map((range) => [String(range.rangeId), renderStatus(source, [range])]),
  );
  return { config: source.config, status: renderStatus(source, source.ranges), shard_status: shards };
}

function renderStatus(source: IndexDetailsSource, ranges: RangeIndexReport[]) {
  const readiness = readinessOf(ranges, source.serves);
  const { target, published, checkpointed } = revisionsOf(ranges);
  const skipped = sum(ranges, (range) => range.skippedCount);
  const rebuilding = ranges.some((range) => range.rebuilding && range.state !== 'live');
  const failed = ranges.find((range) => range.state === 'failed');
  const catchingUp = ranges.some((range) => range.state === 'opening' || range.state === 'catching_up');
  const counts = source.counts({
    docCount: sum(ranges, (range) => range.stats?.docCount ?? 0),
    termCount: sum(ranges, (range) => range.stats?.termCount ?? 0),
  });
  const blockers = readiness.reasons;
  const unwritten = ranges.find((range) => range.unwritten)?.unwritten;
  const blocker = ranges.find(({ production }) => production?.blocker)?.production?.blocker;
  return {
    index_type: source.config.type,
    readiness: {
      state: readiness.state,
      queryable: readiness.queryable,
      complete: readiness.complete,
      incarnation: source.incarnation,
      target_revision: target,
      published_revision: published,
      pending_reasons: readiness.reasons,
      sources: renderSources(ranges),
    },
    incarnation: source.incarnation,
    target_revision: target,
    published_revision: published,
    milestones: {
      queryable: { reached: readiness.queryable, blockers: readiness.queryable ? [] : blockers },
      complete: { reached: readiness.complete, blockers },
    },
    error: failed?.error ?? blocker?.message ?? unwritten ?? '',
    total_indexed: counts.doc_count,
    ...(source.config.type === 'embeddings' && renderVectors(ranges, readiness)),
    ...counts,
    ...(source.traversal && {
      total_edges: counts.edge_count,
      algebraic_graph: { traversal: { ...source.traversal } },
    }),
    disk_usage: sum(ranges, (range) => range.stats?.diskBytes ?? 0),
    rebuilding,
    repair: renderRepair(rebuilding, failed !== undefined, skipped),
    ...renderBackfill(ranges, readiness),
    ...renderCoverage(ranges, source.config),
    ...renderSequences(ranges, { target, published, checkpointed }),
    ...repairScan,
    repair_issue_count: skipped,
    repair_degraded: skipped > 0,
    expected_groups: ranges.length,
    reported_groups: ranges.length,
    fresh_groups: ranges.filter(isComplete).length,
    stale_groups: ranges.filter((range) => range.stats !== undefined && !isComplete(range)).length,
    missing_groups: ranges.filter((range) => range.stats === undefined).length,
    ...singleNode.index,
    runtime_present: ranges.every((range) => range.stats !== undefined),
    runtime_fresh: readiness.complete,
    runtime_source: catchingUp ? 'startup_catch_up' : 'live_writer_publish',
    runtime_freshness: readiness.complete ? 'fresh' : failed ? 'failed' : catchingUp ? 'catching_up' : 'stale',
    text_merge: textMerge,
    async_indexing: {
      pending_entries: target - published,
      applied_sequence: published,
      target_sequence: target,
      phase: readiness.complete ? 'idle' : 'replay',
    },
    resolution: renderArtifactStage(target),
    promotion: renderArtifactStage(target),
  };
}

/** The artifacts whose texts the index holds. */
function renderSources(ranges: RangeIndexReport[]) {
  const reports = Map.groupBy(
    ranges.flatMap(({ artifacts = [] }) => artifacts),
    ({ name }) => name,
  );
  return [...reports].map(([artifact, own]) => {
    const complete = own.every(({ isComplete }) => isComplete);
    const reasons = own.flatMap((report) => (report.isComplete ? [] : productionReasons(report, report.head)));
    return { artifact, state: complete ? 'ready' : 'pending', complete, pending_reasons: [...new Set(reasons)].sort() };
  });
}

/**
 * Sequences of several ranges as one: the newest of all, less what the ranges together still have to show or to make
 * durable. Equal numbers then mean that nothing is missing.
 */
function revisionsOf(ranges: RangeIndexReport[]) {
  const target = ranges.reduce((newest, range) => Math.max(newest, range.head), 0);
  const behind = (reached: (range: RangeIndexReport) => number) =>
    sum(ranges, (range) => range.head - Math.max(reached(range), range.firstSequence - 1));
  return {
    target,
    published: target - behind((range) => range.published),
    checkpointed: target - behind((range) => range.checkpointed),
  };
}

function renderRepair(rebuilding: boolean, failed: boolean, skipped: number) {
  const state = rebuilding ? 'rebuilding' : failed ? 'failed' : 'none';
  return {
    state,
    action_required: failed,
    blocks_queryable: failed,
    blocks_complete: rebuilding || failed,
    reason: failed ? 'index_failed' : rebuilding ? 'backfill' : skipped > 0 ? 'documents_skipped' : '',
  };
}

/** A live index that lags is filled, too: what waits for `ready` here must not go on before everything is shown. */
function renderBackfill(ranges: RangeIndexReport[], { complete, state }: Readiness) {
  const active = !complete && state !== 'failed';
  const isWaiting = ranges.some(({ production }) => production?.blocker !== undefined);
  const progress = ranges.length === 0 ? 0 : sum(ranges, progressOf) / ranges.length;
  return {
    backfill_active: active,
    backfill_progress: progress,
    backfill_items_processed: sum(ranges, ({ production, backfilledRows }) => production?.produced ?? backfilledRows),
    backfill_state: state === 'failed' ? 'failed' : active ? (isWaiting ? 'retrying' : 'running') : 'ready',
  };
}

/** `target_vectors`: those that are searchable, and one for each document that may still get some. */
function renderVectors(ranges: RangeIndexReport[], { complete }: Readiness) {
  const searchable = sum(ranges, (range) => range.stats?.vectorCount ?? 0);
  const target = complete ? searchable : searchable + sum(ranges, waitingDocuments);
  return {
    searchable_vectors: searchable,
    publication: { target_vectors: target, searchable_vectors: searchable, complete },
  };
}

/** Of an index whose vectors the server makes: documents that have theirs, wait for them, or cannot have any. */
function renderCoverage(ranges: RangeIndexReport[], config: IndexDetailsSource['config']) {
  const made = ranges.flatMap(({ production }) => production ?? []);
  if (made.length === 0) return {};
  const counts = {
    total: sum(ranges, (range) => range.documents),
    pending: sum(ranges, waitingDocuments),
    produced: sum(ranges, (range) => range.stats?.docCount ?? 0),
    retrying: sum(made, (each) => each.retrying),
    failed: sum(made, (each) => each.failed),
  };
  return {
    source_coverage: {
      policy: config.coverage_policy ?? 'strict',
      config_fingerprint: new Bun.CryptoHasher('sha256').update(JSON.stringify(config)).digest('hex').slice(0, 32),
      observation_complete: made.length === ranges.length,
      ...counts,
      // Those that have nothing to make vectors of.
      skipped: Math.max(0, counts.total - counts.pending - counts.failed - counts.produced),
    },
  };
}

/** Documents of a range whose vectors are not made or not shown yet; at most, since a write may be of a document twice. */
function waitingDocuments(report: RangeIndexReport): number {
  const { documents, head, published, production } = report;
  if (isComplete(report)) return 0;
  const old = production ? Math.ceil((1 - production.backfillProgress) * documents) : 0;
  const written = head - Math.min(published, production?.liveThrough ?? published);
  return Math.min(documents, Math.max(1, old + written, production?.retrying ?? 0));
}

function renderSequences(
  ranges: RangeIndexReport[],
  sequences: { target: number; published: number; checkpointed: number },
) {
  const { target, published, checkpointed } = sequences;
  const isBehind = !ranges.every(isComplete);
  const hasCheckpoint = ranges.some((range) => range.checkpointed > 0);
  return {
    replay_applied_sequence: published,
    replay_target_sequence: target,
    replay_catch_up_required: published < target,
    catch_up_active: isBehind,
    catch_up_phase: isBehind ? 'replay' : 'idle',
    catch_up_applied_sequence: published,
    catch_up_target_sequence: target,
    projection_checkpoint_applied_sequence: checkpointed,
    projection_checkpoint_generation: checkpointed,
    checkpoint_replay_tail_sequence_count: target - checkpointed,
    projection_checkpoint_status: hasCheckpoint ? (checkpointed < target ? 'stale' : 'valid') : 'none',
    ...checkpointFingerprint,
  };
}

function renderArtifactStage(sequence: number) {
  return { ...notBuilt.artifactStage, target_sequence: sequence, applied_sequence: sequence };
}

function sum<T>(items: T[], value: (item: T) => number): number {
  return items.reduce((total, item) => total + value(item), 0);
}
