import { type Static, Type } from '@sinclair/typebox';
import { documentedText, durationPattern } from '../documented-text.ts';
import { contentPartSchema } from './content-parts.ts';
import { finishReasons } from './finish-reasons.ts';
import { optional } from './optional.ts';
import { usageSchema } from './usage.ts';

const words = <const Words extends readonly string[]>(all: Words, description = '') =>
  Type.Union(
    all.map((word) => Type.Literal(word as Words[number])),
    { description },
  );

/** A part of a message; `refusal` is text that an assistant answered with before. */
const messagePartSchema = Type.Union([
  ...contentPartSchema.anyOf,
  Type.Object({ type: Type.Literal('refusal'), refusal: Type.String() }),
]);

export const toolCallSchema = Type.Object({
  id: Type.String(),
  type: Type.Literal('function'),
  function: Type.Object({ name: Type.String(), arguments: Type.String({ description: 'A JSON object, as text.' }) }),
});

export const messageSchema = Type.Object({
  role: words(['system', 'developer', 'user', 'assistant', 'tool'], '`developer` means `system`.'),
  content: optional(Type.Union([Type.String(), Type.Array(messagePartSchema)])),
  name: optional(Type.String()),
  tool_calls: optional(Type.Array(toolCallSchema)),
  tool_call_id: optional(Type.String({ description: 'Of a `tool` message: the call that it answers.' })),
  reasoning_content: optional(Type.String({ description: 'Accepted, and not shown to the model again.' })),
});

export const toolSchema = Type.Object({
  type: Type.Literal('function'),
  function: Type.Object({
    name: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$' }),
    description: optional(Type.String()),
    parameters: optional(Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema of an object.' })),
    strict: optional(Type.Boolean({ description: 'Refuse parameters that cannot be enforced.' })),
  }),
});

const namedFunctionSchema = Type.Object({
  type: Type.Literal('function'),
  function: Type.Object({ name: Type.String() }),
});

/** As Ollama has it. */
export const keepAliveSchema = Type.Union(
  [documentedText(`^-|^[0-9]+([.][0-9]+)?$|${durationPattern}`), Type.Number()],
  {
    description: 'How long the model stays loaded after this request: a duration, or seconds; below 0 for ever.',
  },
);

export const responseFormatSchema = Type.Object({
  type: words(['text', 'json_object', 'json_schema']),
  schema: Type.Optional(Type.Unknown({ description: 'Refused: it stands in `json_schema`.' })),
  json_schema: optional(
    Type.Object({
      name: optional(Type.String()),
      description: optional(Type.String()),
      schema: optional(Type.Unknown({ description: 'docs/structured-output.md says what is enforced.' })),
      strict: optional(Type.Boolean({ description: 'Refuse keywords that cannot be enforced.' })),
    }),
  ),
});

/** Members that requests for chat and for the continuation of a text have in common. */
export const sharedMembers = {
  model: Type.String({ minLength: 1 }),
  max_tokens: optional(
    Type.Integer({
      minimum: 1,
      description: 'Tokens to generate at most; 256 unless given, and the rest of the context with tools or a format.',
    }),
  ),
  temperature: optional(Type.Number({ minimum: 0, maximum: 2, description: '1 unless given.' })),
  top_p: optional(Type.Number({ minimum: 0, maximum: 1, description: '1 unless given.' })),
  top_k: optional(Type.Integer({ minimum: 0, description: '50 unless given; 0 for no bound.' })),
  min_p: optional(Type.Number({ minimum: 0, maximum: 1 })),
  repetition_penalty: optional(Type.Number({ exclusiveMinimum: 0, maximum: 10, description: '1 unless given.' })),
  frequency_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  presence_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  seed: optional(Type.Integer()),
  logit_bias: optional(
    Type.Record(Type.String(), Type.Number({ minimum: -100, maximum: 100 }), {
      description: 'By token of the model, as a number.',
    }),
  ),
  stop: optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 16 })])),
  n: optional(Type.Integer({ minimum: 1, maximum: 8, description: 'Answers to the same messages; 1 unless given.' })),
  ignore_eos: optional(Type.Boolean({ description: 'Go on past the end until `max_tokens`.' })),
  stream: optional(Type.Boolean()),
  stream_options: optional(
    Type.Object({
      include_usage: optional(Type.Boolean()),
      error_format: optional(
        words(
          ['text', 'json'],
          'How an error in the middle of a stream is written: `text` unless given, `json` below `/v1`.',
        ),
      ),
    }),
  ),
  keep_alive: optional(keepAliveSchema),
  response_format: optional(responseFormatSchema),
  grammar: optional(Type.String({ minLength: 1, description: 'GBNF, or `json`.' })),
  draft_model: optional(Type.String({ minLength: 1, description: 'A generator that drafts for this one.' })),
  speculative_k: optional(
    Type.Integer({ minimum: 0, maximum: 64, description: 'Tokens drafted at a time; 0 for none.' }),
  ),
  speculation_policy: optional(words(['auto', 'off', 'force'])),
  cache_dtype: optional(words(['f16', 'f32', 'int8', 'fp8', 'int4'], 'Precision of the state; `fp8` is refused.')),
  prompt_cache_key: optional(Type.String({ minLength: 1, maxLength: 512 })),
  prompt_cache: optional(Type.Boolean({ description: 'Reuse and keep the state of the prompt; true unless given.' })),
  backend: optional(words(['auto', 'onnx', 'native', 'metal', 'cuda', 'mlx', 'xla', 'webgpu', 'wasm'])),
};

