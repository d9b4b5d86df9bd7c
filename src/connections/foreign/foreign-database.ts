/** A value of a statement, or of a row. */
export type SqlValue = string | number | boolean | null;

export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

/** The type of a column, as far as comparisons go; `single` has numbers of 32 bits, such as PostgreSQL's `real`. */
export type ColumnKind = 'integer' | 'number' | 'single' | 'text' | 'boolean' | 'other';

export interface ForeignColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

type SqlRow = Readonly<Record<string, unknown>>;

/** One transaction that can only read: all of its statements see the same state of the database. */
export interface ForeignReading extends AsyncDisposable {
  /**
   * The rows of a statement, all of them at once, within the time that the connection allows. Fails with
   * `foreign_source_unavailable` or `foreign_source_refused`; neither names the address.
   */
  select(statement: string, values: readonly SqlValue[]): Promise<readonly SqlRow[]>;
}

/** One table of a database elsewhere, for reading. */
export interface ForeignDatabase {
  readonly dialect: SqlDialect;
  /** As the connection names it, its schema before a dot. */
  readonly table: string;
  /** The columns of the table. Fails with `foreign_source_refused` when it has none. */
  columns(): Promise<readonly ForeignColumn[]>;
  /** Fails as the statements of a reading do. */
  open(): Promise<ForeignReading>;
}
