import { KiB } from '../../../lib/units.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedRequest } from '../../embeddings/embed-items.ts';
import type { GenerationOptions, GenerationOutput } from '../../generation/generate.ts';
import type { GenerationRequest } from '../../generation/generation-request.ts';
import { decodeBase64 } from '../../media/data-uri.ts';
import type { Reranked, RerankRequest } from '../../reranking/rerank-texts.ts';
import type { ProviderClient } from '../client/provider-client.ts';
import type { Answered } from '../client/provider-gate.ts';
import type { Provider, ReadRequest, TranscribeRequest, WrittenText } from '../provider.ts';
import { ModelEmbeddings } from './model-embeddings.ts';
import { readChat, streamedChat } from './openai-chat.ts';
import { chatBody } from './openai-chat-request.ts';
import { readByChat } from './read-by-chat.ts';
import { refuseMembers } from './refuse-members.ts';
import { type BatchBounds, RemoteEmbedding } from './remote-embedding.ts';
import { countOf } from './remote-output.ts';

interface OpenAiProviderDeps {
  readonly client: ProviderClient;
  readonly batch: BatchBounds;
  /** It is another server like this one, which knows tasks and reranks. */
  readonly isService: boolean;
  /** It is that of OpenAI, not one that speaks its protocol. */
  readonly isOpenAi?: boolean;
}

/** Of OpenAI's own service: 300,000 tokens in one request, which texts of the least favourable kind stay below. */
export const openAiBatch: BatchBounds = { items: 256, bytes: 256 * KiB };

/** A service that speaks the protocol of OpenAI: https://platform.openai.com/docs/api-reference. */
export class OpenAiProvider implements Provider {
  readonly #deps: OpenAiProviderDeps;
  readonly #embeddings: ModelEmbeddings;

  constructor(deps: OpenAiProviderDeps) {
    this.#deps = deps;
    this.#embeddings = new ModelEmbeddings((request) => this.#open(request), { takesInstruction: deps.isService });
  }

  embed(request: EmbedRequest, call: InferenceCall): Promise<Embeddings> {
    return this.#embeddings.embed(request, call);
  }

  #open({ model, dimensions, task, instruction, truncate }: EmbedRequest): RemoteEmbedding {
    const { client, batch, isService } = this.#deps;
    if (!isService) refuseMembers(client.name, { truncate: truncate !== undefined });
    const options = {
      model,
      encoding_format: 'float',
      ...(dimensions !== undefined && { dimensions }),
      ...(isService && { task_type: task, instruction, truncate }),
    };
    return new RemoteEmbedding(batch, async (input, gateCall) => {
      const read = (answer: unknown) => readEmbeddings(answer, input.length);
      return await client.post('/embeddings', { ...options, input }, gateCall, read);
    });
  }

  async rerank(request: RerankRequest, { signal, priority }: InferenceCall): Promise<Reranked> {
    const { model, query, texts, images, truncate, textTokensMax } = request;
    const { client, isService } = this.#deps;
    if (!isService) throw new ServiceError('model_not_supported', `the provider "${client.name}" does not rerank`);
    const body = images ? { documents: multimodalDocuments(texts, images) } : { prompts: texts };
    const path = images ? '/rerank_multimodal' : '/rerank';
    const call = { signal, priority, tokens: 0 };
    if (textTokensMax !== undefined) {
      const documents = { model, query, documents: texts, max_tokens_per_doc: textTokensMax };
      return await client.post('/rerank', documents, call, (answer) => {
        const scores = scoresOf(answer, 'results', 'relevance_score', texts.length);
        const tokens = usageOf(answer).total;
        return scores && { value: { model, scores, tokens }, tokens };
      });
    }
    return await client.post(path, { model, query, ...body, truncate }, call, (answer) => {
      const scores = scoresOf(answer, 'data', 'score', texts.length);
      const tokens = usageOf(answer).total;
      return scores && { value: { model, scores, tokens }, tokens };
    });
  }

  async transcribe({ model, audio, language }: TranscribeRequest, call: InferenceCall): Promise<WrittenText> {
    const { from, where, mediaType = 'audio/wav' } = audio;
    if (!('base64' in from)) throw new ServiceError('invalid_media', `${where}: this provider takes sounds inline`);
    const form = new FormData();
    form.set('model', model);
    if (language !== undefined) form.set('language', language);
    const bytes = decodeBase64(from.base64, where);
    form.set(
      'file',
      new Blob([new Uint8Array(bytes)], { type: mediaType }),
      `sound.${mediaType.replace(/^audio\//, '')}`,
    );
    const { signal, priority } = call;
    return await this.#deps.client.post('/audio/transcriptions', form, { signal, priority, tokens: 0 }, (answer) => {
      const { text, truncated } = (answer ?? {}) as { text?: unknown; truncated?: unknown };
      if (typeof text !== 'string') return undefined;
      return { value: { text, truncated: truncated === true }, tokens: usageOf(answer).total };
    });
  }

  read(request: ReadRequest, call: InferenceCall): Promise<readonly WrittenText[]> {
    return readByChat(this, request, call);
  }

  async generate(
    request: GenerationRequest,
    { signal, priority, onPiece }: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]> {
    const { client, isService, isOpenAi = false } = this.#deps;
    const call = { signal, priority, tokens: 0 };
    const body = chatBody(request, { name: client.name, isService, isOpenAi });
    if (onPiece === undefined) {
      return await client.post('/chat/completions', body, call, (answer) => readChat(client, answer, request.choices));
    }
    const options = { include_usage: true, ...(isService && { error_format: 'json' }) };
    const streamed = { ...body, stream: true, stream_options: options };
    return await client.stream('/chat/completions', streamed, call, (unread) =>
      streamedChat(client, request.choices, onPiece, unread),
    );
  }
}

