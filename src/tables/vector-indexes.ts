import type { VectorIndexSpec } from '../engine/write-frame.ts';
import type { TableIndex } from './table.ts';

/** What the vectors of a write have to fit. */
export function vectorIndexOf({ name, partId: id, config }: TableIndex): VectorIndexSpec {
  if (config.type === 'full_text') return { name, id, kind: 'full_text' };
  if (config.sparse) return { name, id, kind: 'sparse' };
  return { name, id, kind: 'dense', dimension: config.dimension, metric: config.distance_metric };
}
