import { type Static, Type } from '@sinclair/typebox';
import { keepAliveSchema } from '../inference/generate.ts';

const name = Type.String({ minLength: 1, description: 'With or without `:latest`.' });
const keep_alive = Type.Optional(keepAliveSchema);
const stream = Type.Optional(Type.Boolean({ description: 'True unless given: the answer comes as lines of JSON.' }));
const think = Type.Optional(Type.Union([Type.Boolean(), Type.String()]));
const format = Type.Optional(Type.Unknown({ description: '`"json"`, or the JSON Schema that the answer is held to.' }));

const options = Type.Optional(
  Type.Object(
    {
      num_predict: Type.Optional(
        Type.Integer({ description: 'Tokens at most; 0 or less for the rest of the context.' }),
      ),
      temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2, description: '0.8 unless given.' })),
      top_k: Type.Optional(Type.Integer({ minimum: 0, description: '40 unless given.' })),
      top_p: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: '0.9 unless given.' })),
      min_p: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
      seed: Type.Optional(Type.Integer()),
      stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 16 })])),
      repeat_penalty: Type.Optional(
        Type.Number({ exclusiveMinimum: 0, maximum: 10, description: '1.1 unless given.' }),
      ),
      presence_penalty: Type.Optional(Type.Number({ minimum: -2, maximum: 2 })),
      frequency_penalty: Type.Optional(Type.Number({ minimum: -2, maximum: 2 })),
      mirostat: Type.Optional(Type.Integer({ description: 'Refused, but for 0.' })),
      typical_p: Type.Optional(Type.Number({ description: 'Refused, but for 1.' })),
      tfs_z: Type.Optional(Type.Number({ description: 'Refused, but for 1.' })),
    },
    { description: 'Others, such as `num_ctx`, are the server’s to decide and are ignored.' },
  ),
);

const logprobs = {
  logprobs: Type.Optional(Type.Boolean({ description: 'Give those of every generated token.' })),
  top_logprobs: Type.Optional(Type.Integer({ minimum: 0, maximum: 20, description: 'Alternatives beside each.' })),
};

const images = Type.Optional(Type.Array(Type.String({ description: 'Base64.' }), { maxItems: 64 }));

const callSchema = Type.Object({
  function: Type.Object({
    name: Type.String({ minLength: 1, maxLength: 64 }),
    arguments: Type.Record(Type.String(), Type.Unknown()),
  }),
});

export const ollamaMessageSchema = Type.Object({
  role: Type.Union(['system', 'user', 'assistant', 'tool'].map((role) => Type.Literal(role))),
  content: Type.Optional(Type.String()),
  thinking: Type.Optional(Type.String()),
  images,
  tool_calls: Type.Optional(Type.Array(callSchema, { maxItems: 256 })),
  tool_name: Type.Optional(Type.String()),
});

export const ollamaToolSchema = Type.Object({
  type: Type.Literal('function'),
  function: Type.Object({
    name: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$' }),
    description: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  }),
});

export const ollamaChatSchema = Type.Object({
  model: name,
  messages: Type.Optional(Type.Array(ollamaMessageSchema, { maxItems: 16_384 })),
  tools: Type.Optional(Type.Array(ollamaToolSchema, { maxItems: 128 })),
  format,
  options,
  stream,
  think,
  keep_alive,
  ...logprobs,
});

export const ollamaGenerateSchema = Type.Object({
  model: name,
  prompt: Type.Optional(Type.String()),
  system: Type.Optional(Type.String()),
  images,
  suffix: Type.Optional(
    Type.String({ description: 'What comes behind the answer, for models with tokens for filling a gap.' }),
  ),
  template: Type.Optional(Type.String({ description: 'Refused: models have their own.' })),
  raw: Type.Optional(Type.Boolean({ description: 'Goes on with `prompt` as it is, without the template.' })),
  context: Type.Optional(Type.Array(Type.Integer(), { description: 'Refused: send messages to `/api/chat`.' })),
  format,
  options,
  stream,
  think,
  keep_alive,
  ...logprobs,
});

export const ollamaEmbedSchema = Type.Object({
  model: name,
  input: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
  truncate: Type.Optional(Type.Boolean({ description: 'True unless given.' })),
  dimensions: Type.Optional(Type.Integer({ minimum: 1 })),
  keep_alive,
  options: Type.Optional(Type.Unknown()),
});

export const ollamaEmbeddingsSchema = Type.Object({
  model: name,
  prompt: Type.String(),
  keep_alive,
  options: Type.Optional(Type.Unknown()),
});

/** `name` is the older spelling of `model`. */
export const ollamaNameSchema = Type.Object({
  model: Type.Optional(name),
  name: Type.Optional(name),
  stream,
  verbose: Type.Optional(Type.Boolean()),
  insecure: Type.Optional(Type.Boolean()),
});

/** A line of a stream, or the whole answer; which members there are depends on the route. */
export const ollamaAnswerSchema = Type.Object({}, { description: 'As Ollama documents it for the route.' });

export type OllamaChat = Static<typeof ollamaChatSchema>;
export type OllamaGenerate = Static<typeof ollamaGenerateSchema>;
export type OllamaMessage = Static<typeof ollamaMessageSchema>;
export type OllamaOptions = NonNullable<OllamaChat['options']>;
export type OllamaName = Static<typeof ollamaNameSchema>;
