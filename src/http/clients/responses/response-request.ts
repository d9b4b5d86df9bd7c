import type { GenerationRequest } from '../../../inference/generation/generation-request.ts';
import type { ResponseInputItem, ResponsesRequest } from '../../../protocol/clients/responses.ts';
import type { GenerateBody, MessageBody, MessagePart } from '../../../protocol/inference/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { isGiven, readChatRequest } from '../../inference/generation/chat-request.ts';

type Part = Exclude<Extract<ResponseInputItem, { role: string }>['content'], string>[number];

export interface ReadResponse {
  /** Items that the request adds to the conversation; instructions aside, which are of one response alone. */
  readonly items: readonly ResponseInputItem[];
  readonly generation: GenerationRequest;
}

/** The stored part of a request: the conversation that goes on, and items that the request refers to. */
interface Stored {
  readonly conversation: readonly ResponseInputItem[];
  /** Throws `not_found`. */
  readonly item: (id: string) => ResponseInputItem;
}

/** Throws `ServiceError` that names the member which cannot be honoured. */
export function readResponseRequest(body: ResponsesRequest, stored: Stored): ReadResponse {
  refuseRest(body);
  const items = itemsOf(body.input, stored);
  const system: MessageBody[] = body.instructions === undefined ? [] : [{ role: 'system', content: body.instructions }];
  const generation = readChatRequest({
    model: body.model,
    messages: [...system, ...messagesOf(stored.conversation, 'previous_response_id'), ...messagesOf(items, 'input')],
    ...(body.temperature === undefined ? {} : { temperature: body.temperature }),
    ...(body.top_p === undefined ? {} : { top_p: body.top_p }),
    ...(body.reasoning?.effort === undefined ? {} : { reasoning_effort: body.reasoning.effort }),
    ...(body.parallel_tool_calls === undefined ? {} : { parallel_tool_calls: body.parallel_tool_calls }),
    ...toolsOf(body),
    ...formatOf(body),
    ...logprobsOf(body),
    stream: body.stream ?? false,
  });
  return { items, generation: { ...generation, tokensMax: body.max_output_tokens } };
}

function refuseRest({ background, truncation, conversation, prompt }: ResponsesRequest): void {
  const refuse = (member: string, why: string) => {
    throw new ServiceError('invalid_request', `${member}: ${why}`);
  };
  if (background === true) refuse('background', 'responses are given while the client waits');
  if (truncation === 'auto') refuse('truncation', 'a conversation that is too long is not cut');
  if (isGiven(conversation)) refuse('conversation', 'use previous_response_id');
  if (isGiven(prompt)) refuse('prompt', 'there are no stored prompts; send instructions and input');
}

function logprobsOf({ include, top_logprobs = 0 }: ResponsesRequest): Pick<GenerateBody, 'logprobs' | 'top_logprobs'> {
  const logprobs = top_logprobs > 0 || include?.includes('message.output_text.logprobs') === true;
  return logprobs ? { logprobs, top_logprobs } : {};
}

function toolsOf({ tools, tool_choice }: ResponsesRequest): Pick<GenerateBody, 'tools' | 'tool_choice'> {
  const functions = (tools ?? []).map(({ name, description, parameters, strict }) => ({
    type: 'function' as const,
    function: { name, description, parameters, strict },
  }));
  const choice = choiceOf(tool_choice);
  // Here `auto` is what a request without the member says, with tools or without.
  const isSaid = choice !== undefined && !(choice === 'auto' && functions.length === 0);
  return {
    ...(functions.length === 0 ? {} : { tools: functions as NonNullable<GenerateBody['tools']> }),
    ...(isSaid ? { tool_choice: choice } : {}),
  };
}

function choiceOf(choice: ResponsesRequest['tool_choice']): GenerateBody['tool_choice'] {
  if (typeof choice !== 'object') return choice;
  const named = ({ name }: { readonly name: string }) => ({ type: 'function' as const, function: { name } });
  if (choice.type === 'function') return named(choice);
  const { mode, tools } = choice;
  return { type: 'allowed_tools', allowed_tools: { mode, tools: tools.map(named) } };
}

function formatOf({ text }: ResponsesRequest): Pick<GenerateBody, 'response_format'> {
  const { type = 'text', name, schema, strict } = text?.format ?? {};
  if (type !== 'json_schema') return { response_format: { type } };
  const json_schema = { schema, ...(name === undefined ? {} : { name }), ...(strict === undefined ? {} : { strict }) };
  return { response_format: { type, json_schema } };
}

function itemsOf(input: ResponsesRequest['input'], stored: Stored): ResponseInputItem[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  return input.map((item) => ('type' in item && item.type === 'item_reference' ? stored.item(item.id) : item));
}

/** `where` names the items in messages of errors. */
function messagesOf(items: readonly ResponseInputItem[], where: string): MessageBody[] {
  const messages: MessageBody[] = [];
  for (const [at, item] of items.entries()) {
    if ('role' in item)
      addMessage(messages, { role: item.role, content: contentOf(item.content, `${where}.${at}.content`) });
    else if (item.type === 'function_call_output') {
      const content = contentOf(item.output, `${where}.${at}.output`);
      messages.push({ role: 'tool', tool_call_id: item.call_id, content });
    } else if (item.type === 'function_call') addCall(messages, item);
    else if (messages.at(-1)?.role !== 'assistant') messages.push(silentTurn);
  }
  return messages;
}

/** A turn of the assistant that has come no further than thoughts. */
const silentTurn: MessageBody = { role: 'assistant', content: '' };

function addMessage(messages: MessageBody[], message: MessageBody): void {
  if (message.role === 'assistant' && messages.at(-1) === silentTurn) messages.pop();
  messages.push(message);
}

/** Calls of one turn belong to one message of the assistant, with what it said before them. */
function addCall(
  messages: MessageBody[],
  { call_id, name, arguments: given }: Extract<ResponseInputItem, { type: 'function_call' }>,
): void {
  const call = { id: call_id, type: 'function' as const, function: { name, arguments: given } };
  const last = messages.at(-1);
  if (last?.role !== 'assistant') messages.push({ role: 'assistant', content: null, tool_calls: [call] });
  else if (last.tool_calls) last.tool_calls.push(call);
  else messages[messages.length - 1] = { ...last, tool_calls: [call] };
}

function contentOf(content: string | readonly Part[], where: string): NonNullable<MessageBody['content']> {
  if (typeof content === 'string') return content;
  return content.map((part, at): MessagePart => {
    if (part.type === 'refusal') return part;
    if (part.type !== 'input_image') return { type: 'text', text: part.text };
    if (part.image_url !== undefined) return { type: 'image_url', image_url: part.image_url };
    throw new ServiceError('invalid_request', `${where}.${at}: image_url is missing; there are no files`);
  });
}
