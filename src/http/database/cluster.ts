import { statfs } from 'node:fs/promises';
import { type Caller, seesTable } from '../../access/principal.ts';
import type { ConfigGeneration } from '../../config/reload.ts';
import type { IndexFacts, RangeFacts } from '../../indexing/range-facts.ts';
import { turn } from '../../lib/in-slices.ts';
import type { HealthState } from '../../observability/health.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeRecord } from '../../storage/catalog-records.ts';
import type { Table } from '../../tables/table.ts';
import { defineRoute, type Route } from '../route.ts';

/** Where status and topology come from; every answer is read anew. */
export interface ClusterSource {
  tables(): Table[];
  health(): NodeHealth;
  config(): ConfigGeneration;
  dataDirectory: string;
  apiUrl(): string;
}

/** Health of the node, of its disk, and of the ranges that are not healthy; messages are empty where all is well. */
export interface NodeHealth {
  health: HealthState;
  message: string;
  disk: { health: HealthState; message: string };
  ranges: { range_id: number; table: string; health: HealthState; message: string }[];
}

/** A single node is always this one. */
const nodeId = 1;

export function clusterRoutes(source: ClusterSource): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/status',
      access: 'authenticated',
      summary: 'Health and runtime status of the node',
      tag: 'cluster',
      responses: { 200: { description: 'The status', schema: jsonObject } },
      handler: () => renderStatus(source),
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/cluster',
      access: 'authenticated',
      summary: 'Status with topology: nodes, ranges, replicas, groups',
      tag: 'cluster',
      responses: { 200: { description: 'Status and topology', schema: jsonObject } },
      handler: async ({ caller }) => ({ ...renderStatus(source), data: await renderTopology(source, caller) }),
    }),
  ];
}

function renderStatus(source: ClusterSource) {
  const { generation, hash, lastReloadFailed, stale, reloadSuccesses, reloadFailures } = source.config();
  return {
    ...source.health(),
    auth_enabled: false,
    deployment_mode: 'standalone',
    swarm_mode: true,
    index_capabilities: { artifact_sources: false, artifact_sources_state: 'unavailable' },
    secret_store: {
      generation: 0,
      supports_source_generation: false,
      source_generation: '',
      last_reload_failed: false,
      stale: false,
      reload_successes: 0,
      reload_failures: 0,
    },
    runtime_config: {
      generation,
      hash,
      last_reload_failed: lastReloadFailed,
      stale,
      reload_successes: reloadSuccesses,
      reload_failures: reloadFailures,
    },
    storage: {
      engine: 'lite',
      format: 'sqlite-wal-1',
      fsync: true,
      maintenance: { check: true, compact: false, vacuum: false, online: false, asynchronous: false },
    },
  };
}

/** The topology of the tables that the caller may know of. */
async function renderTopology(source: ClusterSource, caller: Caller) {
  const reports = await reportTables(source.tables().filter(({ name }) => seesTable(caller, name)));
  const disk = await statfs(source.dataDirectory);
  const { health } = source.health();
  return {
    nodes: [
      {
        data_id: nodeId,
        node_id: nodeId,
        api_url: source.apiUrl(),
        raft_url: '',
        role: 'data',
        state: health,
        health_class: health,
        failure_domain: '',
        live: true,
        drain_requested: false,
        capacity_bytes: disk.blocks * disk.bsize,
        available_bytes: disk.bavail * disk.bsize,
        lease_pressure: 0,
        read_load: 0,
        write_load: 0,
        active_backfills: reports.reduce((sum, report) => sum + report.backfills, 0),
      },
    ],
    ranges: reports.map((report) => ({
      group_id: report.rangeId,
      range_id: report.rangeId,
      table_id: report.tableId,
      table_name: report.tableName,
      doc_identity_shard_id: report.rangeId,
      doc_identity_range_id: report.rangeId,
      start_key: report.startKey,
      end_key: report.endKey,
      state: stateOf(report.serving),
      leader_data_id: nodeId,
      voter_count: 1,
      doc_count: report.documents,
      disk_bytes: report.diskBytes,
      empty: report.empty,
    })),
    replicas: reports.map((report) => ({
      group_id: report.rangeId,
      data_id: nodeId,
      node_id: nodeId,
      replica_id: report.rangeId,
      peer_node_ids: [nodeId],
    })),
    groups: reports.map((report) => ({
      group_id: report.rangeId,
      leader_data_id: nodeId,
      leader_known: true,
      voter_count: 1,
      voter_count_known: true,
      healthy_voter_reports: 1,
      joint_consensus: false,
      transition_pending: stateOf(report.serving) === 'transitioning',
      replay_required: stateOf(report.serving) === 'replaying',
      replay_caught_up: report.serving === 'live',
      cutover_ready: true,
      reads_ready_after_cutover: true,
      doc_count: report.documents,
      disk_bytes: report.diskBytes,
      empty: report.empty,
      doc_identity_lifecycle: 'ready',
    })),
  };
}

/** Tables that are reported before other requests get their turn. */
const sliceTables = 256;

/** One report for each range; tables that are dropped meanwhile are left out. */
async function reportTables(tables: readonly Table[]) {
  const reports: ReturnType<typeof reportRange>[] = [];
  for (const [at, table] of tables.entries()) {
    if (at % sliceTables === sliceTables - 1) await turn();
    try {
      const facts = await table.facts();
      reports.push(...table.ranges.map((range, index) => reportRange(table, range, facts[index])));
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === 'table_not_found')) throw error;
    }
  }
  return reports;
}

/** `facts`: undefined for a range that cannot be opened. */
function reportRange(table: Table, { rangeId, startKey, endKey }: RangeRecord, facts: RangeFacts | undefined) {
  const serving = facts?.indexes.find(({ name }) => name === table.servingIndex.name);
  return {
    tableId: table.id,
    tableName: table.name,
    rangeId,
    startKey,
    endKey,
    documents: facts?.documents ?? 0,
    empty: facts?.documents === 0,
    diskBytes: facts?.diskBytes ?? 0,
    serving: serving?.state,
    backfills: facts?.indexes.filter(({ state }) => state === 'building').length ?? 0,
  };
}

const wireStates = {
  live: 'healthy',
  opening: 'transitioning',
  behind: 'replaying',
  building: 'replaying',
  failed: 'unknown',
} as const;

/** By the state of the index that answers the range's queries: documents are there as soon as the range is open. */
function stateOf(serving: IndexFacts['state'] | undefined): 'healthy' | 'transitioning' | 'replaying' | 'unknown' {
  return serving ? wireStates[serving] : 'unknown';
}
