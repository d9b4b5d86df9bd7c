import { type Static, Type } from '@sinclair/typebox';
import { embeddingsRequestSchema } from '../inference/embeddings.ts';

/** As clients of Text Embeddings Inference ask. */
export const teiEmbedSchema = Type.Object({
  model: Type.Optional(Type.String({ minLength: 1, description: 'Needed where several embedders are installed.' })),
  inputs: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]),
  normalize: Type.Optional(
    Type.Boolean({ description: 'Vectors are those of the model; refused where it differs from what the model does.' }),
  ),
  truncate: Type.Optional(Type.Boolean()),
  truncation_direction: Type.Optional(Type.Union([Type.Literal('Left'), Type.Literal('Right')])),
  prompt_name: Type.Optional(Type.String({ maxLength: 64, description: 'A name among the prefixes of the model.' })),
  dimensions: Type.Optional(Type.Integer({ minimum: 1 })),
});

export const anyEmbedSchema = Type.Union([embeddingsRequestSchema, teiEmbedSchema]);

export const teiInfoSchema = Type.Object({
  model_id: Type.String(),
  model_type: Type.Object({}, { description: '`{embedding: {pooling}}` or `{reranker: {}}`.' }),
  max_input_length: Type.Optional(Type.Integer({ description: 'Tokens.' })),
  max_concurrent_requests: Type.Integer(),
  max_client_batch_size: Type.Integer(),
  version: Type.String(),
});

export type TeiEmbedRequest = Static<typeof teiEmbedSchema>;
