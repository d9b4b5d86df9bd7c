import type { GenerationRequest } from '../../../inference/generation/generation-request.ts';
import type { OllamaChat, OllamaGenerate, OllamaMessage, OllamaOptions } from '../../../protocol/clients/ollama.ts';
import type { GenerateBody, MessageBody, MessagePart } from '../../../protocol/inference/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { readChatRequest } from '../../inference/generation/chat-request.ts';
import { plainName } from './model-names.ts';

/** How Ollama chooses tokens where a request does not say. */
const usual = { temperature: 0.8, top_k: 40, top_p: 0.9, repeat_penalty: 1.1 };

/** A chat in Ollama's shape as it is meant. Throws `ServiceError` that names the member which cannot be honoured. */
export function readOllamaChat({ messages = [], tools, ...body }: OllamaChat): GenerationRequest {
  return readRequest(body, messagesOf(messages), tools);
}

/** The same of a prompt, which the template of the model makes a message of the user. */
export function readOllamaPrompt(body: OllamaGenerate): GenerationRequest {
  const { prompt = '', system, images, suffix = '' } = body;
  if ((body.template ?? '') !== '') throw refused('template', 'models have their own');
  if ((body.context ?? []).length > 0) throw refused('context', 'send the messages to /api/chat');
  if (body.raw === true || suffix !== '') {
    const member = body.raw === true ? 'raw' : 'suffix';
    if ((system ?? '') !== '') throw refused('system', `leave it out where ${member} is given: there is no template`);
    if ((images ?? []).length > 0) throw refused('images', `leave them out where ${member} is given`);
    if (prompt === '' && suffix !== '') throw refused('prompt', 'is empty; give what comes before the gap');
    const request = readRequest(body, messagesOf([{ role: 'user', content: prompt }]), undefined);
    return { ...request, messages: [], prompt: { input: prompt, suffix } };
  }
  const user: OllamaMessage = { role: 'user', content: prompt, ...(images === undefined ? {} : { images }) };
  const before: OllamaMessage[] = (system ?? '') === '' ? [] : [{ role: 'system', content: system ?? '' }];
  return readRequest(body, messagesOf([...before, user]), undefined);
}

function refused(member: string, why: string): ServiceError {
  return new ServiceError('invalid_request', `${member}: ${why}`);
}

function readRequest(
  {
    model,
    format,
    options = {},
    stream = true,
    think,
    keep_alive,
    logprobs,
    top_logprobs,
  }: Omit<OllamaGenerate, 'prompt'>,
  messages: MessageBody[],
  tools: GenerateBody['tools'],
): GenerationRequest {
  const request = readChatRequest({
    model: plainName(model),
    messages,
    ...(tools === undefined ? {} : { tools }),
    ...sampling(options),
    ...(options.stop === undefined ? {} : { stop: options.stop }),
    ...formatOf(format),
    ...(think === undefined ? {} : { chat_template_kwargs: { enable_thinking: think !== false } }),
    ...(typeof think === 'string' ? { reasoning_effort: think } : {}),
    ...(keep_alive === undefined ? {} : { keep_alive }),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(top_logprobs === undefined ? {} : { top_logprobs }),
    stream,
  });
  // As Ollama has it, 0 sets no bound either.
  const { num_predict = 0 } = options;
  return { ...request, tokensMax: num_predict > 0 ? num_predict : undefined };
}

/** Ways to choose tokens that models have not here, with the value that asks for none of it. */
const otherWays = { mirostat: 0, typical_p: 1, tfs_z: 1 } as const;

function sampling(options: OllamaOptions): Partial<GenerateBody> {
  for (const name of ['mirostat', 'typical_p', 'tfs_z'] as const) {
    if ((options[name] ?? otherWays[name]) === otherWays[name]) continue;
    throw refused(
      `options.${name}`,
      'tokens are not chosen this way here; leave it out, or use top_k, top_p and min_p',
    );
  }
  const { temperature, top_k, top_p, repeat_penalty } = { ...usual, ...options };
  const { min_p, seed, presence_penalty, frequency_penalty } = options;
  return {
    temperature,
    top_k,
    top_p,
    repetition_penalty: repeat_penalty,
    ...(min_p === undefined ? {} : { min_p }),
    ...(seed === undefined ? {} : { seed }),
    ...(presence_penalty === undefined ? {} : { presence_penalty }),
    ...(frequency_penalty === undefined ? {} : { frequency_penalty }),
  };
}

function formatOf(format: unknown): Pick<GenerateBody, 'response_format'> {
  if (format === undefined || format === '') return {};
  if (format === 'json') return { response_format: { type: 'json_object' } };
  if (typeof format === 'object') return { response_format: { type: 'json_schema', json_schema: { schema: format } } };
  throw refused('format', 'there are "json" and JSON Schemas');
}

/** Calls in their order, and how many of them at the beginning have their result. */
interface Calls {
  readonly calls: { readonly id: string; answered: boolean }[];
  done: number;
}

/** Takes the first call that has no result yet. */
function answerFirst(queue: Calls | undefined): string | undefined {
  while (queue?.calls[queue.done]?.answered === true) queue.done += 1;
  const first = queue?.calls[queue.done];
  if (first !== undefined) first.answered = true;
  return first?.id;
}

/** Calls have no ids in Ollama's shape: a result belongs to the first call of its function, or of any, that has none yet. */
function messagesOf(messages: readonly OllamaMessage[]): MessageBody[] {
  const all: Calls = { calls: [], done: 0 };
  const byName = new Map<string, Calls>();
  const answered = (tool = '') => answerFirst(byName.get(tool)) ?? answerFirst(all);
  const open = (id: string, name: string) => {
    const call = { id, answered: false };
    const ofName = byName.get(name) ?? { calls: [], done: 0 };
    byName.set(name, ofName);
    for (const { calls } of [all, ofName]) calls.push(call);
  };
  return messages.map(({ role, content = '', images = [], tool_calls = [], thinking, tool_name }, at) => {
    const calls = tool_calls.map(({ function: { name, arguments: given } }, call) => {
      const id = `call_${at}_${call}`;
      open(id, name);
      return { id, type: 'function' as const, function: { name, arguments: JSON.stringify(given) } };
    });
    const parts: MessagePart[] = [
      ...(content === '' ? [] : [{ type: 'text' as const, text: content }]),
      ...images.map((image) => ({ type: 'image_url' as const, image_url: `data:${imageType(image)};base64,${image}` })),
    ];
    return {
      role: role as MessageBody['role'],
      content: images.length === 0 ? content : parts,
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(role === 'tool' ? { tool_call_id: answered(tool_name) ?? `call_${at}` } : {}),
      ...(thinking === undefined ? {} : { reasoning_content: thinking }),
    };
  });
}

/** Of an image in base64, by its first bytes. */
function imageType(base64: string): string {
  if (base64.startsWith('/9j/')) return 'image/jpeg';
  if (base64.startsWith('R0lG')) return 'image/gif';
  return base64.startsWith('UklGR') ? 'image/webp' : 'image/png';
}
