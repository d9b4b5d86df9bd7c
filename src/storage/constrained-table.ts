/** A column of a relational table as its values are looked up. */
export interface IndexedColumn {
  name: string;
  isText: boolean;
}

/** A relational table as the writer checks it. */
export interface ConstrainedTable {
  name: string;
  rangeIds: readonly number[];
  unique: readonly IndexedColumn[];
  references: readonly { column: string; table: string; onDelete: 'restrict' | 'cascade' | 'set_null' }[];
  /** The writer sees only some of its rows, so that none of them may follow a deletion. */
  isFiltered?: boolean;
}
