import { DurationError, parseDuration } from '../../lib/duration.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { synonymsOf } from '../../query/request/synonyms.ts';
import { isRelational } from '../relational/relational-schema.ts';
import { checkSchemaMembers } from './schema-members.ts';

/** How long documents live, counted from the time in `field`. */
export interface TtlPolicy {
  /** Dotted path of the member that holds the base time. */
  field: string;
  durationMs: number;
}

const timestampField = '_timestamp';

/** A table that is created without a schema takes documents of any shape. */
export const openSchema: TableSchema = {
  version: 0,
  default_type: 'doc',
  enforce_types: false,
  document_schemas: { doc: { schema: { type: 'object', 'x-service-dynamic-indexing': { mode: 'infer_types' } } } },
};

/** The TTL that a schema asks for, in either spelling; undefined when documents do not expire. */
export function ttlPolicy(schema: TableSchema): TtlPolicy | undefined {
  const durationMs = readDuration(durationOf(schema) ?? '');
  return durationMs === undefined ? undefined : { field: ttlField(schema), durationMs };
}

function durationOf({ ttl, ttl_duration: flat }: TableSchema): string | undefined {
  return ttl?.duration ?? ttl?.ttl_duration ?? flat;
}

/** Milliseconds; undefined for an empty duration, which says that documents do not expire. */
function readDuration(text: string): number | undefined {
  if (text === '') return undefined;
  const durationMs = parsedDuration(text);
  if (durationMs <= 0) throw new ServiceError('invalid_schema', `ttl duration "${text}" must be longer than 0s`);
  return durationMs;
}

function parsedDuration(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    if (error instanceof DurationError) throw new ServiceError('invalid_schema', `ttl: ${error.message}`);
    throw error;
  }
}

/** The member that holds a document's base time, whether or not a TTL is set today. */
export function ttlField(schema: TableSchema): string {
  return schema.ttl?.field ?? schema.ttl_field ?? timestampField;
}

/** A TTL in several spellings has to be one; a field alone would let documents live for ever without a word. */
function checkTtl(schema: TableSchema): void {
  const { ttl, ttl_field: flatField, ttl_duration: flatDuration } = schema;
  const durations = [ttl?.duration, ttl?.ttl_duration, flatDuration].flatMap((text) => text ?? []);
  if ((ttl || flatField !== undefined) && durations.length === 0) {
    const message = 'a TTL needs "ttl.duration", such as "24h"; an empty one says that documents do not expire';
    throw new ServiceError('invalid_schema', message);
  }
  if (new Set(durations.map(readDuration)).size > 1) {
    const given = durations.map((text) => JSON.stringify(text)).join(' and ');
    throw new ServiceError('invalid_schema', `the TTL has several durations, ${given}: give one, in "ttl.duration"`);
  }
  const fields = new Set([ttl?.field, flatField].flatMap((field) => field ?? []));
  if (fields.has('')) throw new ServiceError('invalid_schema', '"ttl.field" is empty: name a member of the documents');
  if (fields.size > 1) {
    const given = [...fields].map((field) => JSON.stringify(field)).join(' and ');
    throw new ServiceError('invalid_schema', `the TTL has several fields, ${given}: give one, in "ttl.field"`);
  }
}

/**
 * The schema to store in place of `previous`: the version is the server's, and rises when the types of documents do:
 * those that are declared, or the one of documents that name none; the TTL is kept in the form `ttl: {field, duration}`.
 */
export function nextSchema(requested: TableSchema, previous: TableSchema | undefined): TableSchema {
  checkSchemaMembers(requested);
  if (previous) refuseOtherMode(requested, previous);
  const { version: _, ttl: __, ttl_field: ___, ttl_duration: ____, ...rest } = requested;
  checkTtl(requested);
  const policy = ttlPolicy(requested);
  synonymsOf(requested);
  const documentSchemas = requested.document_schemas ?? openSchema.document_schemas ?? {};
  const isOpen = requested.document_schemas === undefined && requested.default_type === undefined;
  const defaultType = isOpen ? openSchema.default_type : requested.default_type;
  const types = {
    document_schemas: documentSchemas,
    ...(defaultType === undefined ? {} : { default_type: defaultType }),
  };
  const changed = previous !== undefined && !areSameTypes(previous, types);
  const duration = durationOf(requested);
  return {
    ...rest,
    version: (previous?.version ?? 0) + (changed ? 1 : 0),
    ...types,
    enforce_types: requested.enforce_types ?? isRelational(requested),
    ...(policy && duration !== undefined ? { ttl: { field: policy.field, duration } } : {}),
  };
}

function areSameTypes(previous: TableSchema, next: TableSchema): boolean {
  return (
    Bun.deepEquals(previous.document_schemas, next.document_schemas, true) &&
    unnamedType(previous) === unnamedType(next)
  );
}

/** The type of documents that name none. */
function unnamedType({ default_type: defaultType, document_schemas: types }: TableSchema): string | undefined {
  const declared = Object.keys(types ?? {});
  return defaultType ?? (declared.length === 1 ? declared[0] : undefined);
}

/** Others may name its rows, and have been checked with it. */
function refuseOtherMode(requested: TableSchema, previous: TableSchema): void {
  if (isRelational(requested) === isRelational(previous)) return;
  const message = '"storage_mode" of a table cannot be changed: create another table and copy the documents';
  throw new ServiceError('invalid_schema', message);
}

/** Whether full text has to be rebuilt to serve `next`. */
export function needsRebuild(previous: TableSchema, next: TableSchema): boolean {
  return previous.version !== next.version;
}