export const generateRequestSchema = Type.Object({
  ...sharedMembers,
  messages: Type.Array(messageSchema, { minItems: 1, maxItems: 16_384 }),
  max_completion_tokens: optional(Type.Integer({ minimum: 1, description: 'Means `max_tokens`.' })),
  logprobs: optional(Type.Boolean()),
  top_logprobs: optional(Type.Integer({ minimum: 0, maximum: 20 })),
  chat_template_kwargs: optional(
    Type.Object(
      { enable_thinking: optional(Type.Boolean()) },
      { description: 'Further members are handed to the chat template of the model.' },
    ),
  ),
  enable_thinking: optional(Type.Boolean({ description: 'Means `chat_template_kwargs.enable_thinking`.' })),
  continue_final_message: optional(
    Type.Boolean({ description: 'Go on with the last message, which is one of the assistant, where it ends.' }),
  ),
  reasoning_effort: optional(Type.String({ description: 'Handed to the chat template.' })),
  tools: optional(Type.Array(toolSchema, { maxItems: 128 })),
  tool_choice: optional(
    Type.Union([
      words(['auto', 'none', 'required']),
      namedFunctionSchema,
      Type.Object({
        type: Type.Literal('allowed_tools'),
        allowed_tools: Type.Object({
          mode: words(['auto', 'required']),
          tools: Type.Array(namedFunctionSchema, { minItems: 1, maxItems: 128 }),
        }),
      }),
    ]),
  ),
  parallel_tool_calls: optional(
    Type.Boolean({ description: 'Several calls in one answer; true unless given, but for calls that are demanded.' }),
  ),
  speculation_calibration: optional(words(['none'])),
  cache_compaction_ratio: optional(
    Type.Number({ minimum: 0, maximum: 1, description: 'Only 1, which keeps the whole state.' }),
  ),
  mode: optional(words(['eager', 'compiled'], '`compiled` is refused.')),
  compiled_target: optional(words(['partitioned', 'whole-model'], 'For `compiled`.')),
  functions: Type.Optional(Type.Unknown({ description: 'Refused: use `tools`.' })),
  function_call: Type.Optional(Type.Unknown({ description: 'Refused: use `tool_choice`.' })),
  web_search_options: Type.Optional(Type.Unknown({ description: 'Refused: the web is not searched.' })),
  modalities: optional(Type.Array(Type.String(), { description: 'Only `text`.' })),
  audio: Type.Optional(Type.Unknown({ description: 'Refused: answers are text.' })),
});

export type GenerateBody = Static<typeof generateRequestSchema>;
export type MessageBody = Static<typeof messageSchema>;
export type MessagePart = Static<typeof messagePartSchema>;
export type ToolBody = Static<typeof toolSchema>;

const tokenLogprobSchema = Type.Object({
  token: Type.String(),
  logprob: Type.Number(),
  bytes: Type.Array(Type.Integer()),
});

const logprobsSchema = Type.Union([
  Type.Null(),
  Type.Object({
    content: Type.Array(
      Type.Intersect([tokenLogprobSchema, Type.Object({ top_logprobs: Type.Array(tokenLogprobSchema) })]),
      { description: 'Every generated token in its order, those of reasoning and calls included.' },
    ),
    refusal: Type.Null(),
  }),
]);

export const generationUsageSchema = Type.Composite([
  usageSchema,
  Type.Object({ prompt_tokens_details: Type.Object({ cached_tokens: Type.Integer() }) }),
]);

export const speculationSchema = Type.Object({
  policy: words(['auto', 'off', 'force']),
  calibration: words(['none']),
  decision: words(['enabled', 'disabled']),
  disabled_reason: Type.Union([Type.String(), Type.Null()]),
  drafted_tokens: Type.Integer(),
  accepted_tokens: Type.Integer(),
});

export const generateResponseSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('chat.completion'),
  created: Type.Integer({ description: 'Seconds since 1970.' }),
  model: Type.String(),
  choices: Type.Array(
    Type.Object({
      index: Type.Integer(),
      message: Type.Object({
        role: Type.Literal('assistant'),
        content: Type.Union([Type.String(), Type.Null()]),
        refusal: Type.Union([Type.String(), Type.Null()], {
          description: 'Why a model of another provider does not answer.',
        }),
        reasoning_content: Type.Union([Type.String(), Type.Null()]),
        tool_calls: Type.Optional(Type.Array(toolCallSchema)),
      }),
      logprobs: logprobsSchema,
      finish_reason: words(finishReasons),
    }),
  ),
  usage: generationUsageSchema,
  speculation: speculationSchema,
});

export type GenerateResponse = Static<typeof generateResponseSchema>;
export type Usage = Static<typeof generationUsageSchema>;
export type SpeculationBody = Static<typeof speculationSchema>;
export type LogprobsBody = Static<typeof logprobsSchema>;