interface EmbeddingsAnswer {
  readonly data?: readonly { readonly embedding?: unknown; readonly index?: unknown }[];
}

/** The value carries the tokens as well: whoever batches counts them. */
export function readEmbeddings(answer: unknown, count: number): Answered<Answered<readonly unknown[]>> | undefined {
  const { data } = (answer ?? {}) as EmbeddingsAnswer;
  if (!Array.isArray(data) || data.length !== count) return undefined;
  const vectors = new Array<unknown>(count).fill(undefined);
  for (const [at, item] of (data as NonNullable<EmbeddingsAnswer['data']>).entries()) {
    vectors[typeof item?.index === 'number' ? item.index : at] = item?.embedding;
  }
  if (vectors.length !== count) return undefined;
  const tokens = usageOf(answer).total;
  return { value: { value: vectors, tokens }, tokens };
}

/** Scores by the `index` of each entry; undefined unless every text has a finite one. */
export function scoresOf(answer: unknown, list: string, member: string, count: number): Float32Array | undefined {
  const entries = (answer as Record<string, unknown> | null)?.[list];
  if (!Array.isArray(entries)) return undefined;
  const scores = new Float32Array(count).fill(Number.NaN);
  for (const entry of entries as Record<string, unknown>[]) {
    const { index, [member]: score } = entry ?? {};
    if (typeof index === 'number' && index in scores && typeof score === 'number') scores[index] = score;
  }
  return scores.every(Number.isFinite) ? scores : undefined;
}

/** The documents of `/rerank_multimodal` of another server like this one. */
function multimodalDocuments(texts: readonly string[], images: NonNullable<RerankRequest['images']>): object[] {
  return texts.map((text, at) => {
    const media = (images[at] ?? []).map(({ mediaType, from }) => {
      return { type: 'media', ...('url' in from ? { url: from.url } : { data: from.base64 }), mime_type: mediaType };
    });
    return { content: [...(text === '' ? [] : [{ type: 'text', text }]), ...media] };
  });
}

function usageOf(answer: unknown): { readonly total: number } {
  const { usage } = (answer ?? {}) as { usage?: { total_tokens?: unknown; prompt_tokens?: unknown } };
  const count = usage?.total_tokens ?? usage?.prompt_tokens;
  return { total: countOf(count) };
}
