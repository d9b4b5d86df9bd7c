import { isObject, type SchemaObject, type SchemaType, schemaTypes, typesOf } from './schema-keywords.ts';
import { resolveRef } from './schema-refs.ts';

/** References are followed this often in a row. */
const hopsMax = 16;
/** Members within members that are compared. */
const depthMax = 4;
const branchesMax = 128;

/** Whether no value can satisfy two of the schemas, as far as types and constant members show. */
export function areDisjoint(root: unknown, schemas: readonly unknown[]): boolean {
  if (schemas.length > branchesMax) return false;
  const resolved = schemas.map((schema) => followed(root, schema));
  return resolved.every((left, at) => resolved.slice(at + 1).every((right) => disjoint(root, left, right, 0)));
}

function followed(root: unknown, schema: unknown): SchemaObject | undefined {
  let at = schema;
  for (let hop = 0; hop < hopsMax && isObject(at) && at.$ref !== undefined; hop += 1) at = resolveRef(root, at.$ref);
  return isObject(at) && at.$ref === undefined ? at : undefined;
}

function disjoint(
  root: unknown,
  left: SchemaObject | undefined,
  right: SchemaObject | undefined,
  depth: number,
): boolean {
  if (left === undefined || right === undefined || depth > depthMax) return false;
  const [leftValues, rightValues] = [literalsOf(left), literalsOf(right)];
  if (leftValues !== undefined && rightValues !== undefined) {
    return new Set(leftValues).isDisjointFrom(new Set(rightValues));
  }
  const [leftTypes, rightTypes] = [jsonTypes(left), jsonTypes(right)];
  const shared = leftTypes.filter((type) => rightTypes.includes(type));
  if (shared.length === 0) return true;
  if (shared.length > 1 || shared[0] !== 'object') return false;
  const rightNames = new Set(requiredNames(right));
  return requiredNames(left).some((name) => {
    if (!rightNames.has(name)) return false;
    const [a, b] = [memberOf(root, left, name), memberOf(root, right, name)];
    return a !== undefined && b !== undefined && disjoint(root, a, b, depth + 1);
  });
}

/** Values as JSON text; nothing where the schema lists none. */
function literalsOf(schema: SchemaObject): string[] | undefined {
  const values = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : undefined;
  return values?.map((value) => JSON.stringify(value) ?? 'null');
}

/** A whole number is a number: both are one type here. */
function jsonTypes(schema: SchemaObject): SchemaType[] {
  const values = literalsOf(schema);
  if (values !== undefined) return [...new Set(values.map(typeOfText))];
  const types = schema.anyOf !== undefined || schema.oneOf !== undefined ? [] : typesOf(schema);
  const all = types.length > 0 ? types : schemaTypes.filter((type) => type !== 'integer');
  return [...new Set(all.map((type) => (type === 'integer' ? 'number' : type)))];
}

function typeOfText(json: string): SchemaType {
  const value: unknown = JSON.parse(json);
  if (value === null) return 'null';
  if (typeof value === 'object') return Array.isArray(value) ? 'array' : 'object';
  return typeof value === 'string' ? 'string' : typeof value === 'number' ? 'number' : 'boolean';
}

function requiredNames(schema: SchemaObject): string[] {
  return Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : [];
}

function memberOf(root: unknown, schema: SchemaObject, name: string): SchemaObject | undefined {
  return isObject(schema.properties) ? followed(root, schema.properties[name]) : undefined;
}
