import { constants, Database } from 'bun:sqlite';
import type { SqlAnswer, SqlColumn, SqlOrder, SqlTable } from './sql-order.ts';

/**
 * Entry of the process that runs statements of SQL, one at a time. The server ends it when a statement takes too long; when
 * the server is gone nothing is left to wait for, and it ends by itself.
 */
process.on('message', (order) => process.send?.(answerOrder(order as SqlOrder)));

const busyTimeoutMs = 5_000;
let opened: Database | undefined;

function answerOrder(order: SqlOrder): SqlAnswer {
  let answer: SqlAnswer;
  try {
    answer = obey(order);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const isLimit = /out of memory|too big|too many/.test(reason);
    answer = { refused: isLimit ? 'limit_exceeded' : 'invalid_query', reason };
  }
  if (order.kind === 'run' || 'refused' in answer) close();
  return answer;
}

function obey(order: SqlOrder): SqlAnswer {
  if (order.kind === 'open') return open(order);
  if (!opened) throw new Error('no tables are open');
  if (order.kind === 'rows') return takeRows(opened, order);
  opened.run('PRAGMA query_only = ON');
  return runStatement(opened, order);
}

function close(): void {
  opened?.close();
  opened = undefined;
}

/** Opens the tables at one instant for each file, which lasts until the statement has run. */
function open({ attached, copied, memoryBytesMax }: Extract<SqlOrder, { kind: 'open' }>): SqlAnswer {
  close();
  const { SQLITE_OPEN_READWRITE, SQLITE_OPEN_CREATE, SQLITE_OPEN_URI } = constants;
  const database = new Database(':memory:', SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI);
  opened = database;
  database.run(`PRAGMA hard_heap_limit = ${memoryBytesMax}`);
  database.run('PRAGMA temp_store = MEMORY');
  database.run('PRAGMA temp.journal_mode = OFF');
  database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  const schemas = showTables(database, attached, copied);
  for (const table of copied) {
    const columns = ['_id TEXT PRIMARY KEY', ...table.columns.map(({ name }) => quoted(name))];
    database.run(`CREATE TEMP TABLE ${quoted(table.name)} (${columns.join(', ')}) WITHOUT ROWID`);
    for (const { name, isIndexed } of table.columns) {
      if (!isIndexed) continue;
      // No name of a table or a column has a space.
      const index = quoted(`${name} of ${table.name}`);
      database.run(`CREATE INDEX temp.${index} ON ${quoted(table.name)} (${quoted(name)})`);
    }
  }
  database.run('BEGIN');
  // The instant of a reader is that of its first read.
  const heads = schemas.map((schema) => {
    const first = `(SELECT first_sequence - 1 FROM ${schema}.range_identity)`;
    const query = database.query(`SELECT coalesce(max(sequence), ${first}) AS head FROM ${schema}.changes`);
    return (query.get() as { head: number }).head;
  });
  return { heads };
}

function takeRows(database: Database, { table, rows }: Extract<SqlOrder, { kind: 'rows' }>): SqlAnswer {
  const values = ['?1', ...table.columns.map((column) => columnValue(column, '?2'))];
  const insert = database.query(`INSERT INTO temp.${quoted(table.name)} VALUES (${values.join(', ')})`);
  for (const [key, body] of rows) insert.run(key, body);
  return { taken: true };
}

type AttachedTable = Extract<SqlOrder, { kind: 'open' }>['attached'][number];

/** Makes views of the tables, and hides all else that is in their files: a statement sees nothing but them. */
function showTables(database: Database, tables: readonly AttachedTable[], others: readonly SqlTable[]): string[] {
  const schemas: string[] = [];
  const hidden = new Set<string>();
  for (const table of tables) {
    const selects = table.files.map((file) => {
      const schema = `sundew_range_${schemas.length + 1}`;
      schemas.push(schema);
      database.query('ATTACH ? AS ?').run(`file:${encodeURI(file)}?mode=ro`, schema);
      const inner = database.query(`SELECT name FROM ${schema}.sqlite_schema WHERE type = 'table'`).all();
      for (const { name } of inner as { name: string }[]) hidden.add(name);
      return `SELECT ${columnsOf(table.columns)} FROM ${schema}.documents`;
    });
    database.run(`CREATE TEMP VIEW ${quoted(table.name)} AS ${selects.join(' UNION ALL ')}`);
  }
  const shown = new Set([...tables, ...others].map(({ name }) => name.toLowerCase()));
  for (const name of hidden) {
    if (shown.has(name.toLowerCase())) continue;
    // Found before the tables of attached files; to read it fails.
    database.run(`CREATE TEMP VIEW ${quoted(name)} AS SELECT * FROM "nothing of this name"`);
  }
  return schemas;
}

function runStatement(database: Database, order: Extract<SqlOrder, { kind: 'run' }>): SqlAnswer {
  const { sql, checked, parameters, rowsMax, bytesMax } = order;
  database.prepare(checked).finalize();
  const statement = database.prepare(sql).safeIntegers(true);
  if (statement.paramsCount !== parameters.length) {
    const reason = `the statement has ${statement.paramsCount} parameters, and ${parameters.length} are given`;
    return { refused: 'invalid_query', reason };
  }
  const columns = statement.columnNames;
  const twice = columns.find((name, at) => columns.indexOf(name) !== at);
  if (twice !== undefined) {
    return { refused: 'invalid_query', reason: `two columns are named "${twice}"; give one another name by AS` };
  }
  const rows: string[] = [];
  let bytes = 0;
  for (const row of statement.iterate(...parameters) as Iterable<Record<string, unknown>>) {
    if (rows.length === rowsMax) {
      return { refused: 'limit_exceeded', reason: `the statement has more than ${rowsMax} rows; add a LIMIT` };
    }
    const values = columns.map((name) => row[name]);
    const isLarge = values.some((value) => lengthOf(value) > bytesMax);
    const text = isLarge ? '' : JSON.stringify(values.map(shown));
    bytes += text.length;
    if (isLarge || bytes > bytesMax) {
      return { refused: 'limit_exceeded', reason: `the rows are more than ${bytesMax} bytes; add a LIMIT` };
    }
    rows.push(text);
  }
  return { columns, rows: `[${rows.join(',')}]` };
}

function lengthOf(value: unknown): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 0;
}

const integerMax = 2n ** 53n;

/** Integers beyond 2^53 and infinite numbers are text: JSON would round the former and has null for the latter. */
function shown(value: unknown): unknown {
  if (typeof value === 'bigint') return value >= -integerMax && value <= integerMax ? Number(value) : String(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}

function columnsOf(columns: readonly SqlColumn[]): string {
  const values = columns.map((column) => `${columnValue(column, 'CAST(body AS TEXT)')} AS ${quoted(column.name)}`);
  return ['CAST(key AS TEXT) AS _id', ...values].join(', ');
}

/**
 * The value of a column, of its type whatever the row has written: equal numbers divide alike, 7 as 7.0. An indexed one is taken
 * as it is written, which is how the indexes of the ranges have it.
 */
function columnValue({ name, type, isIndexed }: SqlColumn, body: string): string {
  const value = `json_extract(${body}, '$.${name}')`;
  // The sign takes from the cast that texts would be compared with it as numbers, as with no other column.
  if (type === 'number') return `+CAST(${value} AS REAL)`;
  if (type !== 'integer' || isIndexed) return value;
  // Numbers beyond 2^53, such as 1e22, stay doubles.
  return `iif(abs(${value}) <= ${integerMax}, CAST(${value} AS INTEGER), ${value})`;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
