import type { ChatMessage } from '../../../inference/generation/prompt/chat-message.ts';
import { mediaReference } from '../../../inference/media/media-reference.ts';
import type { MessageBody, MessagePart } from '../../../protocol/inference/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';

const callsMax = 256;

function invalid(at: number, message: string): ServiceError {
  return new ServiceError('invalid_request', `messages.${at}: ${message}`);
}

/** Throws `invalid_request` that names the message. */
export function readMessages(messages: readonly MessageBody[]): ChatMessage[] {
  return messages.map((message, at) => readMessage(message, at));
}

function readMessage(message: MessageBody, at: number): ChatMessage {
  const calls = message.tool_calls ?? [];
  if (calls.length > 0 && message.role !== 'assistant') throw invalid(at, `a ${message.role} makes no tool_calls`);
  if (calls.length > callsMax) throw invalid(at, `at most ${callsMax} tool_calls`);
  const callId = message.tool_call_id ?? undefined;
  if (message.role === 'tool' && callId === undefined) throw invalid(at, 'a tool message needs its tool_call_id');
  const { content = null } = message;
  if (content === null && calls.length === 0 && message.role !== 'assistant') throw invalid(at, 'content is missing');
  const parts: readonly MessagePart[] =
    content === null ? [] : typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const media = parts.flatMap((part, partAt) => {
    if (part.type === 'refusal') return [];
    return mediaReference(part, `messages[${at}].content[${partAt}]`) ?? [];
  });
  if (media.length > 0 && message.role !== 'user') throw invalid(at, 'images and sounds belong to user messages');
  return {
    role: message.role === 'developer' ? 'system' : message.role,
    content: parts.flatMap(textOf).join('\n'),
    media,
    name: message.name ?? undefined,
    calls: calls.map(({ id, function: { name, arguments: text } }) => ({ id, name, arguments: text })),
    callId,
  };
}

function textOf(part: MessagePart): string[] {
  if (part.type === 'text') return [part.text];
  return part.type === 'refusal' ? [part.refusal] : [];
}
