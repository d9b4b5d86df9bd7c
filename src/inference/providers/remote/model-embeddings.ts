import { LRUCache } from 'lru-cache';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedRequest } from '../../embeddings/embed-items.ts';
import type { RemoteEmbedding } from './remote-embedding.ts';

/** Names of models come from requests. */
const embeddingsMax = 1_024;

/** The embedders of a provider: one `RemoteEmbedding` for a model, a length and a task, which knows what it has learned. */
export class ModelEmbeddings {
  readonly #open: (request: EmbedRequest) => RemoteEmbedding;
  readonly #opened = new LRUCache<string, RemoteEmbedding>({ max: embeddingsMax });

  constructor(open: (request: EmbedRequest) => RemoteEmbedding) {
    this.#open = open;
  }

  /** Throws as `Provider.embed` does. */
  embed(request: EmbedRequest, call: InferenceCall): Promise<Embeddings> {
    const key = JSON.stringify([request.model, request.dimensions, request.task]);
    const known = this.#opened.get(key);
    if (known !== undefined) return known.run(request, call);
    const opened = this.#open(request);
    this.#opened.set(key, opened);
    return opened.run(request, call);
  }
}
