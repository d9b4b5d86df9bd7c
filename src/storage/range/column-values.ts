import type { Database } from 'bun:sqlite';
import type { IndexedColumn } from '../constrained-table.ts';

/** The values of columns of relational tables in one range, looked up by indexes that SQLite keeps with the rows. */
export class ColumnValues {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Makes the index of a column when there is none. Inside a transaction. */
  ensure({ name }: IndexedColumn): void {
    this.#database.run(`CREATE INDEX IF NOT EXISTS "column_${name}" ON documents (${columnValue(name)})`);
  }

  /** The value of the row with this key as text; null where it has none. */
  valueAt({ name }: IndexedColumn, key: Uint8Array): string | null {
    const query = this.#database.query(
      `SELECT CAST(${columnValue(name)} AS TEXT) AS value FROM documents WHERE key = ?`,
    );
    return (query.get(key) as { value: string | null } | null)?.value ?? null;
  }

  /** How many rows have this value, as `valueAt` gives it; 2 for more. */
  count({ name, isText }: IndexedColumn, value: string): number {
    const given = isText ? '?' : 'CAST(? AS NUMERIC)';
    const some = `SELECT 1 FROM documents WHERE ${columnValue(name)} = ${given} LIMIT 2`;
    return (this.#database.query(`SELECT count(*) AS found FROM (${some})`).get(value) as { found: number }).found;
  }

  /** Rows that have this text, at most `rowsMax`, with all that the writer knows of a row and its key. */
  rowsWith<Row>({ name }: IndexedColumn, value: string, rowsMax: number): Row[] {
    const columns =
      'key, ordinal, sequence, coalesce(ttl_base_ms, 0) AS ttlBaseMs, length(body) AS bodyBytes, ' +
      'coalesce(written_ms, 0) AS writtenMs, crc, body';
    const query = this.#database.query(`SELECT ${columns} FROM documents WHERE ${columnValue(name)} = ? LIMIT ?`);
    return query.all(value, rowsMax) as Row[];
  }
}

/** Names of columns are letters, digits and `_`. */
function columnValue(name: string): string {
  return `json_extract(CAST(body AS TEXT), '$.${name}')`;
}
