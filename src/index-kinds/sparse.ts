import {
  type EmbeddingsPolicies,
  type ManagedMembers,
  type ManagedSource,
  managedSourceOf,
} from './configuration/managed-source.ts';
import { type CommonDefinition, type CommonIndexConfig, countsOfDocuments, type IndexKind } from './index-kind.ts';

/** A checked configuration of an index of sparse vectors, which come with the documents or are made from them. */
export type SparseConfig = CommonIndexConfig &
  Partial<ManagedMembers> &
  EmbeddingsPolicies & {
    type: 'embeddings';
    /** The vectors come with the documents. */
    external: boolean;
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
  /** The source of its vectors; undefined where they come with the documents. */
  managed?: ManagedSource | undefined;
}

export const sparse: IndexKind<SparseConfig, SparseDefinition> = {
  kind: 'sparse',
  follows: 'parts',
  define: (identity, config) => {
    const { min_weight: minWeight, top_k: topK } = config;
    return { ...identity, kind: 'sparse', minWeight, topK, managed: managedSourceOf(config) };
  },
  shapeOf: ({ external, chunker }) => (external ? 'sparse' : chunker ? 'managed sparse in chunks' : 'managed sparse'),
  nativeOptions: ({ partId, minWeight }) => ({ type: 'sparse', index_id: partId, min_weight: minWeight }),
  writtenVectors: ({ managed }) => ({ kind: managed ? 'managed' : 'sparse' }),
  vectorSearch: { hasDistance: false, takesEffort: false, defaultLimit: ({ topK }) => topK },
  counts: countsOfDocuments,
};
