import { type Caller, requireTable, requireWholeTable } from '../../access/principal.ts';
import type { Credentials } from '../../access/secrets/credentials.ts';
import type { ConnectionOptions } from '../../config/named-sections/connection-options.ts';
import type { Config } from '../../config/options.ts';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { columnsStatement, kindOfColumn } from './columns.ts';
import type { ForeignColumn, ForeignDatabase, SqlDialect, SqlValue } from './foreign-database.ts';
import { SqlPool } from './sql-pool.ts';

interface ForeignDeps {
  readonly options: () => Pick<Config, 'connections'>;
  readonly credentials: Pick<Credentials, 'resolve' | 'redact'>;
  readonly clock: Clock;
}

interface OpenPool {
  readonly pool: SqlPool;
  /** The address with its credential, and the bound of statements: another one needs another pool. */
  readonly address: string;
}

/** How long the columns of a table are taken for the same. */
const columnsKeptMs = 60_000;

/** The databases elsewhere that connections name. Each has a few connections, which are opened when they are needed. */
export class ForeignDatabases {
  readonly #deps: ForeignDeps;
  readonly #pools = new Map<string, OpenPool>();
  readonly #columns = new Map<string, { readonly columns: readonly ForeignColumn[]; readonly untilMs: number }>();

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
    const dialect = entry.databaseProvider ?? 'postgres';
    const select = (statement: string, values: readonly SqlValue[]) =>
      this.#pool(connection, entry, dialect).select(statement, values);
    return { dialect, table, select, columns: () => this.#columnsOf(resource, dialect, table, select) };
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map(({ pool }) => pool.close()));
  }

  #pool(connection: string, entry: ConnectionOptions, dialect: SqlDialect): SqlPool {
    const { credentials } = this.#deps;
    const url = dialect === 'sqlite' ? (entry.databaseFile ?? '') : this.#addressOf(entry.databaseDsn ?? '');
    const { statementTimeoutMs } = entry;
    const address = `${dialect}\0${url}\0${statementTimeoutMs}`;
    const open = this.#pools.get(connection);
    if (open?.address === address) return open.pool;
    void open?.pool.close();
    const pool = new SqlPool({
      dialect,
      address: url,
      statementTimeoutMs,
      connection,
      redact: (text) => credentials.redact(text),
    });
    this.#pools.set(connection, { pool, address });
    return pool;
  }

  /** The address with its references replaced, each for the host that the address names. */
  #addressOf(dsn: string): string {
    const shape = dsn.replaceAll(/\$\{[^}]*\}/g, 'x');
    const host = URL.canParse(shape) ? new URL(shape) : new URL('database://unknown');
    return this.#deps.credentials.resolve(dsn, host);
  }

  async #columnsOf(
    resource: string,
    dialect: SqlDialect,
    table: string,
    select: ForeignDatabase['select'],
  ): Promise<readonly ForeignColumn[]> {
    const nowMs = this.#deps.clock.monotonicMs();
    const known = this.#columns.get(resource);
    if (known && known.untilMs > nowMs) return known.columns;
    const { statement, values } = columnsStatement(dialect, table);
    const rows = await select(statement, values);
    const columns = rows.map(({ name, type }) => ({ name: String(name), kind: kindOfColumn(dialect, String(type)) }));
    if (columns.length === 0) {
      const message = `the database has no table "${table}", or its user may not read it`;
      throw new ServiceError('foreign_source_refused', message);
    }
    this.#columns.set(resource, { columns, untilMs: nowMs + columnsKeptMs });
    return columns;
  }
}
