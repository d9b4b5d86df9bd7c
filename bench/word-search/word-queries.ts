import { base64, indexName, initialOf } from './word-table.ts';

/** Best hits of the text and of the vectors that a hybrid query fuses. */
export const hybridWindow = 50;
/** The documented constant of reciprocal rank fusion. */
export const rankConstant = 60;

export function nearest(vector: Float32Array, limit: number): object {
  return { embeddings: { [indexName]: base64(vector) }, limit };
}

/** The nearest among the words that begin as `like` does. */
export function nearestBeginningAs(like: string, vector: Float32Array, limit: number): object {
  return { ...nearest(vector, limit), filter_query: { term: initialOf(like), field: 'initial' } };
}

/** Words whose definition says `text`. */
export function defined(text: string, limit: number): object {
  return { full_text_search: { match: text, field: 'gloss' }, limit };
}

/** Words whose definition says `text` and words near the vector, fused. */
export function hybrid(text: string, vector: Float32Array, limit: number): object {
  return { ...defined(text, limit), ...nearest(vector, limit), merge_config: { window_size: hybridWindow } };
}
