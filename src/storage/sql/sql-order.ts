/** A relational table as a statement sees it: its key and these columns. */
export interface SqlTable {
  name: string;
  columns: readonly SqlColumn[];
}

export interface SqlColumn {
  name: string;
  type: 'string' | 'integer' | 'number' | 'boolean';
  /** Its values are looked up by an index. */
  isIndexed: boolean;
}

/** The messages to the process that runs SQL, one after another. Plain data. */
export type SqlOrder =
  | {
      kind: 'open';
      /** Tables that are read where they lie, in the file of each of their ranges. */
      attached: readonly (SqlTable & { files: readonly string[] })[];
      /** Tables whose rows are sent. */
      copied: readonly SqlTable[];
      /** That SQLite may take. */
      memoryBytesMax: number;
    }
  | { kind: 'rows'; table: SqlTable; rows: readonly (readonly [key: string, body: string])[] }
  | {
      kind: 'run';
      sql: string;
      /** The same statement in a spelling in which a name that is not there is an error; it is not run. */
      checked: string;
      parameters: readonly (string | number | boolean | null)[];
      rowsMax: number;
      /** Of the rows as JSON. */
      bytesMax: number;
    };

/** Its answers. Where it refuses, and after a run, nothing is open any more. */
export type SqlAnswer =
  /** The last sequence of each attached file, as this and all statements behind it see it. */
  | { readonly heads: readonly number[] }
  | { readonly taken: true }
  | SqlRows
  | { readonly refused: 'invalid_query' | 'limit_exceeded'; readonly reason: string };

interface SqlRows {
  readonly columns: readonly string[];
  readonly rows: string;
}
