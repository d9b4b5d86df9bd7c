import { type ReservedSQL, SQL } from 'bun';
import { type Clock, within } from '../../lib/clock.ts';
import { secondMs } from '../../lib/units.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { SqlDialect, SqlValue } from './foreign-database.ts';

interface PoolOptions {
  readonly dialect: SqlDialect;
  /** With its credential; for SQLite the path of the file. */
  readonly address: string;
  readonly statementTimeoutMs: number;
  /** For messages. */
  readonly connection: string;
  readonly clock: Clock;
  /** Takes secrets out of what a database says. */
  redact(text: string): string;
}

const connectionsMax = 4;
const connectSeconds = 5;
const idleSeconds = 30;
/** How much longer than its statement may take a database is waited for: one that is cut off says nothing of the time. */
const silenceMs = 5 * secondMs;

/** The setting that ends a statement of a connection in time; MariaDB has a name and a unit of its own for it. */
const timeouts = {
  postgres: ['BEGIN READ ONLY', 'SET LOCAL statement_timeout = %ms'],
  mysql: ['SET SESSION max_execution_time = %ms', 'START TRANSACTION READ ONLY'],
  mariadb: ['SET SESSION max_statement_time = %s', 'START TRANSACTION READ ONLY'],
} as const;

/** A few connections to one database. */
export class SqlPool {
  readonly #options: PoolOptions;
  readonly #sql: SQL;
  /** The kind of the database, once it is known. */
  #prelude: keyof typeof timeouts;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { dialect, address } = options;
    this.#prelude = dialect === 'sqlite' ? 'postgres' : dialect;
    this.#sql =
      dialect === 'sqlite'
        ? new SQL({ adapter: 'sqlite', filename: address, readonly: true, create: false, safeIntegers: true })
        : new SQL({
            adapter: dialect,
            url: address,
            max: connectionsMax,
            connectionTimeout: connectSeconds,
            idleTimeout: idleSeconds,
          });
  }

  async select(statement: string, values: readonly SqlValue[]): Promise<Readonly<Record<string, unknown>>[]> {
    try {
      return await this.#select(statement, values);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  async #select(statement: string, values: readonly SqlValue[]): Promise<Readonly<Record<string, unknown>>[]> {
    const { dialect } = this.#options;
    if (dialect === 'sqlite') return [...(await this.#sql.unsafe(statement, [...values]))];
    const connection = await this.#sql.reserve();
    const answer = this.#ask(connection, statement, values);
    const { clock, statementTimeoutMs } = this.#options;
    const hasAnswered = await within(clock, statementTimeoutMs + silenceMs, answer).catch(() => true);
    if (!hasAnswered) {
      void connection.close().catch(() => undefined);
      throw this.#tooSlow();
    }
    connection.release();
    return answer;
  }

  async #ask(
    connection: ReservedSQL,
    statement: string,
    values: readonly SqlValue[],
  ): Promise<Readonly<Record<string, unknown>>[]> {
    try {
      await this.#begin(connection);
      const rows = [...(await connection.unsafe(statement, [...values]))];
      await connection.unsafe('ROLLBACK');
      return rows;
    } catch (error) {
      await connection.unsafe('ROLLBACK').catch(() => undefined);
      throw error;
    }
  }

  /** Opens a transaction that can only read, whose statements end in time. */
  async #begin(connection: ReservedSQL): Promise<void> {
    const ms = this.#options.statementTimeoutMs;
    try {
      for (const statement of timeouts[this.#prelude]) {
        await connection.unsafe(statement.replace('%ms', String(ms)).replace('%s', String(ms / 1_000)));
      }
    } catch (error) {
      if (this.#prelude !== 'mysql' || String((error as { errno?: unknown }).errno) !== unknownVariable) throw error;
      this.#prelude = 'mariadb';
      await this.#begin(connection);
    }
  }

  async close(): Promise<void> {
    await this.#sql.close({ timeout: 1 }).catch(() => undefined);
  }

  #tooSlow(cause?: unknown): ServiceError {
    const { connection, statementTimeoutMs } = this.#options;
    const what = `the database "${connection}" did not answer within ${statementTimeoutMs} ms; narrow what is asked of it`;
    return new ServiceError('foreign_source_unavailable', what, { cause });
  }

  /** The members that a caller may know: neither address nor user, nor anything that is a secret here. */
  #failure(error: unknown): ServiceError {
    if (error instanceof ServiceError) return error;
    const { connection, redact } = this.#options;
    const { code, errno, message } = error as { code?: string; errno?: string | number; message?: string };
    const state = String(errno ?? '');
    const text =
      redact(String(message ?? error))
        .split('\n')[0]
        ?.slice(0, 200) ?? '';
    if (timeoutStates.includes(state) || /statement timeout|max_(execution|statement)_time/i.test(text)) {
      return this.#tooSlow(error);
    }
    const isAnswer =
      code === 'ERR_POSTGRES_SERVER_ERROR' || code === 'ERR_MYSQL_SERVER_ERROR' || code === 'SQLITE_ERROR';
    if (isAnswer && !loginStates.test(state)) {
      const what = `the database "${connection}" refuses the statement: ${text}`;
      return new ServiceError('foreign_source_refused', what, { cause: error });
    }
    const what = `the database "${connection}" cannot be reached, or refuses the login`;
    return new ServiceError('foreign_source_unavailable', what, { cause: error });
  }
}

/** MySQL's `ER_UNKNOWN_SYSTEM_VARIABLE`. */
const unknownVariable = '1193';
/** Canceled by a timeout: PostgreSQL's `query_canceled`, MySQL's `ER_QUERY_TIMEOUT`, MariaDB's `ER_STATEMENT_TIMEOUT`. */
const timeoutStates = ['57014', '3024', '1969'];
/** PostgreSQL's classes of connection and authorization, and an unknown database; MySQL's refused logins. */
const loginStates = /^(?:08|28|3D|57P|1044$|1045$|1049$)/;
