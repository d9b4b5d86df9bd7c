import { type CommonDefinition, type CommonIndexConfig, countsOfDocuments, type IndexKind } from './index-kind.ts';

/** A checked configuration of an index of sparse vectors that come with the documents. */
export type SparseConfig = CommonIndexConfig & {
  type: 'embeddings';
  external: true;
  sparse: true;
  /** Hits of a query that names no limit. */
  top_k: number;
  /** Entries of a smaller absolute weight are not indexed. */
  min_weight: number;
  /** Kept for clients that send it; the engine sizes its blocks itself. */
  chunk_size: number;
};

export interface SparseDefinition extends CommonDefinition {
  kind: 'sparse';
  /** Entries of a smaller absolute weight are not indexed. */
  minWeight: number;
  /** Hits of a query that names no limit. */
  topK: number;
}

export const sparse: IndexKind<SparseConfig, SparseDefinition> = {
  kind: 'sparse',
  follows: 'vectors',
  define: (identity, { min_weight: minWeight, top_k: topK }) => ({ ...identity, kind: 'sparse', minWeight, topK }),
  shapeOf: () => 'sparse',
  nativeOptions: ({ partId, minWeight }) => ({ type: 'sparse', index_id: partId, min_weight: minWeight }),
  writtenVectors: () => ({ kind: 'sparse' }),
  vectorSearch: { hasDistance: false, takesEffort: false, defaultLimit: ({ topK }) => topK },
  counts: countsOfDocuments,
};
