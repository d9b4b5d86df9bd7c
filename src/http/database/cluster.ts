import { statfsSync } from 'node:fs';
import { type Caller, rowFiltersOf, seesTable } from '../../access/principal.ts';
import type { SecretStoreState } from '../../access/secrets/secret-store.ts';
import type { ConfigGeneration } from '../../config/reload.ts';
import type { IndexFacts, RangeFacts } from '../../indexing/at-rest/range-facts.ts';
import type { WorkCounts } from '../../inference/admission.ts';
import { type ProviderState, thisServer } from '../../inference/providers/providers.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import type { HealthState } from '../../observability/health.ts';
import { clusterStatus, clusterTopology } from '../../protocol/database/cluster.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeRecord } from '../../storage/catalog/catalog-records.ts';
import type { Table } from '../../tables/table.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { indexCapabilities, singleNode, storageEngine } from './constant-members.ts';

/** Where status and topology come from; every answer is read afresh. */
export interface ClusterSource {
  tables(): Table[];
  /** Of the tables that `sees` is true of; faults of others are told without their names. */
  health(sees: (table: string) => boolean): NodeHealth;
  config(): ConfigGeneration;
  secrets(): SecretStoreState;
  /** Other servers of models that were asked, and the models of this one. */
  providers(): ProviderState[];
  ownModels(): WorkCounts;
  dataDirectory: string;
  apiUrl(): string;
  /** Whether requests need a credential. */
  authEnabled: boolean;
}

/** Health of the node, of its disk, and of the ranges that are not healthy; messages are empty where all is well. */
export interface NodeHealth {
  health: HealthState;
  message: string;
  disk: { health: HealthState; message: string };
  ranges: { range_id: number; table: string; health: HealthState; message: string }[];
}

export function clusterRoutes(source: ClusterSource): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/status',
      access: 'authenticated',
      summary: 'Health and runtime status of the node',
      tag: 'cluster',
      responses: { 200: { description: 'The status', schema: clusterStatus } },
      handler: ({ caller }) => renderStatus(source, caller),
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/cluster',
      access: 'authenticated',
      summary: 'Status with topology: nodes, ranges, replicas, groups',
      tag: 'cluster',
      responses: { 200: { description: 'Status and topology', schema: clusterTopology } },
      handler: async ({ caller }) => ({ ...renderStatus(source, caller), data: await renderTopology(source, caller) }),
    }),
  ];
}

function renderStatus(source: ClusterSource, caller: Caller) {
  const { generation, hash, lastReloadFailed, stale, reloadSuccesses, reloadFailures } = source.config();
  return {
    ...source.health((table) => seesTable(caller, table)),
    auth_enabled: source.authEnabled,
    ...singleNode.status,
    index_capabilities: indexCapabilities,
    secret_store: renderSecretStore(source.secrets()),
    runtime_config: {
      generation,
      hash,
      last_reload_failed: lastReloadFailed,
      stale,
      reload_successes: reloadSuccesses,
      reload_failures: reloadFailures,
    },
    storage: storageEngine,
    providers: renderProviders(source),
  };
}

/** Counts of requests to models since the start, by provider. */
function renderProviders(source: ClusterSource) {
  const own = source.ownModels();
  return [
    ...(own.requests === 0 ? [] : [{ provider: thisServer, ...own }]),
    ...source.providers().map(({ waitedMs, ...state }) => ({ ...state, waited_ms: waitedMs })),
  ];
}

function renderSecretStore(state: SecretStoreState) {
  return {
    generation: state.generation,
    supports_source_generation: true,
    source_generation: state.sourceGeneration,
    last_reload_failed: state.lastReloadFailed,
    stale: state.stale,
    reload_successes: state.reloadSuccesses,
    reload_failures: state.reloadFailures,
  };
}

/** The topology of the tables that the caller may know of, counts included. */
async function renderTopology(source: ClusterSource, caller: Caller) {
  const isShown = ({ name }: Table) => seesTable(caller, name) && rowFiltersOf(caller, name).length === 0;
  const reports = await reportTables(source.tables().filter(isShown));
  // At once: the pool of threads may be busy with indexes for seconds.
  const disk = statfsSync(source.dataDirectory);
  const { health } = source.health(() => true);
  return {
    nodes: [
      {
        data_id: singleNode.id,
        node_id: singleNode.id,
        api_url: source.apiUrl(),
        ...singleNode.node,
        state: health,
        health_class: health,
        capacity_bytes: disk.blocks * disk.bsize,
        available_bytes: disk.bavail * disk.bsize,
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
      end_key: report.endKey ?? '',
      state: stateOf(report.serving),
      leader_data_id: singleNode.id,
      ...singleNode.range,
      doc_count: report.documents,
      disk_bytes: report.diskBytes,
      empty: report.empty,
    })),
    replicas: reports.map((report) => ({
      group_id: report.rangeId,
      data_id: singleNode.id,
      node_id: singleNode.id,
      replica_id: report.rangeId,
      peer_node_ids: [singleNode.id],
    })),
    groups: reports.map((report) => ({
      group_id: report.rangeId,
      leader_data_id: singleNode.id,
      ...singleNode.group,
      transition_pending: stateOf(report.serving) === 'transitioning',
      replay_required: stateOf(report.serving) === 'replaying',
      replay_caught_up: report.serving === 'live',
      doc_count: report.documents,
      disk_bytes: report.diskBytes,
      empty: report.empty,
    })),
  };
}

/** Tables that are reported before the loop yields to other requests. */
const sliceTables = 256;

/** One report for each range, but for tables that are dropped meanwhile; of one that a restore replaces nothing is known. */
async function reportTables(tables: readonly Table[]) {
  const reports: ReturnType<typeof reportRange>[] = [];
  for (const [at, table] of tables.entries()) {
    if (at % sliceTables === sliceTables - 1) await yieldToEventLoop();
    const report = (facts: readonly (RangeFacts | undefined)[]) =>
      reports.push(...table.ranges.map((range, index) => reportRange(table, range, facts[index])));
    try {
      report(await table.facts());
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'unavailable') report([]);
      else if (error.code !== 'table_not_found') throw error;
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
