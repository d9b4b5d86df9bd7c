import { type Caller, seesTable } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { SqlProcesses } from '../../storage/sql/sql-processes.ts';
import type { Table } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { isRelational } from './relational-schema.ts';
import { SqlInstant, type SqlStorage } from './sql-instant.ts';
import { namesIn, withBackquotes } from './sql-names.ts';

interface SqlRequest {
  sql: string;
  parameters?: (string | number | boolean | null)[];
  timeout_ms?: number;
}

interface SqlServiceDeps {
  tables: TableLookup;
  processes: SqlProcesses;
  clock: Clock;
  storage: SqlStorage;
  timeoutMs: number;
}

/** Names of the database itself, which statements may not use. */
const inner = /\b(?:pragma_\w*|sqlite_\w*|load_extension|sundew_range_\d+)\b/i;
const readOnly = /^\s*(?:select|with|values|explain\s+query\s+plan)\b/i;

/** Read-only SQL over relational tables, run by SQLite on the files that hold their rows. */
export class SqlService {
  readonly #deps: SqlServiceDeps;

  constructor(deps: SqlServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Runs one statement; answers the columns' names and the rows, as JSON. Fails with `invalid_query`, `limit_exceeded`,
   * `query_timeout`, and as the lookup of each relational table that the statement reads.
   */
  async run(request: SqlRequest, caller: Caller): Promise<{ columns: readonly string[]; rows: string }> {
    const { sql, parameters = [], timeout_ms: timeoutMs = this.#deps.timeoutMs } = request;
    checkStatement(sql);
    const late = new AbortController();
    const error = new ServiceError('query_timeout', 'the statement did not finish within its time');
    const cancel = this.#deps.clock.after(Math.min(timeoutMs, this.#deps.timeoutMs), () => late.abort(error));
    using leases = new DisposableStack();
    try {
      const signal = AbortSignal.any([caller.signal, late.signal]);
      const { tables, withheld } = this.#tablesOf(sql, caller);
      for (const table of tables) leases.use(await table.lease());
      const { sqlRowsMax: rowsMax, sqlAnswerBytesMax: bytesMax } = limits;
      return await this.#deps.processes.use(signal, async (ask) => {
        const { storage, clock } = this.#deps;
        await new SqlInstant({ ask, storage, nowMs: clock.nowMs(), caller, signal }).open(tables);
        const order = { kind: 'run', sql, checked: withBackquotes(sql), parameters, rowsMax, bytesMax } as const;
        return ask(order).catch((failure: unknown) => {
          throw reasonOf(failure, withheld);
        });
      });
    } finally {
      cancel();
    }
  }

  /**
   * The relational tables that the statement names. One that its caller sees but may not read, or whose name is spelled like
   * that of another, is not there for it, and a statement that reads it gets the reason: a column may have such a name as well.
   */
  #tablesOf(sql: string, caller: Caller): NamedTables {
    const names = namesIn(sql);
    const folded = new Set([...names].map(fold));
    const isNamed = ({ name, settings }: Table) => isRelational(settings.schema) && folded.has(fold(name));
    const named = this.#deps.tables.all().filter((table) => isNamed(table) && seesTable(caller, table.name));
    const found: NamedTables = { tables: [], withheld: new Map() };
    for (const [name, alike] of Map.groupBy(named, (table) => fold(table.name))) {
      try {
        found.tables.push(this.#deps.tables.get(meantOf(alike, names).name, caller, 'read'));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        found.withheld.set(name, error);
      }
    }
    return found;
  }
}

interface NamedTables {
  readonly tables: Table[];
  /** By folded name, why a table that is named is not among them. */
  readonly withheld: Map<string, ServiceError>;
}

/** SQL does not tell names apart that differ in the case of letters alone. */
function fold(name: string): string {
  return name.toLowerCase();
}

/** Of tables whose names differ only in the case of letters, the one that the statement spells as it is. */
function meantOf(alike: readonly Table[], names: ReadonlySet<string>): Table {
  const candidates = alike.length === 1 ? alike : alike.filter(({ name }) => names.has(name));
  const [meant] = candidates;
  if (meant !== undefined && candidates.length === 1) return meant;
  const shown = alike.map(({ name }) => JSON.stringify(name)).join(' and ');
  const reason = `SQL does not tell the tables ${shown} apart, and the statement has to spell one of them, and not the other`;
  throw new ServiceError('invalid_query', `sql: ${reason}`);
}

/** The error of a statement, or the reason why a table that it reads is not there. */
function reasonOf(error: unknown, withheld: ReadonlyMap<string, ServiceError>): unknown {
  if (!(error instanceof ServiceError)) return error;
  const [, absent = ''] = /no such table: (?:main\.)?(.*)$/s.exec(error.message) ?? [];
  return withheld.get(fold(absent)) ?? error;
}

/** Strings, quoted names and comments: a `;` inside of them ends no statement, and comments may stand before one. */
const opaque = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g;

function checkStatement(sql: string): void {
  if (sql.includes('\0')) {
    throw new ServiceError('invalid_query', 'sql: SQLite ends a statement at the character U+0000; leave it out');
  }
  const bare = sql.replaceAll(opaque, ' ');
  if (!readOnly.test(bare)) {
    throw new ServiceError('invalid_query', 'sql: only SELECT, WITH, VALUES and EXPLAIN QUERY PLAN are run');
  }
  if (/;\s*\S/.test(bare)) {
    throw new ServiceError('invalid_query', 'sql: one statement is run at a time');
  }
  const [name] = inner.exec(sql) ?? [];
  if (name !== undefined) {
    throw new ServiceError('invalid_query', `sql: "${name.slice(0, 64)}" is not there for statements, in texts either`);
  }
}
