import { ServiceError } from '../../../protocol/service-error.ts';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedRequest } from '../../embeddings/embed-items.ts';
import type { EmbedTask } from '../../embeddings/task-prefix.ts';
import type { GenerationOutput } from '../../generation/generate.ts';
import type { Reranked, RerankRequest } from '../../reranking/rerank-texts.ts';
import type { ProviderClient } from '../client/provider-client.ts';
import type { Answered } from '../client/provider-gate.ts';
import type { Provider } from '../provider.ts';
import { ModelEmbeddings } from './model-embeddings.ts';
import { scoresOf } from './openai-provider.ts';
import { refuseMembers } from './refuse-members.ts';
import { type BatchBounds, RemoteEmbedding } from './remote-embedding.ts';
import { countOf } from './remote-output.ts';

/** The bounds of one request: https://docs.cohere.com/reference/embed. */
export const cohereBatch: BatchBounds = { items: 96, bytes: 256 * 1024 };

/** The type of a text for its models; they make other vectors of questions than of documents. */
export function cohereInputType(task: EmbedTask | undefined): string {
  if (task === 'CLASSIFICATION') return 'classification';
  if (task === 'CLUSTERING') return 'clustering';
  const asks = task !== undefined && /QUERY|QUESTION|FACT/.test(task);
  return asks ? 'search_query' : 'search_document';
}

export function cohereTruncation(side: EmbedRequest['truncate']): string {
  return side?.toUpperCase() ?? 'NONE';
}

/** Cohere, version 2 of its interface. */
export class CohereProvider implements Provider {
  readonly #client: ProviderClient;
  readonly #batch: BatchBounds;
  readonly #embeddings = new ModelEmbeddings((request) => this.#open(request));

  constructor(client: ProviderClient, batch: BatchBounds) {
    this.#client = client;
    this.#batch = batch;
  }

  embed(request: EmbedRequest, call: InferenceCall): Promise<Embeddings> {
    return this.#embeddings.embed(request, call);
  }

  #open({ model, dimensions, task, truncate }: EmbedRequest): RemoteEmbedding {
    const options = {
      model,
      input_type: cohereInputType(task),
      embedding_types: ['float'],
      truncate: cohereTruncation(truncate),
      ...(dimensions !== undefined && { output_dimension: dimensions }),
    };
    return new RemoteEmbedding(this.#batch, async (texts, gateCall) => {
      const read = (answer: unknown) => readEmbeddings(answer, texts.length);
      return await this.#client.post('/v2/embed', { ...options, texts }, gateCall, read);
    });
  }

  /** Texts that are too long are cut at their ends, whether that is asked for or not. */
  async rerank(request: RerankRequest, { signal, priority }: InferenceCall): Promise<Reranked> {
    const { model, query, texts, images, truncate, textTokensMax } = request;
    if (images) {
      const message = `the provider "${this.#client.name}" reranks texts: leave images out of the template`;
      throw new ServiceError('model_not_supported', message);
    }
    refuseMembers(this.#client.name, { truncate: truncate === 'start' });
    const most = textTokensMax === undefined ? {} : { max_tokens_per_doc: textTokensMax };
    const body = { model, query, documents: texts, top_n: texts.length, ...most };
    return await this.#client.post('/v2/rerank', body, { signal, priority, tokens: 0 }, (answer) => {
      const scores = scoresOf(answer, 'results', 'relevance_score', texts.length);
      return scores && { value: { model, scores, tokens: 0 }, tokens: 0 };
    });
  }

  generate(): Promise<readonly GenerationOutput[]> {
    throw new ServiceError('model_not_supported', `the provider "${this.#client.name}" is not asked for texts`);
  }
}

export function readEmbeddings(answer: unknown, count: number): Answered<Answered<readonly unknown[]>> | undefined {
  const { embeddings, meta } = (answer ?? {}) as {
    embeddings?: { float?: unknown } | readonly unknown[];
    meta?: { billed_units?: { input_tokens?: unknown } };
  };
  const vectors = Array.isArray(embeddings) ? (embeddings as unknown[]) : (embeddings as { float?: unknown })?.float;
  if (!Array.isArray(vectors) || vectors.length !== count) return undefined;
  const tokens = countOf(meta?.billed_units?.input_tokens);
  return { value: { value: vectors as unknown[], tokens }, tokens };
}
