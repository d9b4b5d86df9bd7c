import type { ColumnKind, SqlDialect, SqlValue } from './foreign-database.ts';

/** The query for the names and types of a table's columns. */
export function columnsStatement(dialect: SqlDialect, table: string): { statement: string; values: SqlValue[] } {
  const dot = table.indexOf('.');
  const name = table.slice(dot + 1);
  const schema = dot < 0 ? undefined : table.slice(0, dot);
  if (dialect === 'sqlite') return { statement: 'SELECT name, type FROM pragma_table_info(?)', values: [name] };
  const select = 'SELECT column_name AS name, data_type AS type FROM information_schema.columns';
  if (dialect === 'postgres') {
    const statement = `${select} WHERE table_schema = $1 AND table_name = $2 ORDER BY ordinal_position`;
    return { statement, values: [schema ?? 'public', name] };
  }
  const where = schema === undefined ? 'DATABASE()' : '?';
  const statement = `${select} WHERE table_schema = ${where} AND table_name = ? ORDER BY ordinal_position`;
  return { statement, values: schema === undefined ? [name] : [schema, name] };
}

/** SQLite takes any word for a type; those with these in them are numbers or texts (https://sqlite.org/datatype3.html). */
const sqliteInteger = /INT/i;
const sqliteNumber = /REAL|FLOA|DOUB|NUM|DEC/i;
const sqliteText = /CHAR|CLOB|TEXT/i;

const integers = /^(?:small|big|tiny|medium)?int(?:eger)?$/i;
const numbers = /^(?:numeric|decimal|double(?: precision)?)$/i;
const singles = /^(?:real|float)$/i;
/** PostgreSQL's `character` is none: it shows spaces behind a value that it does not compare. */
const texts = /^(?:character varying|varchar|char|text|(?:tiny|medium|long)text|enum|citext|name)$/i;

export function kindOfColumn(dialect: SqlDialect, type: string): ColumnKind {
  if (dialect === 'sqlite') {
    // A column of integers may hold other numbers there.
    if (sqliteInteger.test(type)) return 'number';
    if (sqliteText.test(type)) return 'text';
    return sqliteNumber.test(type) ? 'number' : 'other';
  }
  if (integers.test(type)) return 'integer';
  if (numbers.test(type)) return 'number';
  if (singles.test(type)) return 'single';
  if (texts.test(type)) return 'text';
  return /^boolean$/i.test(type) ? 'boolean' : 'other';
}
