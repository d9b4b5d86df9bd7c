import { type Static, Type } from '@sinclair/typebox';

/** Tokens that a request took. */
export const usageSchema = Type.Object({
  prompt_tokens: Type.Integer(),
  completion_tokens: Type.Integer(),
  total_tokens: Type.Integer(),
  cached_prompt_tokens: Type.Integer({ description: 'Tokens of the prompt whose state was there already.' }),
});

export type Usage = Static<typeof usageSchema>;

/** Of tokens read, written, and read before. */
export function usageOf(prompt: number, completion = 0, cached = 0): Usage {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    cached_prompt_tokens: cached,
  };
}
