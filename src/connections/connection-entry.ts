import type { ConnectionOptions } from '../config/named-sections/connection-options.ts';
import type { ConnectionEntry } from '../protocol/database/connections.ts';
import type { Connection, InferenceConnection } from './connection.ts';
import type { ProbeResult } from './probe.ts';

/** A connection as it is listed. Credentials are not among its members. */
export function connectionEntry(
  connection: Connection,
  sources: readonly string[],
  { status, error, models }: ProbeResult,
): ConnectionEntry {
  const { id, displayName, kind, capabilities } = connection;
  return {
    id,
    name: id,
    display_name: displayName === '' ? id : displayName,
    provider: providerOf(connection),
    kind,
    status,
    error: error ?? null,
    capabilities: [...capabilities],
    sources: [...sources],
    inference: kind === 'inference' ? inferencePart(connection, models) : null,
    web_search: kind === 'web_search' ? searchPart(connection.options) : null,
    external_io: kind === 'external_io' ? ioPart(connection.options) : null,
    database: kind === 'database' ? databasePart(connection.options) : null,
    cdc: kind === 'cdc' ? cdcPart(connection.options) : null,
  };
}

function providerOf(connection: Connection): string {
  if (connection.kind === 'inference') return connection.provider;
  const { protocol, databaseProvider, cdcProvider, searchService } = connection.options;
  return protocol ?? databaseProvider ?? cdcProvider ?? searchService ?? '';
}

function inferencePart(connection: InferenceConnection, models: ProbeResult['models']) {
  return {
    provider: connection.provider,
    url: connection.url ?? null,
    region: connection.region ?? null,
    project_id: connection.projectId ?? null,
    location: connection.location ?? null,
    names: [...connection.names],
    configured_model_types: [...connection.modelTypes],
    models:
      models === undefined ? null : Object.fromEntries(Object.entries(models).map(([type, each]) => [type, [...each]])),
  };
}

/** Services that are asked without a key. */
const keyless = ['duckduckgo'];

function searchPart(options: ConnectionOptions) {
  const { searchService = 'duckduckgo' } = options;
  return {
    service: searchService,
    language: options.language ?? null,
    region: options.searchRegion ?? null,
    endpoint: options.searchEndpoint ?? null,
    project_id: options.searchProjectId ?? null,
    location: options.searchLocation ?? null,
    data_store: options.dataStore ?? null,
    serving_config: options.servingConfig ?? null,
    max_results: options.maxResults,
    timeout_ms: options.searchTimeoutMs,
    safe_search: options.safeSearch,
    include_content: options.includeContent,
    include_highlights: options.includeHighlights,
    configured: options.searchApiKey !== undefined || keyless.includes(searchService),
    include_domains: [...(options.includeDomains ?? [])],
    exclude_domains: [...(options.excludeDomains ?? [])],
  };
}

function ioPart(options: ConnectionOptions) {
  return {
    protocol: options.protocol ?? '',
    endpoint: options.endpoint ?? null,
    prefix: options.prefix ?? null,
    buckets: [...(options.buckets ?? [])],
    hosts: [...(options.hosts ?? [])],
  };
}

function databasePart({ databaseProvider, databaseTables, statementTimeoutMs }: ConnectionOptions) {
  return {
    provider: databaseProvider ?? '',
    tables: [...(databaseTables ?? [])],
    statement_timeout_ms: statementTimeoutMs,
  };
}

/** Changes are not followed yet: there is no phase and no lag to tell. */
function cdcPart(options: ConnectionOptions) {
  return {
    provider: options.cdcProvider ?? '',
    table_name: options.tableName ?? null,
    external_table: options.externalTable ?? null,
    slot_name: options.slotName ?? null,
    publication_name: options.publicationName ?? null,
    phase: null,
    source_ordinal: null,
    lag_records: null,
    lag_millis: null,
    last_success_at_ms: null,
    last_change_applied_at_ms: null,
    updated_at_ms: null,
  };
}
