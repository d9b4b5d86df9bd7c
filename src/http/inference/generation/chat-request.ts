import {
  type GenerationRequest,
  type OutputFormat,
  usualSampling,
} from '../../../inference/generation/generation-request.ts';
import { grammarBounds } from '../../../inference/generation/grammar/grammar-writer.ts';
import { mediaOf } from '../../../inference/generation/prompt/chat-message.ts';
import { parseDuration } from '../../../lib/duration.ts';
import type { CacheType, Sampling } from '../../../model-host/operations/generate.ts';
import type { GenerateBody, sharedMembers } from '../../../protocol/inference/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { readMessages } from './chat-messages.ts';
import { readToolChoice, readTools } from './chat-tools.ts';

const defaultTokensMax = 256;
const defaultDraftTokens = 4;
const stopCharsMax = 1_024;
const biasesMax = 1_024;

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}

function impossible(message: string): ServiceError {
  return new ServiceError('model_not_supported', message);
}

/** Throws `ServiceError` that names the member which cannot be honoured. */
export function readChatRequest(body: GenerateBody): GenerationRequest {
  refuseUnknownWays(body);
  const messages = readMessages(body.messages);
  const tools = readTools(body.tools ?? []);
  const toolChoice = readToolChoice(body.tool_choice, tools);
  const format = readFormat(body);
  if (format.kind === 'grammar' && tools.length > 0 && toolChoice.mode !== 'none') {
    throw invalid('grammar: the output cannot follow a grammar and call tools; leave out one of the two');
  }
  const { enable_thinking = body.enable_thinking, ...templateVariables } = body.chat_template_kwargs ?? {};
  const effort = body.reasoning_effort;
  const isShaped = format.kind !== 'text' || (tools.length > 0 && toolChoice.mode !== 'none');
  return {
    ...readSharedMembers(body, isShaped),
    format,
    prompt: undefined,
    messages,
    media: mediaOf(messages),
    continuesFinal: readContinuation(body),
    topLogprobs: readTopLogprobs(body),
    tools: toolChoice.mode === 'none' ? [] : tools,
    toolChoice,
    parallelCalls: body.parallel_tool_calls ?? undefined,
    enableThinking: enable_thinking ?? undefined,
    templateVariables: { ...templateVariables, ...(typeof effort === 'string' ? { reasoning_effort: effort } : {}) },
  };
}

/** The members that requests for chat and for the continuation of a text have in common. */
type SharedBody = Pick<GenerateBody, keyof typeof sharedMembers>;

/** Throws `ServiceError` that names the member which cannot be honoured. `isShaped`: the answer is JSON or a call. */
export function readSharedMembers(body: SharedBody & Pick<GenerateBody, 'max_completion_tokens'>, isShaped: boolean) {
  return {
    model: body.model,
    tokensMax: tokensMaxOf(body, isShaped),
    choices: body.n ?? 1,
    keepAliveMs: readKeepAlive(body.keep_alive),
    stop: readStop(body.stop),
    ignoreEos: body.ignore_eos ?? false,
    sampling: readSampling(body),
    promptCache: readPromptCache(body),
    cacheType: readCacheType(body),
    speculation: readSpeculation(body),
    backend: body.backend ?? 'auto',
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    jsonErrors: readErrorFormat(body),
  };
}

function readErrorFormat({ stream_options }: SharedBody): boolean | undefined {
  const format = stream_options?.error_format;
  return isGiven(format) ? format === 'json' : undefined;
}

function refuseUnknownWays(body: GenerateBody): void {
  if (isGiven(body.functions)) throw invalid('functions: use tools');
  if (isGiven(body.function_call)) throw invalid('function_call: use tool_choice');
  if (isGiven(body.audio)) throw invalid('audio: answers are text');
  if (isGiven(body.web_search_options)) throw invalid('web_search_options: the web is not searched; use tools');
  if (body.modalities?.some((each) => each !== 'text')) throw invalid('modalities: answers are text');
  if (body.mode === 'compiled') throw impossible('mode: models are not compiled here; use eager');
  if (isGiven(body.cache_compaction_ratio) && body.cache_compaction_ratio !== 1) {
    throw impossible(
      'cache_compaction_ratio: the state of a generation is not compacted here; leave it out, or give 1',
    );
  }
}

/** Members of any kind are absent where they are `null`, too. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** JSON that is cut off is worth nothing, so that an answer with a shape ends by itself unless it is told otherwise. */
function tokensMaxOf(
  { max_tokens, max_completion_tokens }: Pick<GenerateBody, 'max_tokens' | 'max_completion_tokens'>,
  isShaped: boolean,
): number | undefined {
  if (isGiven(max_tokens) && isGiven(max_completion_tokens) && max_tokens !== max_completion_tokens) {
    throw invalid('max_completion_tokens: means the same as max_tokens, and they differ; give one of them');
  }
  return max_completion_tokens ?? max_tokens ?? (isShaped ? undefined : defaultTokensMax);
}

