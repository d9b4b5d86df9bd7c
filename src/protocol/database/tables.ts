import { type Static, Type } from '@sinclair/typebox';
import { documentedText, durationPattern } from '../documented-text.ts';

/** Any JSON object; its inside is checked by whoever owns it. */
export const jsonObject = Type.Record(Type.String(), Type.Unknown());

/** An empty one says that documents do not expire. */
const ttlDuration = Type.Optional(documentedText(`^$|${durationPattern}`));

/**
 * A table's schema as it travels. The native engine checks and compiles it; members that it does not know are
 * ignored there, as the interface asks.
 */
export const tableSchema = Type.Object(
  {
    version: Type.Optional(Type.Integer({ minimum: 0 })),
    default_type: Type.Optional(Type.String()),
    enforce_types: Type.Optional(Type.Boolean()),
    document_schemas: Type.Optional(Type.Record(Type.String(), jsonObject)),
    ttl: Type.Optional(
      Type.Object({
        field: Type.Optional(Type.String()),
        duration: ttlDuration,
        ttl_duration: ttlDuration,
      }),
    ),
    ttl_field: Type.Optional(Type.String()),
    ttl_duration: ttlDuration,
    synonyms: Type.Optional(
      Type.Array(Type.Union([Type.String(), Type.Array(Type.String())]), {
        description:
          'Terms that queries take for the same: ["tv", "television"], or one way: "laptop => notebook, ultrabook".',
      }),
    ),
    dynamic_templates: Type.Optional(Type.Union([Type.Array(jsonObject), Type.Record(Type.String(), jsonObject)])),
  },
  { additionalProperties: true },
);
export type TableSchema = Static<typeof tableSchema>;

export const indexConfig = Type.Object(
  {
    name: Type.Optional(Type.String()),
    type: Type.Optional(Type.String()),
    description: Type.Optional(Type.String()),
    version: Type.Optional(Type.Integer({ minimum: 0 })),
    mem_only: Type.Optional(Type.Boolean()),
    enrichments: Type.Optional(Type.Array(Type.Unknown())),
    external: Type.Optional(
      Type.Boolean({ description: 'embeddings: vectors are written with the documents, in `_embeddings`' }),
    ),
    sparse: Type.Optional(Type.Boolean({ description: 'embeddings: sparse vectors' })),
    dimension: Type.Optional(Type.Number({ description: 'embeddings: length of the vectors; dense ones need it' })),
    distance_metric: Type.Optional(
      Type.String({ description: 'dense embeddings: `l2_squared` (when absent), `cosine` or `inner_product`' }),
    ),
    coverage_policy: Type.Optional(
      Type.String({
        description:
          'embeddings: `strict`, `partial` or `best_effort`; kept and shown. Whatever it is, an index is complete when each of its documents has its vectors or is known to have none',
      }),
    ),
    publication_policy: Type.Optional(
      Type.String({
        description:
          'embeddings: `progressive` or `atomic`; kept and shown. Whatever it is, a vector is found as soon as it is there, and the state says what is missing',
      }),
    ),
    top_k: Type.Optional(
      Type.Number({ description: 'sparse embeddings: hits of a query that names no limit; 10 when absent' }),
    ),
    min_weight: Type.Optional(
      Type.Number({ description: 'sparse embeddings: entries of a smaller absolute weight are not indexed' }),
    ),
    chunk_size: Type.Optional(
      Type.Number({ description: 'sparse embeddings: taken and kept; the engine sizes its blocks itself' }),
    ),
    field: Type.Optional(Type.String({ description: 'managed embeddings: path of the member to embed' })),
    template: Type.Optional(Type.String({ description: 'managed embeddings: template of the text to embed' })),
    embedder: Type.Optional(jsonObject),
    chunker: Type.Optional(jsonObject),
    derive_from_schema: Type.Optional(
      Type.Boolean({ description: 'algebraic: true, it counts the values of all scalars that the schema declares' }),
    ),
    source_artifact_name: Type.Optional(
      Type.String({
        description:
          'embeddings: the enrichment whose vectors the index holds; full_text: the enrichment whose text is searched; also `artifact_name`, and `sources`, which may name several for full_text',
      }),
    ),
    artifact_name: Type.Optional(Type.String()),
    sources: Type.Optional(Type.Array(Type.Object({ artifact: Type.String() }))),
  },
  { additionalProperties: true },
);
export type IndexConfig = Static<typeof indexConfig>;

export const createTableRequest = Type.Object(
  {
    num_shards: Type.Optional(Type.Integer({ minimum: 1 })),
    description: Type.Optional(Type.String()),
    indexes: Type.Optional(Type.Record(Type.String(), indexConfig)),
    schema: Type.Optional(tableSchema),
    replication_sources: Type.Optional(Type.Array(Type.Unknown())),
  },
  { additionalProperties: true },
);
export type CreateTableRequest = Static<typeof createTableRequest>;

const byteRange = Type.Tuple([Type.String(), Type.String()], {
  description: 'Least key and the key after the greatest, in base64; empty where there is no bound.',
});

const fieldCapabilities = Type.Record(
  Type.String(),
  Type.Object({
    types: Type.Array(Type.String(), { description: 'How it is indexed, in the words of `x-service-types`.' }),
    searchable: Type.Boolean({ description: 'By its words.' }),
    filterable: Type.Boolean({ description: 'By whole values and ranges.' }),
    sortable: Type.Boolean(),
    aggregatable: Type.Boolean(),
    in_all: Type.Boolean({ description: 'The schema opts it in to queries that name no field.' }),
  }),
  { description: 'What queries can do with each field that the schema declares, by its path.' },
);
export type FieldCapabilities = Static<typeof fieldCapabilities>;

export const tableStatus = Type.Object({
  name: Type.String(),
  description: Type.Optional(Type.String()),
  indexes: Type.Record(Type.String(), indexConfig),
  shards: Type.Record(Type.String(), Type.Object({ byte_range: byteRange })),
  schema: Type.Optional(tableSchema),
  field_capabilities: Type.Optional(fieldCapabilities),
  migration: Type.Optional(Type.Object({ state: Type.Literal('rebuilding'), read_schema: tableSchema })),
  ttl_rewrite: Type.Optional(
    Type.Object(
      { state: Type.Literal('running') },
      {
        description: 'Present while TTL bases are read again after a change of `ttl.field`; nothing expires meanwhile.',
      },
    ),
  ),
  storage_status: Type.Optional(
    Type.Object(
      {
        disk_usage: Type.Integer(),
        empty: Type.Boolean(),
        unreadable_ranges: Type.Optional(
          Type.Array(Type.Integer(), { description: 'Ranges that cannot be opened and count in neither number.' }),
        ),
      },
      { description: 'Absent for a caller that a row filter hides documents from.' },
    ),
  ),
});
export type TableStatus = Static<typeof tableStatus>;
