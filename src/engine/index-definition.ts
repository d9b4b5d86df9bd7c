/** An index of a range, whatever it holds: everything by which the engine opens it. */
export type IndexDefinition = {
  name: string;
  /** Changes when the index is made anew: a directory that another incarnation wrote is not opened. */
  incarnation: number;
  /** Nothing is written to disk. */
  memOnly: boolean;
} & (FullTextDefinition | DenseDefinition | SparseDefinition);

interface FullTextDefinition {
  kind: 'full_text';
  /** The schema that maps its fields, in its wire form. */
  schema: unknown;
}

interface DenseDefinition {
  kind: 'dense';
  /** What its vectors are stored under, in every range of the table. */
  partId: number;
  dimension: number;
  metric: 'l2_squared' | 'cosine' | 'inner_product';
}

interface SparseDefinition {
  kind: 'sparse';
  partId: number;
  /** Entries of a smaller absolute weight are not indexed. */
  minWeight: number;
}

export type IndexKind = IndexDefinition['kind'];

/** The definition as the engine reads it. */
export function definitionJson(definition: IndexDefinition): string {
  const { name, memOnly, incarnation } = definition;
  const common = { name, incarnation: String(incarnation), mem_only: memOnly };
  switch (definition.kind) {
    case 'full_text':
      return JSON.stringify({ ...common, type: 'full_text', schema: definition.schema ?? null });
    case 'dense': {
      const { partId, dimension, metric } = definition;
      return JSON.stringify({ ...common, type: 'dense', index_id: partId, dimension, metric });
    }
    case 'sparse': {
      const { partId, minWeight } = definition;
      return JSON.stringify({ ...common, type: 'sparse', index_id: partId, min_weight: minWeight });
    }
  }
}

/** What the vectors of an index are stored under; undefined for one that follows documents. */
export function partIdOf(definition: IndexDefinition): number | undefined {
  return definition.kind === 'full_text' ? undefined : definition.partId;
}
