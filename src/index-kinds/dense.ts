import { type CommonDefinition, type CommonIndexConfig, countsOfDocuments, type IndexKind } from './index-kind.ts';
import { type ManagedMembers, type ManagedSource, managedSourceOf } from './managed-source.ts';

export const distanceMetrics = ['l2_squared', 'cosine', 'inner_product'] as const;
export type DistanceMetric = (typeof distanceMetrics)[number];

/** A checked configuration of an index of dense vectors, which come with the documents or are made from them. */
export type DenseConfig = CommonIndexConfig &
  Partial<ManagedMembers> & {
    type: 'embeddings';
    /** The vectors come with the documents. */
    external: boolean;
    sparse: false;
    dimension: number;
    distance_metric: DistanceMetric;
  };

export interface DenseDefinition extends CommonDefinition {
  kind: 'dense';
  dimension: number;
  metric: DistanceMetric;
  /** What its vectors are made from; undefined where they come with the documents. */
  managed?: ManagedSource | undefined;
}

export const dense: IndexKind<DenseConfig, DenseDefinition> = {
  kind: 'dense',
  follows: 'parts',
  define: (identity, config) => {
    const { dimension, distance_metric: metric } = config;
    return { ...identity, kind: 'dense', dimension, metric, managed: managedSourceOf(config) };
  },
  shapeOf: ({ dimension, external, chunker }) =>
    `${external ? '' : 'managed '}dense ${dimension}${chunker ? (chunker.late === true ? ' in late chunks' : ' in chunks') : ''}`,
  nativeOptions: ({ partId, dimension, metric }) => ({ type: 'dense', index_id: partId, dimension, metric }),
  writtenVectors: ({ dimension, metric, managed }) =>
    managed ? { kind: 'managed' } : { kind: 'dense', dimension, metric },
  vectorSearch: { hasDistance: true, takesEffort: true, defaultLimit: () => undefined },
  counts: countsOfDocuments,
};
