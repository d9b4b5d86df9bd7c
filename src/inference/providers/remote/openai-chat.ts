import type { FinishReason } from '../../../protocol/inference/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { GenerationOptions, GenerationOutput } from '../../generation/generate.ts';
import { type GenerationRequest, type OutputFormat, usualSampling } from '../../generation/generation-request.ts';
import type { OutputDelta } from '../../generation/output-parser.ts';
import type { ChatMessage } from '../../generation/prompt/chat-message.ts';
import { toolForTemplate } from '../../generation/tools/function-tools.ts';
import type { MediaReference } from '../../media/media-reference.ts';
import type { ProviderClient } from '../client/provider-client.ts';
import type { Answered } from '../client/provider-gate.ts';
import { remoteOutput } from './remote-output.ts';

/** A request in the shape of `POST /chat/completions`. What is as usual is left out: not every server knows every member. */
export function chatBody(request: GenerationRequest): Record<string, unknown> {
  const { model, tokensMax, choices, stop, sampling, tools, toolChoice, prompt } = request;
  if (prompt !== undefined) throw new ServiceError('model_not_supported', 'this provider takes messages, not a prompt');
  const changed = <T>(value: T, usual: T, name: string) => (value === usual ? {} : { [name]: value });
  return {
    model,
    messages: request.messages.map(messageBody),
    ...changed(tokensMax, undefined, 'max_tokens'),
    ...changed(choices, 1, 'n'),
    ...(stop.length > 0 && { stop }),
    ...changed(sampling.temperature, usualSampling.temperature, 'temperature'),
    ...changed(sampling.topP, usualSampling.topP, 'top_p'),
    ...changed(sampling.frequencyPenalty, 0, 'frequency_penalty'),
    ...changed(sampling.presencePenalty, 0, 'presence_penalty'),
    ...changed(sampling.seed, undefined, 'seed'),
    ...(tools.length > 0 && { tools: tools.map(toolForTemplate), tool_choice: choiceBody(toolChoice) }),
    ...formatBody(request.format),
  };
}

function choiceBody({ mode, names, single }: GenerationRequest['toolChoice']): unknown {
  const [name] = names ?? [];
  return single && name !== undefined ? { type: 'function', function: { name } } : mode;
}

function formatBody(format: OutputFormat): Record<string, unknown> {
  if (format.kind === 'text') return {};
  if (format.kind === 'json_object') return { response_format: { type: 'json_object' } };
  if (format.kind === 'grammar') {
    throw new ServiceError('unsupported_response_format', 'this provider holds its output to no grammar');
  }
  const { schema, strict } = format;
  return { response_format: { type: 'json_schema', json_schema: { name: 'output', schema, strict } } };
}

function messageBody({ role, content, media, name, calls, callId }: ChatMessage): Record<string, unknown> {
  const parts = [...(content === '' ? [] : [{ type: 'text', text: content }]), ...media.map(mediaBody)];
  const tools = calls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }));
  return {
    role,
    content: media.length > 0 ? parts : content,
    ...(name !== undefined && { name }),
    ...(tools.length > 0 && { tool_calls: tools }),
    ...(callId !== undefined && { tool_call_id: callId }),
  };
}

function mediaBody({ mediaType, from }: MediaReference): Record<string, unknown> {
  if (mediaType?.startsWith('audio/') && 'base64' in from) {
    return { type: 'input_audio', input_audio: { data: from.base64, format: mediaType.slice('audio/'.length) } };
  }
  const url = 'url' in from ? from.url : `data:${mediaType ?? 'image/png'};base64,${from.base64}`;
  return { type: 'image_url', image_url: { url } };
}

interface ChatUsage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
}

interface ChatAnswer {
  readonly choices?: readonly ChatChoice[];
  readonly usage?: ChatUsage | null;
}

interface ChatChoice {
  readonly index?: number;
  readonly message?: ChatPiece;
  readonly delta?: ChatPiece;
  readonly finish_reason?: string | null;
}

interface ChatPiece {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
}

/** Undefined for an answer of another shape. */
export function readChat(answer: unknown): Answered<readonly GenerationOutput[]> | undefined {
  const { choices, usage } = (answer ?? {}) as ChatAnswer;
  if (!Array.isArray(choices) || choices.length === 0) return undefined;
  const counts = countsOf(usage);
  const value = (choices as readonly ChatChoice[]).map(({ message, finish_reason }) =>
    remoteOutput(deltasOf(message ?? {}, 0), finishOf(finish_reason), counts),
  );
  return { value, tokens: counts.promptTokens + counts.completionTokens };
}

/** Reads server-sent events of chunks, hands their deltas over, and makes outputs of what remains. */
export function streamedChat(
  client: ProviderClient,
  choices: number,
  onPiece: NonNullable<GenerationOptions['onPiece']>,
) {
  const finishes = new Array<FinishReason>(choices).fill('stop');
  const calls = new Array<number>(choices).fill(0);
  let usage: ChatUsage | null | undefined;
  let isDone = false;
  const onLine = (line: string) => {
    if (!line.startsWith('data:')) return;
    const data = line.slice('data:'.length).trim();
    if (data === '[DONE]') {
      isDone = true;
      return;
    }
    const chunk = chunkOf(data);
    if (chunk === undefined) throw client.nonsense();
    usage = chunk.usage ?? usage;
    for (const { index = 0, delta, finish_reason } of chunk.choices ?? []) {
      const deltas = deltasOf(delta ?? {}, calls[index] ?? 0);
      calls[index] = Math.max(calls[index] ?? 0, ...deltas.map((each) => ('index' in each ? each.index + 1 : 0)));
      if (deltas.length > 0) onPiece(index, deltas, undefined);
      if (finish_reason) finishes[index] = finishOf(finish_reason);
    }
  };
  const end = (): Answered<readonly GenerationOutput[]> => {
    // A connection that ended early looks like an end otherwise.
    if (!isDone) throw client.nonsense();
    const counts = countsOf(usage);
    const value = finishes.map((finish) => remoteOutput([], finish, counts));
    return { value, tokens: counts.promptTokens + counts.completionTokens };
  };
  return { onLine, end };
}

function chunkOf(data: string): ChatAnswer | undefined {
  try {
    const chunk: unknown = JSON.parse(data);
    return typeof chunk === 'object' && chunk !== null && !('error' in chunk) ? chunk : undefined;
  } catch {
    return undefined;
  }
}

function deltasOf({ reasoning_content, content, tool_calls }: ChatPiece, known: number): OutputDelta[] {
  const deltas: OutputDelta[] = [];
  if (reasoning_content) deltas.push({ kind: 'reasoning', text: reasoning_content });
  if (content) deltas.push({ kind: 'content', text: content });
  for (const [at, { index = at, function: called }] of (tool_calls ?? []).entries()) {
    // Later pieces of a call name it again at some servers.
    if (called?.name && index >= known) deltas.push({ kind: 'call', index, name: called.name });
    if (called?.arguments) deltas.push({ kind: 'arguments', index, text: called.arguments });
  }
  return deltas;
}

function finishOf(reason: string | null | undefined): FinishReason {
  return reason === 'length' || reason === 'tool_calls' ? reason : 'stop';
}

function countsOf(usage: ChatUsage | null | undefined) {
  return {
    promptTokens: usage?.prompt_tokens ?? 0,
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    completionTokens: usage?.completion_tokens ?? 0,
  };
}
