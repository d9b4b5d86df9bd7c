import { SQL } from 'bun';
import { ServiceError } from '../../protocol/service-error.ts';
import type { SqlDialect, SqlValue } from './foreign-database.ts';

interface PoolOptions {
  readonly dialect: SqlDialect;
  /** With its credential; for SQLite the path of the file. */
  readonly address: string;
  readonly statementTimeoutMs: number;
  /** For messages. */
  readonly connection: string;
  /** Takes secrets out of what a database says. */
  redact(text: string): string;
}

const connectionsMax = 4;
const connectSeconds = 5;
const idleSeconds = 30;

/** What may be said to a database before a statement, so that it only reads and ends in time. */
const preludes: Record<Exclude<SqlDialect, 'sqlite'>, (timeoutMs: number) => string[]> = {
  postgres: (ms) => ['BEGIN READ ONLY', `SET LOCAL statement_timeout = ${ms}`],
  mysql: (ms) => [`SET SESSION max_execution_time = ${ms}`, 'START TRANSACTION READ ONLY'],
};

/** A few connections to one database. */
export class SqlPool {
  readonly #options: PoolOptions;
  readonly #sql: SQL;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { dialect, address } = options;
    this.#sql =
      dialect === 'sqlite'
        ? new SQL({ adapter: 'sqlite', filename: address, readonly: true, create: false })
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
    const { dialect, statementTimeoutMs } = this.#options;
    if (dialect === 'sqlite') return [...(await this.#sql.unsafe(statement, [...values]))];
    const connection = await this.#sql.reserve();
    try {
      for (const prelude of preludes[dialect](statementTimeoutMs)) await connection.unsafe(prelude);
      const rows = [...(await connection.unsafe(statement, [...values]))];
      await connection.unsafe('ROLLBACK');
      return rows;
    } catch (error) {
      await connection.unsafe('ROLLBACK').catch(() => undefined);
      throw error;
    } finally {
      connection.release();
    }
  }

  async close(): Promise<void> {
    await this.#sql.close({ timeout: 1 }).catch(() => undefined);
  }

  /** What a caller may know: neither address nor user, nor anything that is a secret here. */
  #failure(error: unknown): ServiceError {
    const { connection, redact, statementTimeoutMs } = this.#options;
    const { code, errno, message } = error as { code?: string; errno?: string | number; message?: string };
    const state = String(errno ?? '');
    const text =
      redact(String(message ?? error))
        .split('\n')[0]
        ?.slice(0, 200) ?? '';
    if (timeoutStates.includes(state) || /statement timeout|max_execution_time/i.test(text)) {
      const what = `the database "${connection}" did not answer within ${statementTimeoutMs} ms; narrow what is asked of it`;
      return new ServiceError('foreign_source_unavailable', what, { cause: error });
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

/** Canceled by a timeout: PostgreSQL's `query_canceled`, MySQL's `ER_QUERY_TIMEOUT`. */
const timeoutStates = ['57014', '3024'];
/** PostgreSQL's classes of connection and authorization, and an unknown database; MySQL's refused logins. */
const loginStates = /^(?:08|28|3D|57P|1044$|1045$|1049$)/;
