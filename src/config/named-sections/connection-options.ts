import { option, optional, type ValuesOf } from '../option.ts';
import { choice, flag, integer, list, text, webAddress } from '../value-kind.ts';
import { capabilities } from './capabilities.ts';
import { credential, hostPatterns } from './credential-kinds.ts';
import { providerKind } from './provider-options.ts';

export const connectionKinds = ['inference', 'external_io', 'database', 'cdc', 'web_search'] as const;

export type ConnectionKind = (typeof connectionKinds)[number];

/** Options of one connection: what all have, then those of each kind below its name. */
export const connectionMembers = {
  kind: optional({
    key: 'kind',
    kind: choice(connectionKinds),
    help: 'What the connection is for; must be given.',
  }),
  displayName: optional({ key: 'display_name', kind: text(), help: 'Name for people.' }),
  capabilities: optional({
    key: 'capabilities',
    kind: capabilities(),
    help: 'What may be done through it: `models.embed`, `models.generate`, `models.rerank`, `models.chunk`, `models.extract`, `models.predict`, `backup.write`, `restore.read`, `media.read`, `database.read`, `stream`; everything that its provider offers unless given, but nothing for `external_io`.',
  }),
  provider: optional({
    key: 'inference.provider',
    kind: providerKind(),
    help: 'Whose models; must be given for the kind `inference`.',
  }),
  url: optional({
    key: 'inference.url',
    kind: webAddress(),
    help: 'Base address; without one `service` is this server, and others are at their official address.',
    aliases: ['inference.api_url'],
  }),
  apiKey: optional({ key: 'inference.api_key', kind: credential(), secret: true, help: 'Key of the provider.' }),
  inferenceRegion: optional({ key: 'inference.region', kind: text(), help: 'Region of a cloud platform.' }),
  inferenceProjectId: optional({ key: 'inference.project_id', kind: text(), help: 'Project of a cloud platform.' }),
  inferenceLocation: optional({ key: 'inference.location', kind: text(), help: 'Location of a cloud platform.' }),
  modelNames: optional({ key: 'inference.names', kind: list('name'), help: 'Models that are used of it.' }),
  modelTypes: optional({
    key: 'inference.model_types',
    kind: list('type'),
    help: 'Types of these models: `embedder`, `generator`, `reranker`.',
  }),
  protocol: optional({
    key: 'external_io.protocol',
    kind: choice(['filesystem', 'http', 's3']),
    help: 'How files are reached; must be given for the kind `external_io`.',
  }),
  root: optional({
    key: 'external_io.root',
    kind: text('path'),
    help: 'Directory of this machine that nothing is read or written outside of; for `filesystem`.',
  }),
  endpoint: optional({ key: 'external_io.endpoint', kind: webAddress(), help: 'Address of the object store.' }),
  ioRegion: optional({ key: 'external_io.region', kind: text(), help: 'Region of the object store.' }),
  buckets: optional({ key: 'external_io.buckets', kind: list('bucket'), help: 'Buckets that may be used.' }),
  prefix: optional({
    key: 'external_io.prefix',
    kind: text(),
    help: 'Folder in the buckets that every key lies below.',
  }),
  hosts: optional({ key: 'external_io.hosts', kind: hostPatterns(), help: 'Hosts that may be used; for `http`.' }),
  accessKeyId: optional({
    key: 'external_io.access_key_id',
    kind: credential(),
    secret: true,
    help: 'Id of the key of the object store.',
  }),
  secretAccessKey: optional({
    key: 'external_io.secret_access_key',
    kind: credential(),
    secret: true,
    help: 'The key itself.',
  }),
  sessionToken: optional({
    key: 'external_io.session_token',
    kind: credential(),
    secret: true,
    help: 'Token of a temporary key.',
  }),
  databaseProvider: optional({
    key: 'database.provider',
    kind: choice(['postgres', 'mysql', 'sqlite']),
    help: 'Database whose tables queries may read; must be given for the kind `database`.',
  }),
  databaseDsn: optional({
    key: 'database.dsn',
    kind: credential(),
    secret: true,
    help: 'Address of the database, such as `postgres://reader:${secret:crm}@db.example.org/crm`; for `postgres` and `mysql`.',
  }),
  databaseFile: optional({ key: 'database.file', kind: text('path'), help: 'File of the database; for `sqlite`.' }),
  databaseTables: optional({
    key: 'database.tables',
    kind: list('table'),
    help: 'Tables that may be read, and no others, with their schema where it is not the usual one: `sales.orders`.',
  }),
  statementTimeoutMs: option({
    key: 'database.statement_timeout_ms',
    kind: integer(10, 600_000),
    default: 10_000,
    help: 'How long one statement may take, in milliseconds; SQLite has no such bound.',
  }),
  cdcProvider: optional({
    key: 'cdc.provider',
    kind: choice(['postgres']),
    help: 'Database whose changes are followed; must be given for the kind `cdc`.',
  }),
  dsn: optional({ key: 'cdc.dsn', kind: credential(), secret: true, help: 'Address of the database.' }),
  tableName: optional({ key: 'cdc.table_name', kind: text(), help: 'Table here.' }),
  externalTable: optional({ key: 'cdc.external_table', kind: text(), help: 'Table there.' }),
  slotName: optional({ key: 'cdc.slot_name', kind: text(), help: 'Replication slot.' }),
  publicationName: optional({ key: 'cdc.publication_name', kind: text(), help: 'Publication.' }),
  searchService: optional({
    key: 'web_search.service',
    kind: choice(['google', 'bing', 'serper', 'tavily', 'brave', 'duckduckgo']),
    help: 'Whose search; must be given for the kind `web_search`.',
  }),
  searchApiKey: optional({ key: 'web_search.api_key', kind: credential(), secret: true, help: 'Key of the service.' }),
  language: optional({ key: 'web_search.language', kind: text(), help: 'Language of the results.' }),
  searchRegion: optional({ key: 'web_search.region', kind: text(), help: 'Region of the results.' }),
  searchEndpoint: optional({ key: 'web_search.endpoint', kind: webAddress(), help: 'Address of the service.' }),
  searchProjectId: optional({ key: 'web_search.project_id', kind: text(), help: 'Project of the service.' }),
  searchLocation: optional({ key: 'web_search.location', kind: text(), help: 'Location of the service.' }),
  dataStore: optional({ key: 'web_search.data_store', kind: text(), help: 'Data store of the service.' }),
  servingConfig: optional({ key: 'web_search.serving_config', kind: text(), help: 'Serving configuration.' }),
  maxResults: option({ key: 'web_search.max_results', kind: integer(1, 20), default: 5, help: 'Results of a search.' }),
  searchTimeoutMs: option({
    key: 'web_search.timeout_ms',
    kind: integer(100, 60_000),
    default: 10_000,
    help: 'How long a search may take, in milliseconds.',
  }),
  safeSearch: option({ key: 'web_search.safe_search', kind: flag(), default: true, help: 'Leave adult pages out.' }),
  includeContent: option({
    key: 'web_search.include_content',
    kind: flag(),
    default: false,
    help: 'Results with the text of their pages.',
  }),
  includeHighlights: option({
    key: 'web_search.include_highlights',
    kind: flag(),
    default: false,
    help: 'Results with the passages that match.',
  }),
  includeDomains: optional({
    key: 'web_search.include_domains',
    kind: list('domain'),
    help: 'Domains that alone are searched.',
  }),
  excludeDomains: optional({
    key: 'web_search.exclude_domains',
    kind: list('domain'),
    help: 'Domains that are left out.',
  }),
} as const;

