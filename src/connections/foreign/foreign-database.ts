/** A value of a statement, or of a row. */
export type SqlValue = string | number | boolean | null;

export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

/** The type of a column, as far as comparisons go. */
export type ColumnKind = 'integer' | 'number' | 'text' | 'boolean' | 'other';

export interface ForeignColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** One table of a database elsewhere, for reading. */
export interface ForeignDatabase {
  readonly dialect: SqlDialect;
  /** As the connection names it, its schema before a dot. */
  readonly table: string;
  /** The columns of the table. Fails with `foreign_source_refused` when it has none. */
  columns(): Promise<readonly ForeignColumn[]>;
  /**
   * The rows of one statement, which is run in a transaction that can only read, within the time that the connection
   * allows. Fails with `foreign_source_unavailable` or `foreign_source_refused`; neither names the address.
   */
  select(statement: string, values: readonly SqlValue[]): Promise<Readonly<Record<string, unknown>>[]>;
}