function readContinuation({ continue_final_message, messages }: GenerateBody): boolean {
  if (continue_final_message !== true) return false;
  const last = messages.at(-1);
  if (last?.role === 'assistant' && (last.tool_calls ?? []).length === 0) return true;
  throw invalid('continue_final_message: the last message has to be one of the assistant, without tool_calls');
}

/** Milliseconds; infinite for a number below zero. */
export function readKeepAlive(keepAlive: GenerateBody['keep_alive']): number | undefined {
  if (keepAlive === undefined || keepAlive === null) return undefined;
  const text = String(keepAlive).trim();
  if (/^-/.test(text)) return Number.POSITIVE_INFINITY;
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  try {
    return parseDuration(text);
  } catch (cause) {
    throw new ServiceError('invalid_request', `keep_alive: "${text.slice(0, 40)}" is not a duration such as "5m"`, {
      cause,
    });
  }
}

function readStop(stop: GenerateBody['stop']): readonly string[] {
  const texts = typeof stop === 'string' ? [stop] : (stop ?? []);
  for (const text of texts) {
    if (text === '') throw invalid('stop: a text is empty');
    if (text.length > stopCharsMax) throw invalid(`stop: a text is longer than ${stopCharsMax} characters`);
  }
  return [...new Set(texts)];
}

function readSampling(body: SharedBody): Sampling {
  return {
    temperature: body.temperature ?? usualSampling.temperature,
    topP: body.top_p ?? usualSampling.topP,
    topK: body.top_k ?? usualSampling.topK,
    minP: body.min_p ?? usualSampling.minP,
    repetitionPenalty: body.repetition_penalty ?? usualSampling.repetitionPenalty,
    frequencyPenalty: body.frequency_penalty ?? usualSampling.frequencyPenalty,
    presencePenalty: body.presence_penalty ?? usualSampling.presencePenalty,
    seed: typeof body.seed === 'number' ? Number(BigInt.asUintN(32, BigInt(body.seed))) : undefined,
    logitBias: readLogitBias(body.logit_bias ?? {}),
  };
}

function readLogitBias(biases: Readonly<Record<string, number>>): Sampling['logitBias'] {
  const entries = Object.entries(biases);
  if (entries.length > biasesMax) throw invalid(`logit_bias: at most ${biasesMax} tokens may be named`);
  return entries.map(([token, bias]) => {
    if (!/^\d{1,9}$/.test(token)) throw invalid(`logit_bias: "${token.slice(0, 40)}" is not the number of a token`);
    return [Number(token), bias] as const;
  });
}

function readTopLogprobs({ logprobs, top_logprobs }: GenerateBody): number | undefined {
  if (logprobs === true) return top_logprobs ?? 0;
  if ((top_logprobs ?? 0) > 0) throw invalid('top_logprobs: needs logprobs: true');
  return undefined;
}

function readPromptCache({ prompt_cache, prompt_cache_key }: SharedBody): GenerationRequest['promptCache'] {
  const key = prompt_cache_key ?? undefined;
  return (prompt_cache ?? true) ? { key } : undefined;
}

function readCacheType({ cache_dtype }: SharedBody): CacheType | undefined {
  if (cache_dtype === 'fp8') throw impossible('cache_dtype: fp8 is not supported; use f32, f16, int8 or int4');
  return cache_dtype ?? undefined;
}

function readSpeculation(body: SharedBody): GenerationRequest['speculation'] {
  const { draft_model, speculative_k, speculation_policy } = body;
  if (speculation_policy === 'off') return 'policy_off';
  if (speculative_k === 0) {
    if (speculation_policy === 'force') throw invalid('speculative_k: is 0 while speculation_policy is force');
    return 'policy_off';
  }
  if (![draft_model, speculative_k, speculation_policy].some(isGiven)) return 'not_requested';
  return {
    policy: speculation_policy ?? 'auto',
    draftModel: draft_model ?? undefined,
    tokens: speculative_k ?? defaultDraftTokens,
  };
}

export function readFormat({
  grammar,
  response_format,
}: Pick<GenerateBody, 'grammar' | 'response_format'>): OutputFormat {
  if (typeof grammar === 'string') {
    if (grammar === 'json') return { kind: 'json_object' };
    if (grammar.length > grammarBounds.chars) {
      throw new ServiceError(
        'unsupported_response_format',
        `grammar: is longer than ${grammarBounds.chars} characters`,
      );
    }
    return { kind: 'grammar', grammar };
  }
  const type = response_format?.type ?? 'text';
  const { schema: misplaced, json_schema } = response_format ?? {};
  if (isGiven(misplaced) || (type !== 'json_schema' && isGiven(json_schema))) {
    throw invalid('response_format: a schema stands in json_schema.schema, with the type json_schema');
  }
  if (type !== 'json_schema') return { kind: type };
  const schema = response_format?.json_schema?.schema;
  if (schema === undefined || schema === null) throw invalid('response_format: json_schema.schema is missing');
  return { kind: 'json_schema', schema, strict: response_format?.json_schema?.strict ?? false };
}
