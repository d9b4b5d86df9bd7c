import { Type } from '@sinclair/typebox';

/** The status of a server and the topology of its tables (specification 2.6). */

const reloads = {
  last_reload_failed: Type.Boolean(),
  stale: Type.Boolean(),
  reload_successes: Type.Integer(),
  reload_failures: Type.Integer(),
};

const maintenance = Type.Object({
  check: Type.Boolean(),
  compact: Type.Boolean(),
  vacuum: Type.Boolean(),
  online: Type.Boolean(),
  asynchronous: Type.Boolean(),
});

const statusMembers = {
  health: Type.String({ description: '`healthy`, `degraded`, `unhealthy`, `error` or `unknown`' }),
  message: Type.String(),
  disk: Type.Object({ health: Type.String(), message: Type.String() }),
  ranges: Type.Array(
    Type.Object({
      range_id: Type.Integer(),
      table: Type.String(),
      health: Type.String(),
      message: Type.String(),
    }),
    { description: 'Those that are not healthy.' },
  ),
  auth_enabled: Type.Boolean(),
  deployment_mode: Type.String({ description: '`standalone`' }),
  swarm_mode: Type.Boolean(),
  index_capabilities: Type.Object({ artifact_sources: Type.Boolean(), artifact_sources_state: Type.String() }),
  secret_store: Type.Object({
    generation: Type.Integer(),
    supports_source_generation: Type.Boolean(),
    source_generation: Type.String(),
    ...reloads,
  }),
  runtime_config: Type.Object({ generation: Type.Integer(), hash: Type.String(), ...reloads }),
  storage: Type.Object({ engine: Type.String(), format: Type.String(), fsync: Type.Boolean(), maintenance }),
  providers: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: 'Counts of requests to models since the start, by provider.',
  }),
};

export const clusterStatus = Type.Object(statusMembers);

const node = Type.Object({
  data_id: Type.Integer(),
  node_id: Type.Integer(),
  api_url: Type.String(),
  raft_url: Type.String(),
  role: Type.String(),
  state: Type.String(),
  health_class: Type.String(),
  failure_domain: Type.String(),
  live: Type.Boolean(),
  drain_requested: Type.Boolean(),
  capacity_bytes: Type.Integer(),
  available_bytes: Type.Integer(),
  lease_pressure: Type.Integer(),
  read_load: Type.Integer(),
  write_load: Type.Integer(),
  active_backfills: Type.Integer(),
});

const range = Type.Object({
  group_id: Type.Integer(),
  range_id: Type.Integer(),
  table_id: Type.Integer(),
  table_name: Type.String(),
  doc_identity_shard_id: Type.Integer(),
  doc_identity_range_id: Type.Integer(),
  start_key: Type.String(),
  end_key: Type.String(),
  state: Type.String(),
  leader_data_id: Type.Integer(),
  voter_count: Type.Integer(),
  doc_count: Type.Integer(),
  disk_bytes: Type.Integer(),
  empty: Type.Boolean(),
});

const replica = Type.Object({
  group_id: Type.Integer(),
  data_id: Type.Integer(),
  node_id: Type.Integer(),
  replica_id: Type.Integer(),
  peer_node_ids: Type.Array(Type.Integer()),
});

const group = Type.Object({
  group_id: Type.Integer(),
  leader_data_id: Type.Integer(),
  leader_known: Type.Boolean(),
  voter_count: Type.Integer(),
  voter_count_known: Type.Boolean(),
  healthy_voter_reports: Type.Integer(),
  joint_consensus: Type.Boolean(),
  transition_pending: Type.Boolean(),
  replay_required: Type.Boolean(),
  replay_caught_up: Type.Boolean(),
  cutover_ready: Type.Boolean(),
  reads_ready_after_cutover: Type.Boolean(),
  doc_identity_lifecycle: Type.String(),
  doc_count: Type.Integer(),
  disk_bytes: Type.Integer(),
  empty: Type.Boolean(),
});

export const clusterTopology = Type.Object({
  ...statusMembers,
  data: Type.Object({
    nodes: Type.Array(node),
    ranges: Type.Array(range),
    replicas: Type.Array(replica),
    groups: Type.Array(group),
  }),
});
