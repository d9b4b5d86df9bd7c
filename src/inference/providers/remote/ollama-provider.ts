import { ServiceError } from '../../../protocol/service-error.ts';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedRequest } from '../../embeddings/embed-items.ts';
import type { GenerationOptions, GenerationOutput } from '../../generation/generate.ts';
import type { GenerationRequest } from '../../generation/generation-request.ts';
import type { OutputDelta } from '../../generation/output-parser.ts';
import { toolForTemplate } from '../../generation/tools/function-tools.ts';
import type { Reranked } from '../../reranking/rerank-texts.ts';
import type { ProviderClient } from '../client/provider-client.ts';
import type { Answered } from '../client/provider-gate.ts';
import type { Provider, ReadRequest } from '../provider.ts';
import { ModelEmbeddings } from './model-embeddings.ts';
import { readEmbeddings as readOpenAiEmbeddings } from './openai-provider.ts';
import { readByChat } from './read-by-chat.ts';
import { type BatchBounds, RemoteEmbedding } from './remote-embedding.ts';
import { remoteOutput } from './remote-output.ts';

/** A model of one machine reads them one after another: larger requests gain nothing and take long. */
export const ollamaBatch: BatchBounds = { items: 64, bytes: 128 * 1024 };

/** Ollama: https://github.com/ollama/ollama/blob/main/docs/api.md. Texts that are too long are refused, never cut. */
export class OllamaProvider implements Provider {
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

  #open({ model, dimensions }: EmbedRequest): RemoteEmbedding {
    const options = { model, truncate: false, ...(dimensions !== undefined && { dimensions }) };
    let isKnown = true;
    return new RemoteEmbedding(this.#batch, async (input, gateCall) => {
      const read = (answer: unknown) => readEmbeddings(answer, input.length);
      try {
        if (isKnown) return await this.#client.post('/api/embed', { ...options, input }, gateCall, read);
      } catch (error) {
        if (!isUnknownRoute(error)) throw error;
        isKnown = false;
      }
      const { truncate: _truncate, ...body } = options;
      const readOther = (answer: unknown) => readOpenAiEmbeddings(answer, input.length);
      return await this.#client.post('/v1/embeddings', { ...body, input }, gateCall, readOther);
    });
  }

  rerank(): Promise<Reranked> {
    throw new ServiceError('model_not_supported', `the provider "${this.#client.name}" does not rerank`);
  }

  read(request: ReadRequest, call: InferenceCall): Promise<readonly string[]> {
    return readByChat(this, request, call);
  }

  async generate(
    request: GenerationRequest,
    { signal, priority, onPiece }: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]> {
    const call = { signal, priority, tokens: 0 };
    const one = async (choice: number) => {
      const body = chatBody(request);
      if (onPiece === undefined)
        return await this.#client.post('/api/chat', { ...body, stream: false }, call, readChat);
      return await this.#client.stream('/api/chat', { ...body, stream: true }, call, () => {
        let last: Answered<GenerationOutput> | undefined;
        const onLine = (line: string) => {
          const answered = line.trim() === '' ? undefined : readChat(parsed(line));
          if (answered === undefined) throw this.#client.nonsense();
          if (answered.value.deltas.length > 0) onPiece(choice, answered.value.deltas, undefined);
          last = answered;
        };
        const end = () => {
          if (last === undefined) throw this.#client.nonsense();
          return { value: { ...last.value, deltas: [] }, tokens: last.tokens };
        };
        return { onLine, end };
      });
    };
    return await Promise.all(Array.from({ length: request.choices }, (_, choice) => one(choice)));
  }
}

/** Servers that speak the protocol of OpenAI under the name of Ollama lack its own route; one that has it names the model. */
function isUnknownRoute(error: unknown): boolean {
  return error instanceof ServiceError && /HTTP 40[45](?!.*model)/s.test(error.message);
}

function readEmbeddings(answer: unknown, count: number): Answered<Answered<readonly unknown[]>> | undefined {
  const { embeddings, prompt_eval_count } = (answer ?? {}) as { embeddings?: unknown; prompt_eval_count?: unknown };
  if (!Array.isArray(embeddings) || embeddings.length !== count) return undefined;
  const tokens = typeof prompt_eval_count === 'number' ? prompt_eval_count : 0;
  return { value: { value: embeddings, tokens }, tokens };
}

function chatBody(request: GenerationRequest): Record<string, unknown> {
  const { model, messages, sampling, stop, tokensMax, tools, format, prompt } = request;
  if (prompt !== undefined) throw new ServiceError('model_not_supported', 'this provider takes messages, not a prompt');
  if (format.kind === 'grammar') {
    throw new ServiceError('unsupported_response_format', 'this provider holds its output to no grammar');
  }
  const options = {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    ...(sampling.seed !== undefined && { seed: sampling.seed }),
    ...(tokensMax !== undefined && { num_predict: tokensMax }),
    ...(stop.length > 0 && { stop }),
  };
  return {
    model,
    options,
    messages: messages.map(({ role, content, media }) => ({
      role,
      content,
      ...(media.length > 0 && { images: media.map(({ from, where }) => inline(from, where)) }),
    })),
    ...(tools.length > 0 && { tools: tools.map(toolForTemplate) }),
    ...(format.kind === 'json_object' && { format: 'json' }),
    ...(format.kind === 'json_schema' && { format: format.schema }),
  };
}

function inline(from: { base64: string } | { url: string }, where: string): string {
  if ('base64' in from) return from.base64;
  throw new ServiceError('invalid_media', `${where}: this provider takes images inline, as data URIs`);
}

interface ChatAnswer {
  readonly message?: {
    readonly content?: string;
    readonly thinking?: string;
    readonly tool_calls?: readonly { readonly function?: { readonly name?: string; readonly arguments?: unknown } }[];
  };
  readonly done_reason?: string;
  readonly prompt_eval_count?: number;
  readonly eval_count?: number;
}

function readChat(answer: unknown): Answered<GenerationOutput> | undefined {
  const { message, done_reason, prompt_eval_count = 0, eval_count = 0 } = (answer ?? {}) as ChatAnswer;
  if (message === undefined) return undefined;
  const deltas: OutputDelta[] = [];
  if (message.thinking) deltas.push({ kind: 'reasoning', text: message.thinking });
  if (message.content) deltas.push({ kind: 'content', text: message.content });
  for (const [index, { function: called }] of (message.tool_calls ?? []).entries()) {
    deltas.push({ kind: 'call', index, name: called?.name ?? '' });
    deltas.push({ kind: 'arguments', index, text: JSON.stringify(called?.arguments ?? {}) });
  }
  const calls = (message.tool_calls ?? []).length > 0;
  const finish = calls ? 'tool_calls' : done_reason === 'length' ? 'length' : 'stop';
  const tokens = { promptTokens: prompt_eval_count, cachedTokens: 0, completionTokens: eval_count };
  return { value: remoteOutput(deltas, finish, tokens), tokens: prompt_eval_count + eval_count };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
