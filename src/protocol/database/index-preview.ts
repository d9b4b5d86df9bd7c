import { CloneType, type Static, Type } from '@sinclair/typebox';
import { indexConfig, jsonObject } from './tables.ts';

const documentsMax = 100;
/** Documents of a preview that does not say how many. */
export const usualPreviewDocuments = 10;
/** Characters that are shown of a text. */
export const previewTextCharsMax = 16_384;

export const indexPreviewRequest = Type.Object(
  {
    config: Type.Optional(
      CloneType(indexConfig, {
        description: 'What the index would be created with; without it, the index of this name as it is.',
      }),
    ),
    keys: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        maxItems: documentsMax,
        description: 'The documents to look at; without it, the first ones of the table.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: documentsMax,
        description: `How many of the first documents; ${usualPreviewDocuments} when absent`,
      }),
    ),
  },
  { additionalProperties: false },
);
export type IndexPreviewRequest = Static<typeof indexPreviewRequest>;

const chunk = Type.Object({
  _chunk_id: Type.Integer(),
  _content: Type.String(),
  _start_char: Type.Integer(),
  _end_char: Type.Integer(),
  _start_offset: Type.Integer({ description: 'Bytes of UTF-8, as `_end_offset`.' }),
  _end_offset: Type.Integer(),
});

const document = Type.Object({
  _id: Type.String(),
  state: Type.Union([Type.Literal('ready'), Type.Literal('none'), Type.Literal('failed')], {
    description: '`ready`: it would have its vectors; `none`: there is nothing to embed; `failed`: it would have none.',
  }),
  text: Type.Optional(
    Type.String({ description: `What is embedded; the first ${previewTextCharsMax} characters are shown.` }),
  ),
  characters: Type.Optional(Type.Integer({ description: 'Length of the whole text, in Unicode code points.' })),
  image: Type.Optional(Type.Object({ media_type: Type.String(), bytes: Type.Integer() })),
  chunks: Type.Optional(
    Type.Array(chunk, { description: 'With a `chunker`: those that begin within the text that is shown.' }),
  ),
  vector_lengths: Type.Array(Type.Integer(), {
    description: 'One number for each vector: values of a dense one, entries of a sparse one.',
  }),
  tokens: Type.Integer({ description: 'What the embedder has counted; 0 where it counts nothing.' }),
  code: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
});
export type PreviewedIndexDocument = Static<typeof document>;

export const indexPreview = Type.Object({
  config: jsonObject,
  documents: Type.Array(document),
  total: Type.Object(
    {
      documents: Type.Integer(),
      ready: Type.Integer(),
      none: Type.Integer(),
      failed: Type.Integer(),
      vectors: Type.Integer(),
      tokens: Type.Integer(),
    },
    { description: 'Of the documents above.' },
  ),
  estimate: Type.Object(
    {
      documents: Type.Integer(),
      vectors: Type.Integer(),
      tokens: Type.Integer(),
      vector_bytes: Type.Integer(),
    },
    { description: 'Of the whole table, as if all its documents were like those above.' },
  ),
});
export type IndexPreview = Static<typeof indexPreview>;
