/**
 * Members of status, topology and index details that clients look for and that cannot have another value on this server.
 * Each group says why; a member leaves its group when what it tells of is built.
 */

/** One node holds everything: there is nothing to replicate, to elect, or to move. */
export const singleNode = {
  id: 1,
  node: {
    raft_url: '',
    role: 'data',
    failure_domain: '',
    live: true,
    drain_requested: false,
    lease_pressure: 0,
    read_load: 0,
    write_load: 0,
  },
  range: { voter_count: 1 },
  group: {
    leader_known: true,
    voter_count: 1,
    voter_count_known: true,
    healthy_voter_reports: 1,
    joint_consensus: false,
    cutover_ready: true,
    reads_ready_after_cutover: true,
    doc_identity_lifecycle: 'ready',
  },
  /** Every range reports at once, because all lie in this process. */
  index: { unknown_remote_groups: 0 },
  status: { deployment_mode: 'standalone', swarm_mode: true },
} as const;

/** Every commit is synced to SQLite in WAL mode; the directory is checked offline by `sundew check`, and compacts itself. */
export const storageEngine = {
  engine: 'lite',
  format: 'sqlite-wal-1',
  fsync: true,
  maintenance: { check: true, compact: false, vacuum: false, online: false, asynchronous: false },
} as const;

/** Indexes may be made over the artifacts of enrichments: that needs nothing that could be away. */
export const indexCapabilities = { artifact_sources: true, artifact_sources_state: 'available' } as const;

export const notBuilt = {
  /** Artifacts are neither resolved nor promoted: nothing is ever behind. */
  artifactStage: {
    enabled: false,
    catch_up_required: false,
    blocked: false,
    blocked_reason: '',
    error_count: 0,
  },
} as const;

/** Documents that an index could not take are counted as they are met: the count is exact and always there. */
export const repairScan = {
  repair_scan_issue_count: 0,
  repair_issue_count_estimated: false,
  repair_summary_ready: true,
} as const;

/** A changed configuration makes another index: a checkpoint is never of an older one. */
export const checkpointFingerprint = { projection_checkpoint_config_fingerprint: '' } as const;

/** The engine merges segments by itself when an index is idle, without a queue; a failed merge fails the index. */
export const textMerge = {
  pending_segments: 0,
  pending_bytes: 0,
  in_flight_merges: 0,
  failed_merges: 0,
  quarantined_merges: 0,
  quarantined_segments: 0,
  retry_after_ns: 0,
  deferred_for_pressure: 0,
  last_merge_error: '',
} as const;