export type ConnectionOptions = ValuesOf<typeof connectionMembers>;

const needed: Readonly<Record<ConnectionKind, keyof ConnectionOptions>> = {
  inference: 'provider',
  external_io: 'protocol',
  database: 'databaseProvider',
  cdc: 'cdcProvider',
  web_search: 'searchService',
};

/** The first fault of a connection as a whole, as the end of a sentence that its name begins; undefined when it has none. */
export function connectionComplaint(entry: ConnectionOptions): string | undefined {
  const { kind, protocol, databaseProvider } = entry;
  if (kind === undefined) return ` has no "kind": give one of ${connectionKinds.join(', ')}`;
  for (const [name, { key, default: standard }] of Object.entries(connectionMembers)) {
    const isOfOther = key.includes('.') && !key.startsWith(`${kind}.`);
    if (isOfOther && entry[name as keyof ConnectionOptions] !== standard) {
      return ` is of the kind "${kind}" and may not have "${key}"`;
    }
  }
  if (entry[needed[kind]] === undefined) return ` lacks "${connectionMembers[needed[kind]].key}"`;
  if (protocol === 'filesystem' && entry.root === undefined)
    return ' lacks "external_io.root": the directory it is for';
  if (kind === 'database' && (entry.databaseTables ?? []).length === 0)
    return ' lacks "database.tables": those that may be read';
  if (databaseProvider === 'sqlite' && entry.databaseFile === undefined) return ' lacks "database.file"';
  if (kind === 'database' && databaseProvider !== 'sqlite' && entry.databaseDsn === undefined)
    return ' lacks "database.dsn"';
  if (protocol === 's3' && (entry.buckets ?? []).length === 0) return ' lacks "external_io.buckets"';
  return undefined;
}
