import type { TableSchema } from '../protocol/database/tables.ts';
import type { RangeRecord } from '../storage/catalog/catalog-records.ts';

/** The record of a table in the catalog beside its name, ranges and indexes, as JSON. */
export interface TableSettings {
  description?: string;
  schema: TableSchema;
  /** Schema that queries are read with while full text for `schema` is being built. */
  readSchema?: TableSchema;
  /** Names the job that reads the TTL base of every document again; until it has ended nothing expires. */
  ttlRewrite?: string;
  /** The default full-text index was dropped: what serves in its place keeps whole values only, for filters and orders. */
  textIndexDropped?: true;
}

export interface TableTotals {
  documents: number;
  /** Bytes of the documents' bodies. */
  bytes: number;
  /** Bytes of all files: documents and indexes. */
  diskBytes: number;
  /** Ranges that cannot be opened: what they hold is in none of the numbers. */
  unreadableRanges: number[];
}

/** A table as readers of its description see it. */
export interface TableView {
  readonly name: string;
  readonly settings: TableSettings;
  readonly ranges: readonly RangeRecord[];
  /** Those that users see. */
  readonly listedIndexes: readonly { name: string; config: Record<string, unknown> }[];
  totals(): Promise<TableTotals>;
}
