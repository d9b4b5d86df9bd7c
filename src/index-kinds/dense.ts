import { type CommonDefinition, type CommonIndexConfig, countsOfDocuments, type IndexKind } from './index-kind.ts';

export const distanceMetrics = ['l2_squared', 'cosine', 'inner_product'] as const;
export type DistanceMetric = (typeof distanceMetrics)[number];

/** A checked configuration of an index of dense vectors that come with the documents. */
export type DenseConfig = CommonIndexConfig & {
  type: 'embeddings';
  external: true;
  sparse: false;
  dimension: number;
  distance_metric: DistanceMetric;
};

export interface DenseDefinition extends CommonDefinition {
  kind: 'dense';
  dimension: number;
  metric: DistanceMetric;
}

export const dense: IndexKind<DenseConfig, DenseDefinition> = {
  kind: 'dense',
  follows: 'vectors',
  define: (identity, { dimension, distance_metric: metric }) => ({ ...identity, kind: 'dense', dimension, metric }),
  shapeOf: ({ dimension }) => `dense ${dimension}`,
  nativeOptions: ({ partId, dimension, metric }) => ({ type: 'dense', index_id: partId, dimension, metric }),
  writtenVectors: ({ dimension, metric }) => ({ kind: 'dense', dimension, metric }),
  vectorSearch: { hasDistance: true, takesEffort: true, defaultLimit: () => undefined },
  counts: countsOfDocuments,
};
