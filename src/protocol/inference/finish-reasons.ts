/** `content_filter` only from models elsewhere, whose provider has left something out. */
export const finishReasons = ['stop', 'length', 'tool_calls', 'content_filter'] as const;
export type FinishReason = (typeof finishReasons)[number];
