import { must } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import type { InferenceCall } from '../admission.ts';
import type { Embeddings } from '../embeddings/embed-items.ts';
import type { EmbedTask } from '../embeddings/task-prefix.ts';
import type { Provider } from './provider.ts';

/** The model of one provider, ready to embed. */
export interface Embedder {
  /**
   * What vectors depend on: the provider, the model and the length that was asked for, never a key or an address. Vectors
   * of different fingerprints are not compared.
   */
  readonly fingerprint: string;
  /**
   * One vector for each text, dense or sparse as the model makes them; undefined for a text that cannot be embedded, with
   * the reason in `faults`. Throws `ServiceError` for a fault of the provider (see `faultOf`): no text was embedded.
   */
  embed(texts: readonly string[], task: EmbedTask, call: InferenceCall): Promise<Embeddings>;
}

/** Asked once for the length of the vectors when an index is created. */
const probeText = 'The length of this vector is to be known.';

export function embedderOf(provider: Provider, { provider: name, model, dimensions }: ProviderConfig): Embedder {
  return {
    fingerprint: JSON.stringify([name, model, dimensions ?? null]),
    embed: (items, task, call) => provider.embed({ model, items, task, dimensions, keepGoing: true }, call),
  };
}

/** What an embedder makes, found out by embedding one text. Throws `ServiceError`. */
export async function probeEmbedder(
  embedder: Embedder,
  call: InferenceCall,
): Promise<{ readonly sparse: true } | { readonly sparse: false; readonly dimension: number }> {
  const { vectors, faults } = await embedder.embed([probeText], 'RETRIEVAL_DOCUMENT', call);
  const [vector] = vectors;
  if (vector === undefined) {
    const { error } = must(faults[0], 'a text without a vector has a fault');
    throw new ServiceError('upstream_refused', `the embedder does not work: ${error.message}`, { cause: error });
  }
  return vector instanceof Float32Array ? { sparse: false, dimension: vector.length } : { sparse: true };
}
