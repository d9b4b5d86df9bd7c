import { limits } from '../../config/limits.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { checkTableName } from '../../protocol/names.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** The action on rows that name a deleted row. */
type OnDelete = 'restrict' | 'cascade' | 'set_null';

export interface RelationalColumn {
  name: string;
  type: 'string' | 'integer' | 'number' | 'boolean';
  /** Never null and never absent. */
  isRequired: boolean;
  /** No two rows of the table have the same value. */
  isUnique: boolean;
  /** Its values are keys of rows of that table. */
  references?: { table: string; onDelete: OnDelete };
}

const columnTypes = ['string', 'integer', 'number', 'boolean'] as const;
const onDeletes = ['restrict', 'cascade', 'set_null'] as const;
const columnName = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
const known = new WeakMap<TableSchema, readonly RelationalColumn[]>();

/**
 * Rows that follow a deleted one would leave their edges behind: a commit removes
 * those of the rows that it names. Fails with `invalid_request`.
 */
export function checkRelationalIndex({ type, name }: { type: string; name: string }): void {
  if (type !== 'graph') return;
  const message = `index "${name}": a relational table has no graph indexes: rows that are deleted or changed through "references" would keep their edges; use another table for the graph`;
  throw new ServiceError('invalid_request', message);
}

export function isRelational(schema: TableSchema): boolean {
  return (schema as { storage_mode?: unknown }).storage_mode === 'relational';
}

/**
 * The columns of a relational table; none of another one. Fails with `invalid_schema` where the schema says anything that
 * columns cannot be.
 */
export function relationalColumns(schema: TableSchema): readonly RelationalColumn[] {
  if (!isRelational(schema)) return [];
  const found = known.get(schema);
  if (found) return found;
  const columns = readColumns(schema);
  known.set(schema, columns);
  return columns;
}

function readColumns(schema: TableSchema): readonly RelationalColumn[] {
  const [declared, ...others] = Object.values(schema.document_schemas ?? {});
  if (!declared || others.length > 0) throw unusable('needs exactly one entry in "document_schemas": its columns');
  if (schema.enforce_types === false) throw unusable('checks every row: leave "enforce_types" out');
  if (schema.ttl ?? schema.ttl_field ?? schema.ttl_duration)
    throw unusable('has rows that do not expire, because other rows may name them: leave "ttl" out, and delete rows');
  const {
    properties = {},
    required = [],
    additionalProperties = false,
  } = (declared.schema ?? {}) as {
    properties?: Record<string, Record<string, unknown>>;
    required?: string[];
    additionalProperties?: unknown;
  };
  if (additionalProperties !== false)
    throw unusable('has no columns but those declared: leave "additionalProperties" out');
  const names = Object.keys(properties);
  if (names.length === 0 || names.length > limits.relationalColumnsMax) {
    throw unusable(`has 1 to ${limits.relationalColumnsMax} columns`);
  }
  if (new Set(names.map((name) => name.toLowerCase())).size < names.length) {
    throw unusable('has two columns whose names differ in case alone');
  }
  return names.map((name) => readColumn(name, properties[name] ?? {}, required.includes(name)));
}

function readColumn(name: string, property: Record<string, unknown>, isRequired: boolean): RelationalColumn {
  const where = `column ${JSON.stringify(name.slice(0, 64))}`;
  if (!columnName.test(name)) throw unusable(`${where}: a name has up to 63 letters, digits and "_", a letter first`);
  const types = [property.type].flat().filter((type) => type !== 'null');
  const type = columnTypes.find((each) => types.length === 1 && types[0] === each);
  if (!type) throw unusable(`${where} needs one "type" of ${columnTypes.join(', ')}`);
  const isNullable = property.nullable === true || [property.type].flat().includes('null');
  if (isRequired && isNullable) throw unusable(`${where} is required and may be null: choose one`);
  const { unique = false, references } = property;
  if (typeof unique !== 'boolean') throw unusable(`${where}: "unique" must be a boolean`);
  if (unique && type === 'number') throw unusable(`${where}: a number with a fraction cannot be unique`);
  const column = { name, type, isRequired, isUnique: unique };
  return references === undefined ? column : { ...column, references: readReference(where, column, references) };
}

function readReference(
  where: string,
  { type, isRequired }: Pick<RelationalColumn, 'type' | 'isRequired'>,
  given: unknown,
): { table: string; onDelete: OnDelete } {
  if (typeof given !== 'object' || given === null) {
    throw unusable(`${where}: "references" must be such as {"table": "authors", "on_delete": "restrict"}`);
  }
  const { table, on_delete: wanted = 'restrict', ...others } = given as Record<string, unknown>;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw unusable(`${where}: "references" has no member ${JSON.stringify(unknown.slice(0, 64))}`);
  if (typeof table !== 'string') throw unusable(`${where}: "references" needs a "table"`);
  const onDelete = onDeletes.find((each) => each === wanted);
  if (!onDelete) throw unusable(`${where}: "on_delete" must be one of ${onDeletes.join(', ')}`);
  if (type !== 'string') throw unusable(`${where} holds keys of "${table}" and must be a string`);
  if (onDelete === 'set_null' && isRequired) throw unusable(`${where} is required and cannot be set to null`);
  return { table: checkTableName(table), onDelete };
}

function unusable(message: string): ServiceError {
  return new ServiceError('invalid_schema', `a relational table ${message}`);
}
