import type { InferenceCall } from '../inference/admission.ts';
import type { EmbedItem, SparseVector } from '../inference/embeddings/embed-items.ts';
import { faultOf } from '../inference/providers/client/fault.ts';
import type { Embedder, EmbedHow } from '../inference/providers/embedder.ts';
import { ServiceError } from '../protocol/service-error.ts';

export type Vector = Float32Array | SparseVector;

/** One text's vector, or why it has none. */
export type Embedded = { readonly vector: Vector } | { readonly error: ServiceError };

/** Length of the vectors that an index takes; undefined for sparse ones. */
export type WantedVectors = number | undefined;

/**
 * One vector for each text or image. Throws a fault of the provider, where nothing was embedded; a fault of a text stands in its
 * place. A request that the provider refuses because of one text is sent again text by text.
 */
export async function embedTexts(
  embedder: Embedder,
  texts: readonly EmbedItem[],
  dimension: WantedVectors,
  call: InferenceCall,
  how: EmbedHow = {},
): Promise<Embedded[]> {
  try {
    const { vectors, faults } = await embedder.embed(texts, 'RETRIEVAL_DOCUMENT', call, how);
    const errors = new Map(faults.map(({ index, error }) => [index, error]));
    return vectors.map((vector, at) => checked(vector, errors.get(at), dimension));
  } catch (error) {
    if (!(error instanceof ServiceError) || faultOf(error) === 'provider') throw error;
    if (texts.length === 1 || how.together) return texts.map(() => ({ error }));
    const each: Embedded[] = [];
    for (const text of texts) each.push(...(await embedTexts(embedder, [text], dimension, call)));
    return each;
  }
}

function checked(vector: Vector | undefined, error: ServiceError | undefined, dimension: WantedVectors): Embedded {
  if (!vector) return { error: error ?? new ServiceError('inference_failed', 'the embedder gave no vector') };
  const length = vector instanceof Float32Array ? vector.length : undefined;
  if (length === dimension) return { vector };
  const given = length === undefined ? 'a sparse vector' : `a vector of dimension ${length}`;
  const wanted = dimension === undefined ? 'sparse ones' : `dimension ${dimension}`;
  return { error: new ServiceError('inference_failed', `the embedder gave ${given}; the index takes ${wanted}`) };
}
