import type { TableSchema } from '../protocol/database/tables.ts';
import type { IndexEnrichments } from './configuration/index-enrichments.ts';

/** Members that the checked configuration of every index has. */
export type CommonIndexConfig = {
  name: string;
  description: string;
  version: number;
  enrichments: IndexEnrichments;
  mem_only: boolean;
};

/** The members of every index's definition. */
export interface CommonDefinition {
  kind: string;
  name: string;
  /** Changes when the index is made again: a directory that another incarnation wrote is not opened. */
  incarnation: number;
  /** The part id of its vectors, in every range of the table. */
  partId: number;
  /** Of one that is made of an enrichment's artifacts: what those are stored under. */
  sourcePartId?: number | undefined;
  /** Nothing is written to disk. */
  memOnly: boolean;
}

/** The members of a definition beside those of its kind. */
export type Identity = Omit<CommonDefinition, 'kind'>;

/** The requirements on the vectors and edges of a write, as the engine reads them. */
export interface WrittenVectors {
  name: string;
  /** The index's part. */
  id: number;
  /** `managed`: the server makes its vectors or edges. `full_text` and `graph`: it takes none. */
  kind: 'dense' | 'sparse' | 'managed' | 'full_text' | 'graph';
  /** Of a dense index. */
  dimension?: number;
  metric?: 'l2_squared' | 'cosine' | 'inner_product';
  /** Of a graph index: which edges it takes, as JSON. */
  edgeRules?: string;
}

/** The counters of an index that depend on what it holds. */
export interface IndexCounts {
  doc_count: number;
  term_count: number;
  node_count: number;
  edge_count: number;
}

/**
 * Everything that the server has to know of one kind of index: a new kind is one object of this type, and its native
 * index. The configuration is read in `index-config.ts`, by the `type` that it has on the wire.
 */
export interface IndexKind<Config extends CommonIndexConfig, Definition extends CommonDefinition> {
  /** Its name in definitions, metrics and profiles. */
  readonly kind: Definition['kind'];
  /**
   * The rows that it is built from: documents, or those of its part; both hear of deletions. `text_index`: it is kept by
   * the table's text index, and has nothing of its own.
   */
  readonly follows: 'documents' | 'parts' | 'text_index';
  /** `schema` maps the fields of full text. */
  define(identity: Identity, config: Config, schema: TableSchema | undefined): Definition;
  /**
   * The shape that an index must share with an earlier one of its name to take
   * over its vectors; undefined for one of documents.
   */
  shapeOf(config: Config): string | undefined;
  /** The options by which the engine opens it, beside name, incarnation and whether it is kept in memory. */
  nativeOptions(definition: Definition): object;
  /** The same while its table is loaded and nobody searches it: what serves searches alone may wait. */
  readonly nativeOptionsOfLoad?: object;
  writtenVectors(definition: Definition): Omit<WrittenVectors, 'name' | 'id'>;
  /** How it is searched by a vector; undefined when it takes none. */
  readonly vectorSearch?: {
    /** Hits have a raw distance, by which they can be cut. */
    hasDistance: boolean;
    /** `search_effort` trades time for recall. */
    takesEffort: boolean;
    /** Hits of a query that names no limit and searches nothing else; undefined for the limit of all queries. */
    defaultLimit(definition: Definition): number | undefined;
  };
  counts(stats: CountedStats): IndexCounts;
}

/** The counts of the engine. */
export interface CountedStats {
  docCount: number;
  termCount: number;
  /** Of a graph index as a whole: edges that are shown, and the nodes at their ends. */
  graph?: { edges: number; nodes: number } | undefined;
}

/** The counters of an index that knows documents and terms. */
export function countsOfDocuments({ docCount, termCount }: CountedStats): IndexCounts {
  return { doc_count: docCount, term_count: termCount, node_count: 0, edge_count: 0 };
}
