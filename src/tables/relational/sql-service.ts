import { type Caller, seesTable } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { SqlProcesses } from '../../storage/sql/sql-processes.ts';
import type { Table } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { isRelational } from './relational-schema.ts';
import { SqlInstant, type SqlStorage } from './sql-instant.ts';

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
const readOnly = /^\s*(?:--[^\n]*\n\s*|\/\*[\s\S]*?\*\/\s*)*(?:select|with|values|explain\s+query\s+plan)\b/i;

/** Read-only SQL over relational tables, run by SQLite on the files that hold their rows. */
export class SqlService {
  readonly #deps: SqlServiceDeps;

  constructor(deps: SqlServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Runs one statement; answers the columns' names and the rows, as JSON. Fails with `invalid_query`, `limit_exceeded`,
   * `query_timeout`, and as the lookup of each relational table that the statement names.
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
      const tables = this.#tablesOf(sql, caller);
      for (const table of tables) leases.use(await table.lease());
      const { sqlRowsMax: rowsMax, sqlAnswerBytesMax: bytesMax } = limits;
      return await this.#deps.processes.use(signal, async (ask) => {
        const { storage, clock } = this.#deps;
        await new SqlInstant({ ask, storage, nowMs: clock.nowMs(), caller, signal }).open(tables);
        return ask({ kind: 'run', sql, parameters, rowsMax, bytesMax });
      });
    } finally {
      cancel();
    }
  }

  /**
   * The relational tables whose names occur in the statement. Others are not there for it, nor those whose names differ in the
   * case of letters from one that is spelled as it is: SQL does not tell them apart.
   */
  #tablesOf(sql: string, caller: Caller): Table[] {
    const text = sql.toLowerCase();
    const isNamed = ({ name, settings }: Table) => isRelational(settings.schema) && text.includes(name.toLowerCase());
    const named = this.#deps.tables.all().filter((table) => isNamed(table) && seesTable(caller, table.name));
    const alike = Map.groupBy(named, ({ name }) => name.toLowerCase());
    const meant = [...alike.values()].map((group) => meantOf(group, sql));
    return meant.map(({ name }) => this.#deps.tables.get(name, caller, 'read'));
  }
}

/** Of tables whose names differ only in the case of letters, the one that the statement spells as it is. */
function meantOf(alike: readonly Table[], sql: string): Table {
  const candidates = alike.length === 1 ? alike : alike.filter(({ name }) => sql.includes(name));
  const [meant] = candidates;
  if (meant !== undefined && candidates.length === 1) return meant;
  const names = alike.map(({ name }) => JSON.stringify(name)).join(' and ');
  const reason = `SQL does not tell the tables ${names} apart, and the statement has to spell one of them, and not the other`;
  throw new ServiceError('invalid_query', `sql: ${reason}`);
}

/** Strings, quoted names and comments: a `;` inside of them ends no statement. */
const opaque = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\//g;

function checkStatement(sql: string): void {
  if (!readOnly.test(sql)) {
    throw new ServiceError('invalid_query', 'sql: only SELECT, WITH, VALUES and EXPLAIN QUERY PLAN are run');
  }
  if (/;\s*\S/.test(sql.replaceAll(opaque, ' '))) {
    throw new ServiceError('invalid_query', 'sql: one statement is run at a time');
  }
  const [name] = inner.exec(sql) ?? [];
  if (name !== undefined) {
    throw new ServiceError('invalid_query', `sql: "${name.slice(0, 64)}" is not there for statements, in texts either`);
  }
}
