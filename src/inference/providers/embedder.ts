import { must } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import type { InferenceCall } from '../admission.ts';
import type { Embeddings, EmbedItem } from '../embeddings/embed-items.ts';
import type { EmbedTask } from '../embeddings/task-prefix.ts';
import type { Provider } from './provider.ts';

/** The model of one provider, ready to embed. */
export interface Embedder {
  /**
   * The fingerprint of vectors: the provider, the model and the length that was asked for, never a key or an address. Vectors
   * of different fingerprints are not compared.
   */
  readonly fingerprint: string;
  /**
   * One vector for each text, or image for models that look at images, dense or sparse as the model makes them;
   * undefined for a text that cannot be embedded, with the reason in `faults`. Throws `ServiceError` for a fault of the
   * provider (see `faultOf`): no text was embedded.
   */
  embed(texts: readonly EmbedItem[], task: EmbedTask, call: InferenceCall, how?: EmbedHow): Promise<Embeddings>;
}

/** `together`: the texts are chunks of one text, and each vector is made in view of the others. */
export interface EmbedHow {
  readonly together?: boolean;
}

/** Asked once for the length of the vectors when an index is created. */
const probeText = 'a vector';

export function embedderOf(provider: Provider, { provider: name, model, dimensions }: ProviderConfig): Embedder {
  return {
    fingerprint: JSON.stringify([name, model, dimensions ?? null]),
    embed: (texts, task, call, { together } = {}) =>
      survivingTexts(texts, together ?? false, (items) =>
        provider.embed({ model, items, task, dimensions, keepGoing: true, together }, call),
      ),
  };
}

/**
 * Embeds texts of which one may end the process of the model: what was interrupted is asked for in halves, and a text that
 * ends the process twice by itself is at fault. Otherwise it would keep all others waiting for ever.
 */
async function survivingTexts(
  texts: readonly EmbedItem[],
  together: boolean,
  embed: (texts: readonly EmbedItem[]) => Promise<Embeddings>,
  attempt = 1,
): Promise<Embeddings> {
  try {
    return await embed(texts);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'inference_interrupted') throw error;
    if (texts.length > 1 && !together) {
      const middle = Math.ceil(texts.length / 2);
      const left = await survivingTexts(texts.slice(0, middle), false, embed);
      return joined(left, await survivingTexts(texts.slice(middle), false, embed), middle);
    }
    if (attempt === 1) return await survivingTexts(texts, together, embed, 2);
    const fault = new ServiceError('inference_failed', 'the process of the model ended on this text, twice', {
      cause: error,
    });
    const faults = texts.map((_, index) => ({ index, error: fault }));
    return { model: '', dimension: 0, vectors: texts.map(() => undefined), tokens: 0, faults };
  }
}

/** The answers to two pieces of a request as one; `offset` is the number of texts in the first. */
function joined(left: Embeddings, right: Embeddings, offset: number): Embeddings {
  return {
    model: left.model || right.model,
    dimension: left.dimension || right.dimension,
    vectors: [...left.vectors, ...right.vectors],
    tokens: left.tokens + right.tokens,
    faults: [...left.faults, ...right.faults.map(({ index, error }) => ({ index: index + offset, error }))],
  };
}

/** The length of an embedder's vectors, found by embedding one text. Throws `ServiceError`. */
export async function probeEmbedder(
  embedder: Embedder,
  call: InferenceCall,
  how: EmbedHow = {},
): Promise<{ readonly sparse: true } | { readonly sparse: false; readonly dimension: number }> {
  const { vectors, faults } = await embedder.embed([probeText], 'RETRIEVAL_DOCUMENT', call, how);
  const [vector] = vectors;
  if (vector === undefined) {
    const { error } = must(faults[0], 'a text without a vector has a fault');
    throw new ServiceError('upstream_refused', `the embedder does not work: ${error.message}`, { cause: error });
  }
  return vector instanceof Float32Array ? { sparse: false, dimension: vector.length } : { sparse: true };
}
