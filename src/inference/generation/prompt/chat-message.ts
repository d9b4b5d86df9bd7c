import type { MediaReference } from '../../media/media-reference.ts';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
}

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly media: readonly MediaReference[];
  readonly name: string | undefined;
  readonly calls: readonly ToolCall[];
  /** Of an answer of a tool: the call that it belongs to. */
  readonly callId: string | undefined;
}

/** A message that is nothing but text. */
export function textMessage(role: ChatMessage['role'], content: string): ChatMessage {
  return { role, content, media: [], name: undefined, calls: [], callId: undefined };
}

export function mediaOf(messages: readonly ChatMessage[]): MediaReference[] {
  return messages.flatMap(({ media }) => media);
}
