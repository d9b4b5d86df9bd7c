/** What the process that runs SQL is told. Plain data. */
export interface SqlOrder {
  sql: string;
  parameters: readonly (string | number | boolean | null)[];
  /** Relational tables, each with the file of each of its ranges. */
  tables: readonly { name: string; columns: readonly string[]; files: readonly string[] }[];
  rowsMax: number;
  /** Of the rows as JSON. */
  bytesMax: number;
}

/** What it answers. */
export type SqlAnswer =
  | { readonly columns: readonly string[]; readonly rows: string }
  | { readonly refused: 'invalid_query' | 'limit_exceeded'; readonly reason: string };
