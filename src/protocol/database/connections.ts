import { type Static, type TSchema, Type } from '@sinclair/typebox';

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const text = nullable(Type.String());
const texts = Type.Array(Type.String());
const listedModel = Type.Object({
  name: Type.String(),
  display_name: Type.String(),
  dimensions: nullable(Type.Integer()),
  configured: Type.Boolean({ description: 'Whether the connection names the model.' }),
});

/** A connection as it is listed; a member that does not apply is `null`. */
export const connectionEntrySchema = Type.Object({
  id: Type.String(),
  name: Type.String(),
  display_name: Type.String(),
  provider: Type.String(),
  kind: Type.String({ description: '`inference`, `external_io`, `database`, `cdc` or `web_search`' }),
  status: Type.String({ description: '`connected`, `error`, or `configured` for what was not looked at' }),
  error: text,
  capabilities: texts,
  sources: texts,
  inference: nullable(
    Type.Object({
      provider: Type.String(),
      url: text,
      region: text,
      project_id: text,
      location: text,
      names: texts,
      configured_model_types: texts,
      models: nullable(
        Type.Record(Type.String(), Type.Array(listedModel), { description: 'By type; only with `include=models`.' }),
      ),
    }),
  ),
  web_search: nullable(
    Type.Object({
      service: Type.String(),
      language: text,
      region: text,
      endpoint: text,
      project_id: text,
      location: text,
      data_store: text,
      serving_config: text,
      max_results: Type.Integer(),
      timeout_ms: Type.Integer(),
      safe_search: Type.Boolean(),
      include_content: Type.Boolean(),
      include_highlights: Type.Boolean(),
      configured: Type.Boolean({ description: 'Whether it has the key that it needs.' }),
      include_domains: texts,
      exclude_domains: texts,
    }),
  ),
  external_io: nullable(
    Type.Object({ protocol: Type.String(), endpoint: text, prefix: text, buckets: texts, hosts: texts }),
  ),
  database: nullable(Type.Object({ provider: Type.String(), tables: texts, statement_timeout_ms: Type.Integer() })),
  cdc: nullable(
    Type.Object({
      provider: Type.String(),
      table_name: text,
      external_table: text,
      slot_name: text,
      publication_name: text,
      phase: text,
      source_ordinal: nullable(Type.Integer()),
      lag_records: nullable(Type.Integer()),
      lag_millis: nullable(Type.Integer()),
      last_success_at_ms: nullable(Type.Integer()),
      last_change_applied_at_ms: nullable(Type.Integer()),
      updated_at_ms: nullable(Type.Integer()),
    }),
  ),
});
export type ConnectionEntry = Static<typeof connectionEntrySchema>;

export const connectionListSchema = Type.Object({ connections: Type.Array(connectionEntrySchema) });
