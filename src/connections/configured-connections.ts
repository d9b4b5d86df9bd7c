import type { ConnectionKind, ConnectionOptions } from '../config/named-sections/connection-options.ts';
import type { ProviderOptions } from '../config/named-sections/provider-options.ts';
import type { Config } from '../config/options.ts';
import { type ProviderName, providerTraits } from '../provider-config/provider-names.ts';
import type { Connection, InferenceConnection } from './connection.ts';
import { capabilitiesOf } from './operations.ts';

type Entries = Pick<Config, 'connections' | 'providers'>;

/** The id of the connection to the models of this server. */
const ownId = 'local-inference';

/** The connections that the configuration names, and the one to this server's own models. */
export function configuredConnections({ connections, providers }: Entries): Connection[] {
  const all = [...connections].map(([name, entry]) => configured(name, entry, providers));
  if (connections.has(ownId)) return all;
  const own = inferenceConnection({ provider: 'service' }, providers);
  return [{ ...own, id: ownId, displayName: 'Models of this server', sources: [source('runtime:inference')] }, ...all];
}

const standardCapabilities: Partial<Record<ConnectionKind, readonly string[]>> = {
  cdc: ['stream'],
  database: ['database.read'],
};

function configured(name: string, entry: ConnectionOptions, providers: Entries['providers']): Connection {
  const { kind = 'inference', displayName = name, capabilities } = entry;
  const head = { id: name, displayName, sources: [source(`config:connections/${name}`)] };
  if (kind !== 'inference') {
    return { ...head, kind, capabilities: capabilities ?? standardCapabilities[kind] ?? [], options: entry };
  }
  const connection = inferenceConnection(
    {
      provider: entry.provider ?? 'service',
      url: entry.url,
      apiKey: entry.apiKey,
      region: entry.inferenceRegion,
      projectId: entry.inferenceProjectId,
      location: entry.inferenceLocation,
      names: entry.modelNames,
      modelTypes: entry.modelTypes,
    },
    providers,
  );
  return { ...connection, ...head, capabilities: capabilities ?? connection.capabilities };
}

/** The endings of addresses with which paths of ours begin. */
const prefixes: Partial<Record<ProviderName, RegExp>> = {
  service: /(?:\/ai\/v1)?\/*$/,
  ollama: /(?:\/api|\/v1)?\/*$/,
};

interface InferenceEntry {
  readonly provider: ProviderName;
  readonly url?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly region?: string | undefined;
  readonly projectId?: string | undefined;
  readonly location?: string | undefined;
  readonly names?: readonly string[] | undefined;
  readonly modelTypes?: readonly string[] | undefined;
}

/** A connection to a provider, with what the operator says of the provider where the connection itself says nothing. */
export function inferenceConnection(
  { provider, url, apiKey, region, projectId, location, names = [], modelTypes = [] }: InferenceEntry,
  providers: ReadonlyMap<string, ProviderOptions>,
): InferenceConnection {
  const own = providers.get(provider);
  return {
    id: '',
    displayName: '',
    kind: 'inference',
    capabilities: capabilitiesOf(provider),
    sources: [],
    provider,
    url: (url ?? own?.url ?? providerTraits[provider].url)?.replace(prefixes[provider] ?? /\/+$/, ''),
    // A key of the operator goes to the address of the operator, and to no other that a connection names.
    apiKey: apiKey ?? (url === undefined ? own?.apiKey : undefined),
    region: region ?? own?.region,
    projectId,
    location,
    names,
    modelTypes,
  };
}

function source(name: string) {
  return { name, table: undefined };
}
