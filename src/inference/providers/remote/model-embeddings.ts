import { LRUCache } from 'lru-cache';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedRequest } from '../../embeddings/embed-items.ts';
import { prefixOf } from '../../embeddings/task-prefix.ts';
import type { RemoteEmbedding } from './remote-embedding.ts';

/** Names of models come from requests. */
const embeddingsMax = 1_024;

/** The embedders of a provider: one `RemoteEmbedding` for a model and what is asked of it, which knows what it has learned. */
export class ModelEmbeddings {
  readonly #open: (request: EmbedRequest) => RemoteEmbedding;
  readonly #takesInstruction: boolean;
  readonly #opened = new LRUCache<string, RemoteEmbedding>({ max: embeddingsMax });

  /** Without `takesInstruction` an instruction is put before every text. */
  constructor(open: (request: EmbedRequest) => RemoteEmbedding, { takesInstruction = false } = {}) {
    this.#open = open;
    this.#takesInstruction = takesInstruction;
  }

  /** Throws as `Provider.embed` does. */
  embed(given: EmbedRequest, call: InferenceCall): Promise<Embeddings> {
    const request = this.#takesInstruction ? given : instructed(given);
    const { model, dimensions, task, instruction, truncate } = request;
    const key = JSON.stringify([model, dimensions, task, instruction, truncate]);
    const known = this.#opened.get(key);
    if (known !== undefined) return known.run(request, call);
    const opened = this.#open(request);
    this.#opened.set(key, opened);
    return opened.run(request, call);
  }
}

function instructed({ instruction, items, ...request }: EmbedRequest): EmbedRequest {
  const prefix = prefixOf({}, undefined, instruction);
  return { ...request, items: items.map((item) => (typeof item === 'string' && item !== '' ? prefix + item : item)) };
}
