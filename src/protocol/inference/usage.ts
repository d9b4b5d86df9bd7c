import { Type } from '@sinclair/typebox';

/** Tokens that a request took. */
export const usageSchema = Type.Object({
  prompt_tokens: Type.Integer(),
  completion_tokens: Type.Integer(),
  total_tokens: Type.Integer(),
  cached_prompt_tokens: Type.Integer(),
});
