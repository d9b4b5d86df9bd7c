import { type ReservedSQL, SQL } from 'bun';
import { type Clock, within } from '../../lib/clock.ts';
import { secondMs } from '../../lib/units.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ForeignReading, SqlDialect } from './foreign-database.ts';

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

const repeatableRead = 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ';

/**
 * The statements that begin a reading: what it sees does not change, and its statements end in time. MariaDB has a name and
 * a unit of its own for the latter.
 */
const preludes = {
  sqlite: ['BEGIN'],
  postgres: ['BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', 'SET LOCAL statement_timeout = %ms'],
  mysql: ['SET SESSION max_execution_time = %ms', repeatableRead, 'START TRANSACTION READ ONLY'],
  mariadb: ['SET SESSION max_statement_time = %s', repeatableRead, 'START TRANSACTION READ ONLY'],
} as const;

/** A few connections to one database. */
export class SqlPool {
  readonly #options: PoolOptions;
  /** Undefined for SQLite, whose file is opened for each reading. */
  readonly #sql: SQL | undefined;
  /** The kind of the database, once it is known. */
  #prelude: keyof typeof preludes;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { dialect, address } = options;
    this.#prelude = dialect;
    if (dialect === 'sqlite') return;
    this.#sql = new SQL({
      adapter: dialect,
      url: address,
      max: connectionsMax,
      connectionTimeout: connectSeconds,
      idleTimeout: idleSeconds,
      // PostgreSQL gives arrays and singles of named statements in another form, and a change of the table breaks those.
      ...(dialect === 'postgres' && { prepare: false }),
    });
  }

  /** Begins a reading. Fails as its statements do. */
  async open(): Promise<ForeignReading> {
    let connection: SQL | ReservedSQL;
    try {
      connection = (await this.#sql?.reserve()) ?? openFile(this.#options.address);
    } catch (error) {
      throw this.#failure(error);
    }
    const reading = this.#reading(connection);
    try {
      await this.#begin(reading);
      return reading;
    } catch (error) {
      await reading[Symbol.asyncDispose]();
      throw error;
    }
  }

  #reading(connection: SQL | ReservedSQL): ForeignReading {
    const { clock, statementTimeoutMs } = this.#options;
    let isLost = false;
    const select: ForeignReading['select'] = async (statement, values) => {
      const answer = connection.unsafe(statement, [...values]);
      const hasAnswered = await within(clock, statementTimeoutMs + silenceMs, answer).catch(() => true);
      if (!hasAnswered) {
        isLost = true;
        void connection.close().catch(() => undefined);
        throw this.#tooSlow();
      }
      try {
        return await answer;
      } catch (error) {
        throw this.#failure(error);
      }
    };
    const end = async () => {
      if (!isLost) await select('ROLLBACK', []).catch(() => undefined);
      if (isLost) return;
      if ('release' in connection) connection.release();
      else await connection.close();
    };
    return { select, [Symbol.asyncDispose]: end };
  }

  async #begin(reading: ForeignReading): Promise<void> {
    const ms = this.#options.statementTimeoutMs;
    try {
      for (const statement of preludes[this.#prelude]) {
        await reading.select(statement.replace('%ms', String(ms)).replace('%s', String(ms / 1_000)), []);
      }
    } catch (error) {
      const errno = (error as { cause?: { errno?: unknown } }).cause?.errno;
      if (this.#prelude !== 'mysql' || String(errno) !== unknownVariable) throw error;
      this.#prelude = 'mariadb';
      await this.#begin(reading);
    }
  }

  async close(): Promise<void> {
    await this.#sql?.close({ timeout: 1 }).catch(() => undefined);
  }

  #tooSlow(cause?: unknown): ServiceError {
    const { connection, statementTimeoutMs } = this.#options;
    const what = `the database "${connection}" did not answer within ${statementTimeoutMs} ms; narrow what is asked of it`;
    return new ServiceError('foreign_source_unavailable', what, { cause });
  }

  /** The members that a caller may know: neither address nor user, nor anything that is a secret here. */
  #failure(error: unknown): ServiceError {
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

function openFile(filename: string): SQL {
  return new SQL({ adapter: 'sqlite', filename, readonly: true, create: false, safeIntegers: true });
}
