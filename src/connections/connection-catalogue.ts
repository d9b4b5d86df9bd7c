import { type Caller, seesTable } from '../access/principal.ts';
import type { Credentials } from '../access/secrets/credentials.ts';
import type { ConnectionKind } from '../config/named-sections/connection-options.ts';
import type { Config } from '../config/options.ts';
import type { ConnectionEntry } from '../protocol/database/connections.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { configuredConnections } from './configured-connections.ts';
import type { Connection, OtherConnection } from './connection.ts';
import { connectionEntry } from './connection-entry.ts';
import type { LivePass } from './live-pass.ts';
import type { ProbeResult } from './probe.ts';
import { type ProviderUse, withTableConnections } from './table-connections.ts';

interface CatalogueDeps {
  readonly options: () => Pick<Config, 'connections' | 'providers'>;
  /** The requests of all tables' indexes to providers. */
  readonly uses: () => readonly ProviderUse[];
  readonly credentials: Pick<Credentials, 'check'>;
  readonly live: LivePass;
}

interface ListOptions {
  /** All kinds unless given. */
  readonly kinds?: readonly ConnectionKind[] | undefined;
  /** Whether services are asked if they are there, and for their models. */
  readonly status: boolean;
  readonly models: boolean;
  readonly refresh: boolean;
}

/** The connections of the configuration and of what tables use. */
export class ConnectionCatalogue {
  readonly #deps: CatalogueDeps;

  constructor(deps: CatalogueDeps) {
    this.#deps = deps;
  }

  /** Without `status` and `models` nobody is asked. One that fails is an entry that says so. */
  async list(caller: Caller, { kinds, status, models, refresh }: ListOptions): Promise<ConnectionEntry[]> {
    const all = this.#visible(caller).filter(({ kind }) => kinds === undefined || kinds.includes(kind));
    const asked = status ? all : models ? all.filter(({ kind }) => kind === 'inference') : [];
    const working = asked.filter((each) => this.#fault(each) === undefined);
    const results = await this.#deps.live.results(working, refresh);
    return all.map((connection) => {
      const result = this.#fault(connection) ?? results.get(connection.id) ?? ({ status: 'configured' } as const);
      const { models: listing, ...rest } = result;
      const sources = connection.sources.map(({ name }) => name);
      return connectionEntry(
        connection,
        sources,
        models && listing !== undefined ? { ...rest, models: listing } : rest,
      );
    });
  }

  /**
   * A connection to be asked through: one of the configuration is what it is there, whatever tables use of it. Throws
   * `connection_not_found`.
   */
  find(caller: Caller, id: string): Connection {
    const byId = (each: Connection) => each.id === id;
    const found = configuredConnections(this.#deps.options()).find(byId) ?? this.#visible(caller).find(byId);
    if (found !== undefined) return found;
    throw new ServiceError('connection_not_found', `there is no connection "${id.slice(0, 64)}"`);
  }

  /** Connections of tables that the caller may not know of are left out. */
  #visible(caller: Caller): Connection[] {
    const { connections, providers } = this.#deps.options();
    const uses = this.#deps.uses().filter(({ table }) => seesTable(caller, table));
    return withTableConnections(configuredConnections({ connections, providers }), uses, providers);
  }

  /** A credential that refers to what is not there. */
  #fault(connection: Connection): ProbeResult | undefined {
    try {
      for (const [credential, url] of credentialsOf(connection)) this.#deps.credentials.check(credential, url);
      return undefined;
    } catch (error) {
      if (error instanceof ServiceError) return { status: 'error', error: error.message };
      throw error;
    }
  }
}

/** The credentials of a connection, each with the address that it is for, where that is known before it is used. */
function credentialsOf(connection: Connection): [string, URL | undefined][] {
  const pairs =
    connection.kind === 'inference' ? [[connection.apiKey, connection.url] as const] : otherPairs(connection);
  return pairs.flatMap(([credential, address]) => {
    const url = address === undefined ? null : URL.parse(address);
    return credential === undefined ? [] : [[credential, url ?? undefined]];
  });
}

function otherPairs({ options }: OtherConnection): (readonly [string | undefined, string | undefined])[] {
  const store = options.endpoint ?? `https://s3.${options.ioRegion ?? 'us-east-1'}.amazonaws.com`;
  const keys = [options.accessKeyId, options.secretAccessKey, options.sessionToken];
  return [
    ...keys.map((key) => [key, store] as const),
    [options.searchApiKey, options.searchEndpoint],
    [options.databaseDsn, undefined],
    [options.dsn, undefined],
  ];
}
