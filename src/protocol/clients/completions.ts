import { type Static, Type } from '@sinclair/typebox';
import { finishReasons } from '../inference/finish-reasons.ts';
import { generationUsageSchema, sharedMembers } from '../inference/generate.ts';
import { optional } from '../inference/optional.ts';

const tokens = Type.Array(Type.Integer({ minimum: 0 }), { minItems: 1 });

/** As OpenAI's `/completions` has it. */
export const completionsRequestSchema = Type.Object({
  ...sharedMembers,
  prompt: Type.Union([Type.String(), tokens, Type.Array(Type.Union([Type.String(), tokens]), { minItems: 1 })], {
    description: 'A text or tokens of the model, or several of them. No chat template is applied.',
  }),
  suffix: optional(Type.String({ description: 'What is to follow the answer, for models that can fill a gap.' })),
  max_tokens: optional(
    Type.Integer({ minimum: 0, description: 'Tokens to generate at most; 256 unless given. 0 only reads the prompt.' }),
  ),
  echo: optional(Type.Boolean({ description: 'The answer begins with its prompt.' })),
  logprobs: optional(
    Type.Integer({
      minimum: 0,
      maximum: 20,
      description: 'Alternatives to give beside each token of the answer, with `echo` those of the prompt included.',
    }),
  ),
  best_of: optional(Type.Integer({ minimum: 1, description: 'Refused where it is above `n`.' })),
});

export type CompletionsBody = Static<typeof completionsRequestSchema>;

const logprobsSchema = Type.Object({
  tokens: Type.Array(Type.String()),
  token_logprobs: Type.Array(Type.Union([Type.Number(), Type.Null()]), {
    description: '`null` for the first token of a prompt, where the model reads nothing in front of it.',
  }),
  top_logprobs: Type.Array(Type.Union([Type.Record(Type.String(), Type.Number()), Type.Null()])),
  text_offset: Type.Array(Type.Integer(), {
    description: 'Characters (Unicode code points) of `text` in front of each token.',
  }),
});

export type CompletionLogprobs = Static<typeof logprobsSchema>;

export const completionsResponseSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('text_completion'),
  created: Type.Integer({ description: 'Seconds since 1970.' }),
  model: Type.String(),
  choices: Type.Array(
    Type.Object({
      text: Type.String(),
      index: Type.Integer({ description: 'By prompt, and `n` of them for each.' }),
      logprobs: Type.Union([Type.Null(), logprobsSchema]),
      finish_reason: Type.Union(finishReasons.map((reason) => Type.Literal(reason))),
    }),
  ),
  usage: generationUsageSchema,
});

export type CompletionsResponse = Static<typeof completionsResponseSchema>;
