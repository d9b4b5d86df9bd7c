import { type Static, Type } from '@sinclair/typebox';
import { contentSchema } from './content-parts.ts';
import { usageSchema } from './usage.ts';

const common = {
  model: Type.String({ minLength: 1 }),
  query: Type.String({ minLength: 1 }),
  truncate: Type.Optional(
    Type.Union([Type.Boolean(), Type.Literal('start'), Type.Literal('end')], {
      description: 'Where a text that does not fit beside the query is cut; without it the request is refused.',
    }),
  ),
};

export const rerankRequestSchema = Type.Object({
  ...common,
  prompts: Type.Array(Type.String(), { minItems: 1, description: 'Texts as they are to be read.' }),
});

export const rerankMultimodalRequestSchema = Type.Object({
  ...common,
  documents: Type.Array(Type.Object({ id: Type.Optional(Type.String()), content: contentSchema }), { minItems: 1 }),
});

export const rerankResponseSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('rerank.score'),
      index: Type.Integer(),
      score: Type.Number({
        description:
          "Higher is better: of a cross-encoder 0 to 1, of late interaction the sum of the best matches of the query's tokens.",
      }),
    }),
    { description: 'In the order of the request.' },
  ),
  model: Type.String(),
  usage: usageSchema,
});

export type RerankRequest = Static<typeof rerankRequestSchema>;
export type RerankMultimodalRequest = Static<typeof rerankMultimodalRequestSchema>;
