import { Type } from '@sinclair/typebox';
import { jsonObject } from './tables.ts';

/** How far an index is, over all ranges of its table or in one of them (specification 2.5). */

const reasons = Type.Array(Type.String());

const sourceReadiness = Type.Object({
  artifact: Type.String(),
  state: Type.String(),
  complete: Type.Boolean(),
  pending_reasons: reasons,
});

const readiness = Type.Object({
  state: Type.String({ description: '`pending`, `queryable_partial`, `ready` or `failed`' }),
  queryable: Type.Boolean(),
  complete: Type.Boolean({ description: 'It shows every write that was acknowledged before this answer.' }),
  incarnation: Type.String({ description: 'Another one after a drop and a creation.' }),
  target_revision: Type.Integer(),
  published_revision: Type.Integer(),
  pending_reasons: reasons,
  sources: Type.Array(sourceReadiness, { description: 'Of an index over enrichments.' }),
});

const milestone = Type.Object({ reached: Type.Boolean(), blockers: reasons });

const repair = Type.Object({
  state: Type.String({ description: '`none`, `rebuilding` or `failed`' }),
  action_required: Type.Boolean(),
  blocks_queryable: Type.Boolean(),
  blocks_complete: Type.Boolean(),
  reason: Type.String(),
});

const sourceCoverage = Type.Object({
  policy: Type.String(),
  config_fingerprint: Type.String(),
  observation_complete: Type.Boolean(),
  total: Type.Integer(),
  pending: Type.Integer(),
  produced: Type.Integer({ description: 'Documents that have theirs.' }),
  retrying: Type.Integer(),
  failed: Type.Integer(),
  skipped: Type.Integer({ description: 'Documents that have nothing to make vectors of.' }),
});

const textMerge = Type.Object({
  pending_segments: Type.Integer(),
  pending_bytes: Type.Integer(),
  in_flight_merges: Type.Integer(),
  failed_merges: Type.Integer(),
  quarantined_merges: Type.Integer(),
  quarantined_segments: Type.Integer(),
  retry_after_ns: Type.Integer(),
  deferred_for_pressure: Type.Integer(),
  last_merge_error: Type.String(),
});

const asyncIndexing = Type.Object({
  pending_entries: Type.Integer(),
  applied_sequence: Type.Integer(),
  target_sequence: Type.Integer(),
  phase: Type.String(),
});

const artifactStage = Type.Object({
  enabled: Type.Boolean(),
  catch_up_required: Type.Boolean(),
  blocked: Type.Boolean(),
  blocked_reason: Type.String(),
  error_count: Type.Integer(),
  target_sequence: Type.Integer(),
  applied_sequence: Type.Integer(),
});

const traversal = Type.Object({
  attempted: Type.Integer({ description: 'Traversals, path searches and patterns since the server has started.' }),
  proven: Type.Integer({ description: 'Those whose answer was whole.' }),
  rejected: Type.Integer(),
  fallback: Type.Integer({ description: 'Those whose answer was partial.' }),
  result_nodes: Type.Integer(),
});

const indexStatus = Type.Object({
  index_type: Type.String(),
  readiness,
  incarnation: Type.String(),
  target_revision: Type.Integer(),
  published_revision: Type.Integer(),
  milestones: Type.Object({ queryable: milestone, complete: milestone }),
  error: Type.String(),
  total_indexed: Type.Integer(),
  searchable_vectors: Type.Optional(Type.Integer({ description: 'embeddings' })),
  publication: Type.Optional(
    Type.Object(
      { target_vectors: Type.Integer(), searchable_vectors: Type.Integer(), complete: Type.Boolean() },
      { description: 'embeddings' },
    ),
  ),
  doc_count: Type.Integer({
    description: 'Documents; of an index over enrichments those that have any; of a graph its nodes.',
  }),
  term_count: Type.Integer(),
  node_count: Type.Integer(),
  edge_count: Type.Integer(),
  total_edges: Type.Optional(Type.Integer({ description: 'graph' })),
  algebraic_graph: Type.Optional(Type.Object({ traversal }, { description: 'graph' })),
  disk_usage: Type.Integer(),
  rebuilding: Type.Boolean(),
  repair,
  backfill_active: Type.Boolean(),
  backfill_progress: Type.Number({ minimum: 0, maximum: 1 }),
  backfill_items_processed: Type.Integer(),
  backfill_state: Type.String({ description: '`running`, `retrying`, `ready` or `failed`' }),
  source_coverage: Type.Optional(sourceCoverage),
  replay_applied_sequence: Type.Integer(),
  replay_target_sequence: Type.Integer(),
  replay_catch_up_required: Type.Boolean(),
  catch_up_active: Type.Boolean(),
  catch_up_phase: Type.String(),
  catch_up_applied_sequence: Type.Integer(),
  catch_up_target_sequence: Type.Integer(),
  projection_checkpoint_applied_sequence: Type.Integer(),
  projection_checkpoint_generation: Type.Integer(),
  checkpoint_replay_tail_sequence_count: Type.Integer(),
  projection_checkpoint_status: Type.String({ description: '`none`, `stale` or `valid`' }),
  projection_checkpoint_config_fingerprint: Type.String(),
  repair_scan_issue_count: Type.Integer(),
  repair_issue_count_estimated: Type.Boolean(),
  repair_summary_ready: Type.Boolean(),
  repair_issue_count: Type.Integer(),
  repair_degraded: Type.Boolean(),
  expected_groups: Type.Integer(),
  reported_groups: Type.Integer(),
  fresh_groups: Type.Integer(),
  stale_groups: Type.Integer(),
  missing_groups: Type.Integer(),
  unknown_remote_groups: Type.Integer(),
  runtime_present: Type.Boolean(),
  runtime_fresh: Type.Boolean(),
  runtime_source: Type.String(),
  runtime_freshness: Type.String(),
  text_merge: textMerge,
  async_indexing: asyncIndexing,
  resolution: artifactStage,
  promotion: artifactStage,
});

export const indexDetails = Type.Object({
  config: jsonObject,
  status: indexStatus,
  shard_status: Type.Record(Type.String(), indexStatus, { description: 'The status in each range, by its id.' }),
});
