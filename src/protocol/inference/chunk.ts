import { type Static, Type } from '@sinclair/typebox';
import { contentPartSchema } from './content-parts.ts';
import { usageSchema } from './usage.ts';

const target = Type.Optional(Type.Integer({ minimum: 1, description: 'Tokens of a chunk at most; 500.' }));

const overlap = Type.Optional(
  Type.Integer({ minimum: 0, description: 'Tokens that the next chunk repeats, at most half of a chunk; 0.' }),
);
const separator = Type.Optional(
  Type.String({ maxLength: 1_024, description: 'Where chunks end by preference; an empty line.' }),
);
/** May be given in `config` itself or in its `text`. */
const lengths = { target_tokens: target, overlap_tokens: overlap, separator };

export const chunkRequestSchema = Type.Object({
  text: Type.Optional(Type.String()),
  input: Type.Optional(Type.Union([Type.String(), contentPartSchema], { description: 'Another name for `text`.' })),
  config: Type.Optional(
    Type.Object({
      model: Type.Optional(Type.String({ minLength: 1, description: '`fixed`, or an installed chunker.' })),
      ...lengths,
      text: Type.Optional(Type.Object(lengths)),
      max_chunks: Type.Optional(
        Type.Integer({ minimum: 1, description: 'Chunks that are answered; what comes behind them is left out.' }),
      ),
      threshold: Type.Optional(
        Type.Number({ minimum: 0, maximum: 1, description: 'How sure a model has to be that a part ends; 0.5.' }),
      ),
    }),
  ),
});

export const chunkResponseSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('chunk'),
      index: Type.Integer(),
      id: Type.Integer(),
      text: Type.String(),
      start_char: Type.Integer({ description: 'Characters (Unicode code points) in front of the chunk.' }),
      end_char: Type.Integer({ description: 'Exclusive.' }),
      mime_type: Type.String(),
    }),
  ),
  model: Type.String({ description: 'What the text was really cut by: `fixed` where a model failed.' }),
  usage: usageSchema,
  cache_hit: Type.Boolean(),
});

export type ChunkBody = Static<typeof chunkRequestSchema>;
