import { allOrStop } from '../../../lib/concurrency/all-or-stop.ts';
import type { FinishReason } from '../../../protocol/inference/finish-reasons.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedRequest } from '../../embeddings/embed-items.ts';
import type { GenerationOptions, GenerationOutput } from '../../generation/generate.ts';
import { type GenerationRequest, usualSampling } from '../../generation/generation-request.ts';
import type { MediaReference } from '../../media/media-reference.ts';
import type { Reranked } from '../../reranking/rerank-texts.ts';
import type { ProviderClient } from '../client/provider-client.ts';
import type { Answered } from '../client/provider-gate.ts';
import type { Provider, ReadRequest, WrittenText } from '../provider.ts';
import { cohereBatch, cohereInputType, cohereTruncation, readEmbeddings } from './cohere-provider.ts';
import { ModelEmbeddings } from './model-embeddings.ts';
import { readByChat } from './read-by-chat.ts';
import { refuseMembers, refuseOtherMembers } from './refuse-members.ts';
import { type BatchBounds, RemoteEmbedding } from './remote-embedding.ts';
import { countOf, remoteOutput } from './remote-output.ts';

/** Amazon's own models take one text in a request; those of Cohere take several. */
const titanBatch: BatchBounds = { items: 1, bytes: 1 };

/**
 * Models of AWS Bedrock: vectors by `InvokeModel` in the form of the model's maker (Amazon Titan, Cohere), texts by
 * `Converse`. https://docs.aws.amazon.com/bedrock/latest/APIReference
 */
export class BedrockProvider implements Provider {
  readonly #client: ProviderClient;
  readonly #embeddings = new ModelEmbeddings((request) =>
    /(?:^|[./])cohere\./.test(request.model) ? this.#cohere(request) : this.#titan(request),
  );

  constructor(client: ProviderClient) {
    this.#client = client;
  }

  embed(request: EmbedRequest, call: InferenceCall): Promise<Embeddings> {
    return this.#embeddings.embed(request, call);
  }

  #titan({ model, dimensions, truncate }: EmbedRequest): RemoteEmbedding {
    refuseMembers(this.#client.name, { truncate: truncate !== undefined });
    // The first version of the model knows neither of these.
    const options = dimensions === undefined ? {} : { dimensions, normalize: true };
    return new RemoteEmbedding(titanBatch, async ([inputText], call) =>
      this.#client.post(invoke(model), { inputText, ...options }, call, readTitan),
    );
  }

  #cohere({ model, dimensions, task, truncate }: EmbedRequest): RemoteEmbedding {
    const options = {
      input_type: cohereInputType(task),
      truncate: cohereTruncation(truncate),
      ...(dimensions !== undefined && { output_dimension: dimensions, embedding_types: ['float'] }),
    };
    return new RemoteEmbedding(cohereBatch, async (texts, call) =>
      this.#client.post(invoke(model), { texts, ...options }, call, (answer) => readEmbeddings(answer, texts.length)),
    );
  }

  rerank(): Promise<Reranked> {
    throw new ServiceError('model_not_supported', `the provider "${this.#client.name}" is not asked to rerank`);
  }

  read(request: ReadRequest, call: InferenceCall): Promise<readonly WrittenText[]> {
    return readByChat(this, request, call);
  }

  /** An output that is wanted in pieces comes in one. */
  async generate(
    request: GenerationRequest,
    { signal, priority, onPiece }: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]> {
    refuseOtherMembers(this.#client.name, request, []);
    const body = converseBody(request);
    const path = `/model/${encodeURIComponent(request.model)}/converse`;
    const one = async (choice: number, until: AbortSignal) => {
      const output = await this.#client.post(path, body, { signal: until, priority, tokens: 0 }, readConverse);
      if (onPiece === undefined) return output;
      if (output.deltas.length > 0) onPiece(choice, output.deltas, undefined);
      return { ...output, deltas: [] };
    };
    return await allOrStop(signal, (until) =>
      Array.from({ length: request.choices }, (_, choice) => one(choice, until)),
    );
  }
}

function invoke(model: string): string {
  return `/model/${encodeURIComponent(model)}/invoke`;
}

function readTitan(answer: unknown): Answered<Answered<readonly unknown[]>> | undefined {
  const { embedding, inputTextTokenCount } = (answer ?? {}) as { embedding?: unknown; inputTextTokenCount?: unknown };
  if (!Array.isArray(embedding)) return undefined;
  const tokens = countOf(inputTextTokenCount);
  return { value: { value: [embedding], tokens }, tokens };
}

function converseBody({ messages, tokensMax, sampling, stop, tools, format, prompt }: GenerationRequest): object {
  if (prompt !== undefined) throw new ServiceError('model_not_supported', 'this provider takes messages, not a prompt');
  if (tools.length > 0 || messages.some(({ calls, role }) => calls.length > 0 || role === 'tool')) {
    throw new ServiceError('model_not_supported', 'this provider is not given tools yet');
  }
  if (format.kind !== 'text') {
    throw new ServiceError('unsupported_response_format', 'this provider holds its output to no schema');
  }
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => ({ text: content }));
  const others = messages.filter(({ role }) => role !== 'system');
  return {
    messages: others.map(({ role, content, media }) => ({
      role,
      content: [...(content === '' ? [] : [{ text: content }]), ...media.map(imageBody)],
    })),
    ...(system.length > 0 && { system }),
    inferenceConfig: {
      // Some models refuse the two together: what is as usual is left to the service.
      ...(sampling.temperature !== usualSampling.temperature && { temperature: sampling.temperature }),
      ...(sampling.topP !== usualSampling.topP && { topP: sampling.topP }),
      ...(tokensMax !== undefined && { maxTokens: tokensMax }),
      ...(stop.length > 0 && { stopSequences: stop }),
    },
  };
}

function imageBody({ mediaType, from, where }: MediaReference): object {
  const format = /^image\/(png|jpeg|gif|webp)$/.exec(mediaType ?? '')?.[1];
  if (format === undefined || !('base64' in from)) {
    throw new ServiceError('invalid_media', `${where}: this provider takes images inline, as data URIs`);
  }
  return { image: { format, source: { bytes: from.base64 } } };
}

interface ConverseAnswer {
  readonly output?: { readonly message?: { readonly content?: readonly { readonly text?: string }[] } };
  readonly stopReason?: string;
  readonly usage?: { readonly inputTokens?: number; readonly outputTokens?: number };
}

function readConverse(answer: unknown): Answered<GenerationOutput> | undefined {
  const { output, stopReason, usage } = (answer ?? {}) as ConverseAnswer;
  const content = output?.message?.content;
  if (!Array.isArray(content)) return undefined;
  const text = (content as readonly { text?: string }[]).map((part) => part.text ?? '').join('');
  const [promptTokens, completionTokens] = [countOf(usage?.inputTokens), countOf(usage?.outputTokens)];
  const tokens = { promptTokens, cachedTokens: 0, completionTokens };
  const value = remoteOutput([{ kind: 'content', text }], finishes[stopReason ?? ''] ?? 'stop', tokens);
  return { value, tokens: promptTokens + completionTokens };
}

/** Reasons of an end that is not the usual one. */
const finishes: Readonly<Record<string, FinishReason>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  content_filtered: 'content_filter',
  guardrail_intervened: 'content_filter',
};
