import { type Static, type TSchema, Type } from '@sinclair/typebox';
import { contentPartSchema } from './content-parts.ts';
import { optional } from './optional.ts';

const words = <const Words extends readonly string[]>(all: Words, options: object = {}) =>
  Type.Unsafe<Words[number]>(
    Type.Union(
      all.map((word) => Type.Literal(word)),
      options,
    ) as TSchema,
  );

const tokens = Type.Array(Type.Integer({ minimum: 0 }), { description: 'Tokens of the model, special ones included.' });

export const embeddingsRequestSchema = Type.Object({
  model: Type.String({ minLength: 1 }),
  input: Type.Union(
    [Type.String(), contentPartSchema, tokens, Type.Array(Type.Union([Type.String(), tokens, contentPartSchema]))],
    { description: 'A text or an array of them, each as characters, as a content part, or as tokens.' },
  ),
  accept_token_input: optional(
    Type.String({
      description:
        'The name of `model` again, where `input` has tokens: those of its own vocabulary are the only ones taken.',
    }),
  ),
  encoding_format: optional(
    words(['float', 'base64'], { description: '`base64` is little-endian 32-bit floating point numbers.' }),
  ),
  dimensions: optional(
    Type.Integer({ minimum: 1, description: 'Length to which vectors are cut; they are scaled to length one again.' }),
  ),
  task_type: optional(
    words([
      'RETRIEVAL_QUERY',
      'RETRIEVAL_DOCUMENT',
      'QUESTION_ANSWERING',
      'FACT_VERIFICATION',
      'CODE_RETRIEVAL_QUERY',
      'CLASSIFICATION',
      'CLUSTERING',
      'SEMANTIC_SIMILARITY',
    ]),
  ),
  input_type: optional(
    words(['search_query', 'search_document', 'query', 'document', 'classification', 'clustering'], {
      description: 'Another spelling of `task_type`.',
    }),
  ),
  instruction: optional(
    Type.String({ maxLength: 8_192, description: 'Put before every text, for models that follow instructions.' }),
  ),
  error_policy: optional(
    words(['fail_fast', 'continue'], {
      description: 'With `continue`, inputs that fail are listed in `errors` and the others are embedded.',
    }),
  ),
  truncate: optional(
    Type.Union([Type.Boolean(), Type.Literal('start'), Type.Literal('end')], {
      description: 'Where an over-long input is cut; without it it is refused. `true` cuts at the end.',
    }),
  ),
});

export const sparseEmbeddingSchema = Type.Object({
  indices: Type.Array(Type.Integer(), { description: 'Ascending.' }),
  values: Type.Array(Type.Number(), { description: 'Positive.' }),
});

export const embeddingsResponseSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      embedding: Type.Union([Type.Array(Type.Number()), Type.String(), sparseEmbeddingSchema]),
      index: Type.Integer({ description: 'Place of the input. Inputs that failed are missing.' }),
    }),
  ),
  model: Type.String(),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
  errors: Type.Array(
    Type.Object({
      index: Type.Integer(),
      code: Type.String(),
      message: Type.String(),
      stage: Type.String({ description: '`parse`, `fetch`, `preprocess` or `inference`.' }),
      retryable: Type.Boolean(),
      status: Type.Integer({ description: 'HTTP status that the input alone would have been answered.' }),
      retry_after_ms: Type.Integer(),
    }),
  ),
  summary: Type.Object({ total: Type.Integer(), succeeded: Type.Integer(), failed: Type.Integer() }),
});

export type EmbeddingsRequest = Static<typeof embeddingsRequestSchema>;
export type EmbeddingsResponse = Static<typeof embeddingsResponseSchema>;
