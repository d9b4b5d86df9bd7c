import {
  type EmbeddingsPolicies,
  type ManagedMembers,
  type ManagedSource,
  managedSourceOf,
} from './configuration/managed-source.ts';
import { type CommonDefinition, type CommonIndexConfig, countsOfDocuments, type IndexKind } from './index-kind.ts';

export const distanceMetrics = ['l2_squared', 'cosine', 'inner_product'] as const;
export type DistanceMetric = (typeof distanceMetrics)[number];

/** A checked configuration of an index of dense vectors, which come with the documents or are made from them. */
export type DenseConfig = CommonIndexConfig &
  Partial<ManagedMembers> &
  EmbeddingsPolicies & {
    type: 'embeddings';
    /** The vectors come with the documents. */
    external: boolean;
    sparse: false;
    dimension: number;
    distance_metric: DistanceMetric;
    /** The enrichment whose vectors it holds, in place of ones of its own. */
    source_artifact_name?: string;
  };

export interface DenseDefinition extends CommonDefinition {
  kind: 'dense';
  dimension: number;
  metric: DistanceMetric;
  /** The source of its vectors; undefined where they come with the documents. */
  managed?: ManagedSource | undefined;
  /** The enrichment whose vectors it holds, under the part of that. */
  artifact?: string | undefined;
}

export const dense: IndexKind<DenseConfig, DenseDefinition> = {
  kind: 'dense',
  follows: 'parts',
  define: (identity, config) => {
    const { dimension, distance_metric: metric, source_artifact_name: artifact } = config;
    return { ...identity, kind: 'dense', dimension, metric, managed: managedSourceOf(config), artifact };
  },
  shapeOf: ({ dimension, external, chunker, source_artifact_name: artifact }) =>
    artifact === undefined
      ? `${external ? '' : 'managed '}dense ${dimension}${chunker ? (chunker.late === true ? ' in late chunks' : ' in chunks') : ''}`
      : `dense ${dimension} of enrichment ${artifact}`,
  nativeOptions: ({ partId, dimension, metric }) => ({ type: 'dense', index_id: partId, dimension, metric }),
  // Rows that are scanned before they become a graph. A graph that is made of many rows at once takes the least work, and one
  // under way is lost when the table is published.
  nativeOptionsOfLoad: { tail_bytes: 64 * 1_024 * 1_024 },
  writtenVectors: ({ dimension, metric, managed, artifact }) =>
    managed || artifact ? { kind: 'managed' } : { kind: 'dense', dimension, metric },
  vectorSearch: { hasDistance: true, takesEffort: true, defaultLimit: () => undefined },
  counts: countsOfDocuments,
};
