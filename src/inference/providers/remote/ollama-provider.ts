import { allOrStop } from '../../../lib/concurrency/all-or-stop.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedRequest } from '../../embeddings/embed-items.ts';
import type { GenerationOptions, GenerationOutput } from '../../generation/generate.ts';
import type { GenerationRequest } from '../../generation/generation-request.ts';
import type { OutputDelta } from '../../generation/output-parser.ts';
import type { ChatMessage, ToolCall } from '../../generation/prompt/chat-message.ts';
import { callableTools, toolForTemplate } from '../../generation/tools/function-tools.ts';
import type { Reranked } from '../../reranking/rerank-texts.ts';
import type { ProviderClient, Unread } from '../client/provider-client.ts';
import type { Answered } from '../client/provider-gate.ts';
import type { Provider, ReadRequest, WrittenText } from '../provider.ts';
import { ModelEmbeddings } from './model-embeddings.ts';
import { readEmbeddings as readOpenAiEmbeddings } from './openai-provider.ts';
import { readByChat } from './read-by-chat.ts';
import { refuseMembers, refuseOtherMembers } from './refuse-members.ts';
import { type BatchBounds, RemoteEmbedding } from './remote-embedding.ts';
import { countOf, remoteOutput } from './remote-output.ts';

/** A model of one machine reads them one after another: larger requests gain nothing and take long. */
export const ollamaBatch: BatchBounds = { items: 64, bytes: 128 * 1024 };

/** Members of a generation that Ollama knows, beside those of all protocols. */
const taken = [
  'seed',
  'top_k',
  'min_p',
  'repetition_penalty',
  'frequency_penalty',
  'presence_penalty',
  'reasoning_effort',
  'chat_template_kwargs.enable_thinking',
  'keep_alive',
] as const;

/**
 * Ollama: https://github.com/ollama/ollama/blob/main/docs/api.md. Texts that
 * are too long are refused unless they are to be cut.
 */
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

  #open({ model, dimensions, truncate }: EmbedRequest): RemoteEmbedding {
    refuseMembers(this.#client.name, { truncate: truncate === 'start' });
    const options = { model, truncate: truncate === 'end', ...(dimensions !== undefined && { dimensions }) };
    let isKnown = true;
    return new RemoteEmbedding(this.#batch, async (input, gateCall) => {
      const read = (answer: unknown) => readEmbeddings(answer, input.length);
      try {
        if (isKnown) return await this.#client.post('/api/embed', { ...options, input }, gateCall, read);
      } catch (error) {
        if (!isUnknownRoute(error)) throw error;
        isKnown = false;
      }
      refuseMembers(this.#client.name, { truncate: truncate !== undefined });
      const { truncate: _truncate, ...body } = options;
      const readOther = (answer: unknown) => readOpenAiEmbeddings(answer, input.length);
      return await this.#client.post('/v1/embeddings', { ...body, input }, gateCall, readOther);
    });
  }

  rerank(): Promise<Reranked> {
    throw new ServiceError('model_not_supported', `the provider "${this.#client.name}" does not rerank`);
  }

  read(request: ReadRequest, call: InferenceCall): Promise<readonly WrittenText[]> {
    return readByChat(this, request, call);
  }

  async generate(
    request: GenerationRequest,
    { signal, priority, onPiece }: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]> {
    refuseOtherMembers(this.#client.name, request, taken);
    const { seed } = request.sampling;
    const one = async (choice: number, until: AbortSignal) => {
      const call = { signal: until, priority, tokens: 0 };
      // The same seed would give the same answer again.
      const sampling = seed === undefined ? request.sampling : { ...request.sampling, seed: seed + choice };
      const body = chatBody({ ...request, sampling });
      if (onPiece === undefined) {
        return await this.#client.post('/api/chat', { ...body, stream: false }, call, (answer) => readChat(answer, 0));
      }
      return await this.#client.stream('/api/chat', { ...body, stream: true }, call, (unread) =>
        streamedChat((deltas) => onPiece(choice, deltas, undefined), unread),
      );
    };
    return await allOrStop(signal, (until) =>
      Array.from({ length: request.choices }, (_, choice) => one(choice, until)),
    );
  }
}

/** Servers that speak the protocol of OpenAI under the name of Ollama lack its own route; one that has it names the model. */
function isUnknownRoute(error: unknown): boolean {
  return error instanceof ServiceError && /HTTP 40[45](?!.*model)/s.test(error.message);
}

function readEmbeddings(answer: unknown, count: number): Answered<Answered<readonly unknown[]>> | undefined {
  const { embeddings, prompt_eval_count } = (answer ?? {}) as { embeddings?: unknown; prompt_eval_count?: unknown };
  if (!Array.isArray(embeddings) || embeddings.length !== count) return undefined;
  const tokens = countOf(prompt_eval_count);
  return { value: { value: embeddings, tokens }, tokens };
}

