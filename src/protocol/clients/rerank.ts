import { type Static, Type } from '@sinclair/typebox';
import { rerankRequestSchema } from '../inference/rerank.ts';

const model = Type.Optional(
  Type.String({ minLength: 1, description: 'Needed where several rerankers are installed.' }),
);
const query = Type.String({ minLength: 1 });

/** As clients of Cohere and Jina ask; the best results come first. */
export const documentsRerankSchema = Type.Object({
  model,
  query,
  documents: Type.Array(Type.Union([Type.String(), Type.Object({ text: Type.String() })]), { minItems: 1 }),
  top_n: Type.Optional(Type.Integer({ minimum: 1, description: 'Results that are answered; all unless given.' })),
  return_documents: Type.Optional(Type.Boolean({ description: 'Give the texts back; false unless given.' })),
  max_tokens_per_doc: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Only the first tokens of each document are read; all that fit unless given.',
    }),
  ),
});

/** As clients of Text Embeddings Inference ask. */
export const textsRerankSchema = Type.Object({
  model,
  query,
  texts: Type.Array(Type.String(), { minItems: 1 }),
  return_text: Type.Optional(Type.Boolean()),
  raw_scores: Type.Optional(Type.Boolean({ description: 'Only false: scores are those of the model.' })),
  truncate: Type.Optional(Type.Boolean()),
  truncation_direction: Type.Optional(Type.Union([Type.Literal('Left'), Type.Literal('Right')])),
});

export const anyRerankSchema = Type.Union([rerankRequestSchema, documentsRerankSchema, textsRerankSchema]);

export const rerankResultsSchema = Type.Object({
  id: Type.String(),
  object: Type.Literal('list'),
  model: Type.String(),
  results: Type.Array(
    Type.Object({
      index: Type.Integer({ description: 'Place among `documents`.' }),
      relevance_score: Type.Number(),
      document: Type.Optional(Type.Object({ text: Type.String() })),
    }),
    { description: 'The most relevant first.' },
  ),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
  meta: Type.Object({
    api_version: Type.Object({ version: Type.String() }),
    tokens: Type.Object({ input_tokens: Type.Integer() }),
  }),
});

export const rankedTextsSchema = Type.Array(
  Type.Object({ index: Type.Integer(), score: Type.Number(), text: Type.Optional(Type.String()) }),
);

export type AnyRerankRequest = Static<typeof anyRerankSchema>;
export type DocumentsRerankRequest = Static<typeof documentsRerankSchema>;
export type TextsRerankRequest = Static<typeof textsRerankSchema>;
