import { Type } from '@sinclair/typebox';
import { imagePartSchema, mediaPartSchema } from './content-parts.ts';
import { usageSchema } from './usage.ts';

const max_tokens = Type.Optional(Type.Integer({ minimum: 1, maximum: 65_536, description: 'Of one output; 256.' }));
const model = Type.String({ minLength: 1 });
const truncated = Type.Optional(
  Type.Boolean({ description: 'The text was cut: at `max_tokens`, or at the most that the model writes.' }),
);

export const rewriteRequestSchema = Type.Object({
  model,
  inputs: Type.Array(Type.String(), { minItems: 1 }),
  max_tokens,
});

export const rewriteResponseSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('rewrite'),
      index: Type.Integer(),
      texts: Type.Array(Type.String()),
      truncated,
    }),
  ),
  model: Type.String(),
  usage: usageSchema,
});

export const readRequestSchema = Type.Object({
  model,
  images: Type.Array(
    Type.Union([Type.Object({ url: Type.String({ minLength: 1 }) }), imagePartSchema, mediaPartSchema]),
    { minItems: 1, maxItems: 64 },
  ),
  prompt: Type.Optional(
    Type.String({
      maxLength: 4_096,
      description: 'What the output begins with, for models that are told so what to do.',
    }),
  ),
  max_tokens,
});

export const readResponseSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('read'),
      index: Type.Integer(),
      text: Type.String(),
      fields: Type.Record(Type.String(), Type.Unknown(), { description: 'Empty: models are read as text.' }),
      regions: Type.Array(Type.Unknown(), { description: 'Empty: models that find places are not run yet.' }),
      truncated,
    }),
  ),
  model: Type.String(),
  usage: usageSchema,
});

export const transcribeRequestSchema = Type.Object({
  model,
  audio: Type.String({ minLength: 1, description: 'A WAV file in base64, or a data URI of it.' }),
  language: Type.Optional(Type.String({ maxLength: 64, description: 'Such as `en`; guessed where it is missing.' })),
});

export const transcribeResponseSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('transcription'),
      index: Type.Integer(),
      text: Type.String(),
      language: Type.Optional(Type.String()),
      truncated,
    }),
  ),
  model: Type.String(),
  usage: usageSchema,
});