/** A request in Ollama's own words. */
function chatBody(request: GenerationRequest): Record<string, unknown> {
  const { model, messages, tools, toolChoice, format, prompt, keepAliveMs } = request;
  if (prompt !== undefined) throw new ServiceError('model_not_supported', 'this provider takes messages, not a prompt');
  if (format.kind === 'grammar') {
    throw new ServiceError('unsupported_response_format', 'this provider holds its output to no grammar');
  }
  const callable = callableTools(tools, toolChoice);
  const names = new Map(messages.flatMap(({ calls }) => calls.map(({ id, name }) => [id, name] as const)));
  return {
    model,
    options: optionsBody(request),
    messages: messages.map((message) => messageBody(message, names)),
    ...thinkBody(request),
    ...(callable.length > 0 && { tools: callable.map(toolForTemplate) }),
    ...(format.kind === 'json_object' && { format: 'json' }),
    ...(format.kind === 'json_schema' && { format: format.schema }),
    ...(keepAliveMs !== undefined && { keep_alive: Number.isFinite(keepAliveMs) ? keepAliveMs / 1_000 : -1 }),
  };
}

/** All that say how tokens are chosen: what is usual there is not what is usual here. */
function optionsBody({ sampling, stop, tokensMax }: GenerationRequest): Record<string, unknown> {
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    min_p: sampling.minP,
    repeat_penalty: sampling.repetitionPenalty,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    ...(sampling.seed !== undefined && { seed: sampling.seed }),
    ...(tokensMax !== undefined && { num_predict: tokensMax }),
    ...(stop.length > 0 && { stop }),
  };
}

/** Calls have no ids here: the answer of a tool names the function. */
function messageBody({ role, content, media, calls, callId, name }: ChatMessage, names: ReadonlyMap<string, string>) {
  const called = calls.map((call) => ({ function: { name: call.name, arguments: argumentsOf(call) } }));
  const tool = callId === undefined ? undefined : (names.get(callId) ?? name);
  return {
    role,
    content,
    ...(media.length > 0 && { images: media.map(({ from, where }) => inline(from, where)) }),
    ...(called.length > 0 && { tool_calls: called }),
    ...(tool !== undefined && { tool_name: tool }),
  };
}

function argumentsOf({ name, arguments: text }: ToolCall): unknown {
  try {
    return text === '' ? {} : JSON.parse(text);
  } catch (cause) {
    throw new ServiceError('invalid_request', `messages: the arguments of a call of "${name}" are not JSON`, { cause });
  }
}

function thinkBody({ enableThinking, templateVariables }: GenerationRequest): { readonly think?: unknown } {
  const { reasoning_effort } = templateVariables;
  if (enableThinking === false || reasoning_effort === 'none') return { think: false };
  if (reasoning_effort !== undefined) return { think: reasoning_effort };
  return enableThinking === undefined ? {} : { think: true };
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
  readonly done?: boolean;
  readonly done_reason?: string;
  readonly prompt_eval_count?: number;
  readonly eval_count?: number;
}

/** Undefined for an answer of another shape. `called`: calls in the lines before this one. */
function readChat(answer: unknown, called: number): Answered<GenerationOutput> | undefined {
  const { message, done_reason, prompt_eval_count, eval_count } = (answer ?? {}) as ChatAnswer;
  if (message === undefined) return undefined;
  const deltas: OutputDelta[] = [];
  if (message.thinking) deltas.push({ kind: 'reasoning', text: message.thinking });
  if (message.content) deltas.push({ kind: 'content', text: message.content });
  const calls = message.tool_calls ?? [];
  for (const [at, { function: each }] of calls.entries()) {
    const index = called + at;
    deltas.push({ kind: 'call', index, name: each?.name ?? '' });
    deltas.push({ kind: 'arguments', index, text: JSON.stringify(each?.arguments ?? {}) });
  }
  const finish = called + calls.length > 0 ? 'tool_calls' : done_reason === 'length' ? 'length' : 'stop';
  const [promptTokens, completionTokens] = [countOf(prompt_eval_count), countOf(eval_count)];
  const output = remoteOutput(deltas, finish, { promptTokens, cachedTokens: 0, completionTokens });
  return { value: output, tokens: promptTokens + completionTokens };
}

/** Reads lines of JSON, hands their deltas over, and makes an output of the last one. */
function streamedChat(onDeltas: (deltas: readonly OutputDelta[]) => void, unread: Unread) {
  let called = 0;
  let last: Answered<GenerationOutput> | undefined;
  const onLine = (line: string) => {
    if (line.trim() === '') return;
    const answer = parsed(line);
    const answered = readChat(answer, called);
    if (answered === undefined) throw unread(answer);
    const { deltas } = answered.value;
    called += deltas.filter(({ kind }) => kind === 'call').length;
    if (deltas.length > 0) onDeltas(deltas);
    if ((answer as ChatAnswer).done === true) last = answered;
  };
  const end = (): Answered<GenerationOutput> => {
    // A connection that ended early looks like an end otherwise.
    if (last === undefined) throw unread();
    return { value: { ...last.value, deltas: [] }, tokens: last.tokens };
  };
  return { onLine, end };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
