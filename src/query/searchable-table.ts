import type { AccessLevel } from '../access/grants.ts';
import type { Caller } from '../access/principal.ts';
import type { IndexDefinition } from '../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../index-kinds/configuration/artifact-config.ts';
import type { IndexedRange } from '../indexing/indexed-range.ts';
import type { TableSchema } from '../protocol/database/tables.ts';
import type { ProviderConfig } from '../provider-config/provider-config.ts';

/** An index of a table that is searched. */
export interface ServingIndex {
  readonly name: string;
  readonly definition: IndexDefinition;
  /** The producer of its vectors; undefined where they come with the documents. */
  readonly embedder?: ProviderConfig | undefined;
}

/** Whether words can be searched for: not by a table whose text index was dropped, until another one is built. */
export type TextIndexState = 'serving' | 'coming' | 'dropped';

/** A table as queries see it. */
export interface SearchableTable {
  readonly name: string;
  readonly settings: { readonly schema: TableSchema };
  /** All, those among them that users do not see. */
  readonly indexes: readonly ServingIndex[];
  /** The enrichments of its documents, without the vectors of indexes. */
  readonly artifacts: readonly ArtifactDefinition[];
  /** Those that users see. */
  readonly listedIndexes: readonly ServingIndex[];
  readonly textIndex: TextIndexState;
  /** The full-text index that answers; another one takes over after a change of the schema. */
  readonly servingIndex: ServingIndex;
  /** Resolves when no text index is coming any more, or the signal fires. */
  textServes(signal: AbortSignal): Promise<void>;
  readonly ttlDurationMs: number | undefined;
  /** Documents whose base time is at or before this have expired; undefined when they live for ever. */
  expiredAtOrBeforeMs(nowMs: number): number | undefined;
  /** The position, among the ranges, of the one that holds a key. */
  rangeOf(key: string): number;
  /** Keeps all ranges open until it is disposed. */
  lease(): Promise<Disposable & { readonly ranges: readonly IndexedRange[] }>;
}

/** Finds tables; fails with `table_not_found` or `forbidden`. */
export interface SearchableTables {
  get(name: string, caller: Caller, level: AccessLevel): SearchableTable;
}
