import { type Caller, requireTable, requireWholeTable } from '../../access/principal.ts';
import type { Credentials } from '../../access/secrets/credentials.ts';
import type { ConnectionOptions } from '../../config/named-sections/connection-options.ts';
import type { Config } from '../../config/options.ts';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { columnsStatement, kindOfColumn } from './columns.ts';
import type { ForeignColumn, ForeignDatabase, ForeignReading, SqlDialect } from './foreign-database.ts';
import { SqlPool } from './sql-pool.ts';

interface ForeignDeps {
  readonly options: () => Pick<Config, 'connections'>;
  readonly credentials: Pick<Credentials, 'resolve' | 'redact'>;
  readonly clock: Clock;
}

interface OpenPool {
  readonly pool: SqlPool;
  /** Of its tables, as long as they are taken for the same. */
  readonly columns: Map<string, { readonly columns: readonly ForeignColumn[]; readonly untilMs: number }>;
  /** The address with its credential, and the bound of statements: another one needs another pool. */
  readonly address: string;
}

/** How long the columns of a table are taken for the same. */
const columnsKeptMs = 60_000;

/** The databases elsewhere that connections name. Each has a few connections, which are opened when they are needed. */
export class ForeignDatabases {
  readonly #deps: ForeignDeps;
  readonly #pools = new Map<string, OpenPool>();

  constructor(deps: ForeignDeps) {
    this.#deps = deps;
  }

  /**
   * A table of a connection. The caller needs the read grant for the table `CONNECTION/TABLE`, without a row filter. Fails
   * with `connection_not_found` or `forbidden`.
   */
  table(connection: string, table: string, caller: Caller): ForeignDatabase {
    const resource = `${connection}/${table}`;
    requireTable(caller, resource, 'read');
    requireWholeTable(caller, resource, 'a foreign table');
    const entry = this.#deps.options().connections.get(connection);
    if (entry?.kind !== 'database') {
      const message = `there is no connection "${connection}" of the kind "database"`;
      throw new ServiceError('connection_not_found', message);
    }
    const mayRead = entry.capabilities?.includes('database.read') ?? true;
    if (!mayRead || !entry.databaseTables?.includes(table)) {
      const message = `the connection "${connection}" does not allow reading "${table}"; "database.tables" lists what it does`;
      throw new ServiceError('forbidden', message);
    }
    const dialect = dialectOf(entry);
    const opened = () => this.#opened(connection, entry, dialect);
    return {
      dialect,
      table,
      open: async () => await opened().pool.open(),
      columns: async () => await this.#columnsOf(opened(), dialect, table),
    };
  }

  /** Whether the database answers, and has every table of its connection. Fails as reading them would. */
  async check(connection: string, entry: ConnectionOptions): Promise<void> {
    const dialect = dialectOf(entry);
    await using reading = await this.#opened(connection, entry, dialect).pool.open();
    for (const table of entry.databaseTables ?? []) await columnsIn(reading, dialect, table);
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map(({ pool }) => pool.close()));
  }

  #opened(connection: string, entry: ConnectionOptions, dialect: SqlDialect): OpenPool {
    const { credentials, clock } = this.#deps;
    const url = dialect === 'sqlite' ? (entry.databaseFile ?? '') : this.#addressOf(entry.databaseDsn ?? '');
    const { statementTimeoutMs } = entry;
    const address = `${dialect}\0${url}\0${statementTimeoutMs}`;
    const open = this.#pools.get(connection);
    if (open?.address === address) return open;
    void open?.pool.close();
    const pool = new SqlPool({
      dialect,
      address: url,
      statementTimeoutMs,
      connection,
      clock,
      redact: (text) => credentials.redact(text),
    });
    const opened = { pool, address, columns: new Map() };
    this.#pools.set(connection, opened);
    return opened;
  }

  /** The address with its references replaced, each for the host that the address names. */
  #addressOf(dsn: string): string {
    const { credentials } = this.#deps;
    const shape = dsn.replaceAll(reference, 'x');
    const host = URL.canParse(shape) ? new URL(shape) : new URL('database://unknown');
    const end = dsn.lastIndexOf('@') + 1;
    const login = dsn.slice(0, end).replaceAll(reference, (each) => asLogin(credentials.resolve(each, host)));
    return login + credentials.resolve(dsn.slice(end), host);
  }

  async #columnsOf(opened: OpenPool, dialect: SqlDialect, table: string): Promise<readonly ForeignColumn[]> {
    const nowMs = this.#deps.clock.monotonicMs();
    const known = opened.columns.get(table);
    if (known && known.untilMs > nowMs) return known.columns;
    await using reading = await opened.pool.open();
    const columns = await columnsIn(reading, dialect, table);
    opened.columns.set(table, { columns, untilMs: nowMs + columnsKeptMs });
    return columns;
  }
}

function dialectOf({ databaseProvider }: ConnectionOptions): SqlDialect {
  return databaseProvider ?? 'postgres';
}

async function columnsIn(reading: ForeignReading, dialect: SqlDialect, table: string): Promise<ForeignColumn[]> {
  const { statement, values } = columnsStatement(dialect, table);
  const rows = await reading.select(statement, values);
  if (rows.length > 0) {
    return rows.map(({ name, type }) => ({ name: String(name), kind: kindOfColumn(dialect, String(type)) }));
  }
  const message = `the database has no table "${table}", or its user may not read it`;
  throw new ServiceError('foreign_source_refused', message);
}

const reference = /\$\{[^}]*\}/g;
/** The characters of a login in an address (RFC 3986, section 3.2.1). */
const loginText = /^(?:[\w.~!$&'()*+,;=:-]|%[\da-f]{2})*$/i;

/** A password as an address has it: encoded, unless it is that already. */
function asLogin(value: string): string {
  return loginText.test(value) ? value : encodeURIComponent(value).replaceAll('%3A', ':');
}
