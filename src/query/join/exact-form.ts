import { limits } from '../../config/limits.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { isObject, type Members } from '../nodes/query-members.ts';
import { anyOf, type PlanNode } from '../plan/plan-nodes.ts';
import { keyOfValue, type Scalar } from './joined-row.ts';

type Kind = 'string' | 'number' | 'boolean';

/** Types of fields in which an index holds values of a kind whole. What is of another kind than its field is in no index. */
const exactTypes: Record<Kind, readonly string[]> = {
  string: ['keyword', 'link'],
  number: ['numeric'],
  boolean: ['boolean'],
};
const exactJsonTypes: Record<Kind, readonly string[]> = {
  string: [],
  number: ['number', 'integer'],
  boolean: ['boolean'],
};

/** Longer strings have no column of their own in an index. */
const exactCharsMax = 64;

/**
 * The condition that finds every document with one of the values in the field, and maybe others; undefined where an
 * index does not find all of them.
 */
export function nodeOfValues(schema: TableSchema, field: string, values: readonly Scalar[]): PlanNode | undefined {
  if (field === '_id') return { kind: 'ids', ids: values.flatMap((value) => keyOfValue(value) ?? []), boost: 1 };
  const kinds = new Set(values.map((value) => typeof value as Kind));
  if (!values.every(isIndexed) || !hasExactForm(schema, field, kinds)) return undefined;
  return anyOf(
    values.map((value) =>
      typeof value === 'boolean'
        ? { kind: 'bool_field', field, value, boost: 1 }
        : { kind: 'term', field, value, boost: 1 },
    ),
  );
}

/** Dates are indexed as instants, long strings not as a whole. */
function isIndexed(value: Scalar): boolean {
  return typeof value !== 'string' || (value.length <= exactCharsMax && !/^\s*\d{4}-\d\d/.test(value));
}

/**
 * Whether an index finds every document that has a value of one of the kinds in the field, for all that the schema says. Where it
 * does not say enough the answer is no.
 */
function hasExactForm(schema: TableSchema, path: string, kinds: ReadonlySet<Kind>): boolean {
  if (schema.dynamic_templates !== undefined || isNeverIndexed(path)) return false;
  const schemas = Object.values(schema.document_schemas ?? {});
  return schemas.length > 0 && schemas.every(({ schema: root }) => isObject(root) && isExactIn(root, path, kinds));
}

/** As the engine has it, or more: `is_never_indexed` in `table_mapping.rs`. */
function isNeverIndexed(path: string): boolean {
  const isTooLong = Buffer.byteLength(path) > limits.fieldPathCharsMax;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: paths that have one are in no index.
  return isTooLong || path.startsWith('_') || /[\u0001\u0002]/.test(path);
}

function isExactIn(root: Members, path: string, kinds: ReadonlySet<Kind>): boolean {
  const [first = '', ...rest] = path.split('.');
  const properties = isObject(root.properties) ? root.properties : {};
  const property = Object.hasOwn(properties, first) ? properties[first] : undefined;
  if (property === undefined) return infersTypes(root) && !hasPatterns(root) && !isCombined(root);
  if (!isObject(property) || isCombined(property) || isCombined(root)) return false;
  return rest.length === 0 && [...kinds].every((kind) => isExact(property, kind));
}

function isExact(property: Members, kind: Kind): boolean {
  if (extension(property, 'index') === false) return false;
  const types = extension(property, 'types');
  if (types === undefined) return exactJsonTypes[kind].includes(String(property.type));
  return Array.isArray(types) && types.some((type) => exactTypes[kind].includes(String(type)));
}

function infersTypes(root: Members): boolean {
  const dynamic = extension(root, 'dynamic-indexing');
  return isObject(dynamic) && dynamic.mode === 'infer_types';
}

function hasPatterns({ patternProperties, additionalProperties }: Members): boolean {
  return patternProperties !== undefined || additionalProperties !== undefined;
}

/** Keywords for the same value stand elsewhere too. */
function isCombined({ allOf, anyOf, oneOf, $ref }: Members): boolean {
  return [allOf, anyOf, oneOf, $ref].some((each) => each !== undefined);
}

/** `x-service-index` is `index`. */
function extension(schema: Members, name: string): unknown {
  const member = Object.keys(schema).find((each) => each.startsWith('x-') && each.endsWith(`-${name}`));
  return member === undefined ? undefined : schema[member];
}
