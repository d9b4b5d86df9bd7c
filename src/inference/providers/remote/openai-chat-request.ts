import { ServiceError } from '../../../protocol/service-error.ts';
import { type GenerationRequest, type OutputFormat, usualSampling } from '../../generation/generation-request.ts';
import type { ChatMessage } from '../../generation/prompt/chat-message.ts';
import { callableTools, type FunctionTool, toolForTemplate } from '../../generation/tools/function-tools.ts';
import type { MediaReference } from '../../media/media-reference.ts';
import { refuseOtherMembers } from './refuse-members.ts';

/** Members that servers of this protocol know, or refuse themselves. */
const shared = [
  'seed',
  'top_k',
  'min_p',
  'repetition_penalty',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'ignore_eos',
  'continue_final_message',
  'reasoning_effort',
  'chat_template_kwargs.enable_thinking',
  'chat_template_kwargs',
  'tool_choice',
  'parallel_tool_calls',
  'tools.function.strict',
] as const;

interface ChatServer {
  readonly name: string;
  /** It is another server like this one, and knows every member. */
  readonly isService: boolean;
  /** It is that of OpenAI, whose newer models refuse `max_tokens`, the name that all others know. */
  readonly isOpenAi?: boolean;
}

/**
 * A request in the shape of `POST /chat/completions`. What is as usual is left out: not every server knows every member. Members
 * that only some servers know have the names that these give them, and are refused by the others.
 */
export function chatBody(request: GenerationRequest, server: ChatServer): Record<string, unknown> {
  const { name, isService, isOpenAi = false } = server;
  const { model, tokensMax, choices, stop, prompt } = request;
  if (prompt !== undefined) throw new ServiceError('model_not_supported', 'this provider takes messages, not a prompt');
  if (!isService) refuseOtherMembers(name, request, shared);
  return {
    model,
    messages: request.messages.map(messageBody),
    ...changed(tokensMax, undefined, isOpenAi ? 'max_completion_tokens' : 'max_tokens'),
    ...changed(choices, 1, 'n'),
    ...(stop.length > 0 && { stop }),
    ...samplingBody(request.sampling),
    ...changed(request.ignoreEos, false, 'ignore_eos'),
    ...changed(request.continuesFinal, false, 'continue_final_message'),
    ...changed(request.promptCache?.key, undefined, 'prompt_cache_key'),
    ...logprobsBody(request.topLogprobs),
    ...templateBody(request),
    ...toolsBody(request),
    ...formatBody(request.format, isService),
    ...(isService && ownMembers(request)),
  };
}

function changed<T>(value: T, usual: T, name: string): Record<string, T> {
  return value === usual ? {} : { [name]: value };
}

function samplingBody(sampling: GenerationRequest['sampling']): Record<string, unknown> {
  const { logitBias } = sampling;
  return {
    ...changed(sampling.temperature, usualSampling.temperature, 'temperature'),
    ...changed(sampling.topP, usualSampling.topP, 'top_p'),
    ...changed(sampling.topK, usualSampling.topK, 'top_k'),
    ...changed(sampling.minP, usualSampling.minP, 'min_p'),
    ...changed(sampling.repetitionPenalty, usualSampling.repetitionPenalty, 'repetition_penalty'),
    ...changed(sampling.frequencyPenalty, 0, 'frequency_penalty'),
    ...changed(sampling.presencePenalty, 0, 'presence_penalty'),
    ...changed(sampling.seed, undefined, 'seed'),
    ...(logitBias.length > 0 && { logit_bias: Object.fromEntries(logitBias) }),
  };
}

function logprobsBody(top: number | undefined): Record<string, unknown> {
  if (top === undefined) return {};
  return { logprobs: true, ...(top > 0 && { top_logprobs: top }) };
}

function templateBody({ enableThinking, templateVariables }: GenerationRequest): Record<string, unknown> {
  const { reasoning_effort, ...others } = templateVariables;
  const variables = { ...others, ...(enableThinking !== undefined && { enable_thinking: enableThinking }) };
  return {
    ...(reasoning_effort !== undefined && { reasoning_effort }),
    ...(Object.keys(variables).length > 0 && { chat_template_kwargs: variables }),
  };
}

/** Functions that may not be called are not told of: not every server can be told that they may not be. */
function toolsBody({ tools, toolChoice, parallelCalls }: GenerationRequest): Record<string, unknown> {
  const { mode, names, single } = toolChoice;
  const [name] = names ?? [];
  const callable = callableTools(tools, toolChoice);
  if (callable.length === 0) return {};
  return {
    tools: callable.map(toolBody),
    tool_choice: single && name !== undefined ? { type: 'function', function: { name } } : mode,
    ...changed(parallelCalls, undefined, 'parallel_tool_calls'),
  };
}

function toolBody(tool: FunctionTool): object {
  const shown = toolForTemplate(tool);
  return tool.strict ? { ...shown, function: { ...shown.function, strict: true } } : shown;
}

/** Members that only servers like this one take. */
function ownMembers(request: GenerationRequest): Record<string, unknown> {
  const { keepAliveMs, speculation } = request;
  return {
    ...changed(request.backend, 'auto', 'backend'),
    ...changed(request.cacheType, undefined, 'cache_dtype'),
    ...(request.promptCache === undefined && { prompt_cache: false }),
    ...(keepAliveMs !== undefined && { keep_alive: Number.isFinite(keepAliveMs) ? keepAliveMs / 1_000 : -1 }),
    ...(speculation === 'policy_off' && { speculation_policy: 'off' }),
    ...(typeof speculation === 'object' && {
      speculation_policy: speculation.policy,
      speculative_k: speculation.tokens,
      ...changed(speculation.draftModel, undefined, 'draft_model'),
    }),
  };
}

function formatBody(format: OutputFormat, takesGrammar: boolean): Record<string, unknown> {
  if (format.kind === 'text') return {};
  if (format.kind === 'json_object') return { response_format: { type: 'json_object' } };
  if (format.kind === 'grammar') {
    if (takesGrammar) return { grammar: format.grammar };
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
