import { type Static, Type } from '@sinclair/typebox';
import { jsonObject } from './tables.ts';

const execution = Type.Object(
  {
    batch_items: Type.Optional(Type.Integer({ minimum: 1, description: 'Texts in one request to a model at most.' })),
    batch_bytes: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Bytes of them at most, but for one text that has more by itself.' }),
    ),
  },
  { additionalProperties: false },
);

/** An enrichment: what the server makes of each document of a table (specification 2.4). */
export const artifactEnrichment = Type.Object(
  {
    name: Type.Optional(Type.String()),
    kind: Type.Optional(Type.String({ description: '`chunk`, `asset` or `embedding`' })),
    field: Type.Optional(Type.String({ description: 'Path of the member that it is made from.' })),
    template: Type.Optional(Type.String({ description: 'Template of what it is made from.' })),
    source_artifact_name: Type.Optional(
      Type.String({ description: 'Another enrichment of the table, from whose artifacts it is made.' }),
    ),
    expected_dims: Type.Optional(Type.Integer({ minimum: 0, description: 'embedding: length of the vectors' })),
    vector_space: Type.Optional(Type.String({ description: 'embedding: a label of vectors that can be compared' })),
    chunk_size: Type.Optional(Type.Integer({ minimum: 0, description: 'chunk: characters of a window' })),
    chunk_overlap: Type.Optional(Type.Integer({ minimum: 0, description: 'chunk: characters that windows share' })),
    chunker_json: Type.Optional(
      Type.Union([Type.String(), jsonObject], {
        description: 'chunk: JSON of a chunker, such as {"model":"fixed","text":{"target_tokens":200}}',
      }),
    ),
    full_text_index: Type.Optional(
      Type.Boolean({ description: 'chunk and asset: the text is searched by the default full-text index' }),
    ),
    content_type: Type.Optional(Type.String({ description: 'asset: media type of what is made' })),
    producer_json: Type.Optional(
      Type.Union([Type.String(), jsonObject], {
        description: 'asset and embedding: JSON of what makes it; never shown again',
      }),
    ),
    execution: Type.Optional(execution),
  },
  { additionalProperties: true },
);
export type ArtifactEnrichment = Static<typeof artifactEnrichment>;

const tracedArtifact = Type.Object({
  name: Type.String(),
  kind: Type.String({ description: '`chunk`, `asset`, `embedding` or `edges`' }),
  state: Type.String({
    description: '`ready`, `pending`, `retrying`, `failed`, or `none` where there is nothing to make',
  }),
  attempts: Type.Integer(),
  code: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String()),
  next_attempt_at: Type.Optional(Type.String({ description: 'ISO 8601' })),
  source_hash: Type.Optional(Type.String({ description: 'Of what the artifact that is there was made from.' })),
});

/** How far the artifacts of one document are. */
export const documentArtifacts = Type.Object({
  document_id: Type.String(),
  artifacts: Type.Array(tracedArtifact),
});

export const artifactList = Type.Object({ table_name: Type.String(), artifacts: Type.Array(artifactEnrichment) });
