import { isObject, keywordsOf, omit, type SchemaObject, schemaTypes, typesOf, unsupported } from './schema-keywords.ts';

type Merge = (left: unknown, right: unknown) => unknown;

const least: Merge = (left, right) => Math.min(Number(left), Number(right));
const most: Merge = (left, right) => Math.max(Number(left), Number(right));

/** How two values of one keyword become the one that asks for both. */
const merges: Readonly<Record<string, Merge>> = {
  minLength: most,
  minItems: most,
  minimum: most,
  exclusiveMinimum: most,
  maxLength: least,
  maxItems: least,
  maximum: least,
  exclusiveMaximum: least,
  nullable: (left, right) => left === true && right === true,
  required: (left, right) => [...new Set([...listOf('required', left), ...listOf('required', right)])],
  enum: (left, right) => {
    const known = new Set(listOf('enum', right).map((value) => JSON.stringify(value)));
    return listOf('enum', left).filter((value) => known.has(JSON.stringify(value)));
  },
  items: both,
  additionalProperties: both,
};

/** One schema that asks for what both ask for. Throws `unsupported_response_format` where there is no such schema. */
export function mergeSchemas(left: unknown, right: unknown): unknown {
  if (left === true) return right;
  if (right === true) return left;
  if (!isObject(left) || !isObject(right)) throw unsupported('allOf', 'a schema has to be an object or true');
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    expectOpen(one, other);
    expectOneKindOfItems(one, other);
  }
  const merged: Record<string, unknown> = { ...left };
  for (const keyword of keywordsOf(right)) {
    const [a, b] = [left[keyword], right[keyword]];
    merged[keyword] = a === undefined || JSON.stringify(a) === JSON.stringify(b) ? b : mergeKeyword(keyword, a, b);
  }
  if (left.type === undefined || right.type === undefined) return merged;
  // Whether it may be null is among the types.
  return { ...omit(merged, 'nullable'), type: sharedTypes(left, right) };
}

function mergeKeyword(keyword: string, left: unknown, right: unknown): unknown {
  // Types are merged as a whole: a number may be an integer.
  if (keyword === 'type') return left;
  if (keyword === 'properties') return mergeProperties(left, right);
  const merge = Object.hasOwn(merges, keyword) ? merges[keyword] : undefined;
  if (merge === undefined) throw unsupported(keyword, 'cannot be enforced twice with different values');
  return merge(left, right);
}

function mergeProperties(left: unknown, right: unknown): SchemaObject {
  if (!isObject(left) || !isObject(right)) throw unsupported('properties', 'has to be an object');
  const merged = new Map(Object.entries(left));
  for (const [name, schema] of Object.entries(right)) {
    merged.set(name, Object.hasOwn(left, name) ? both(left[name], schema) : schema);
  }
  return Object.fromEntries(merged);
}

/** Merged when it is compiled, once references in it are known. */
function both(left: unknown, right: unknown): unknown {
  if (left === false || right === false) return false;
  return { allOf: [left, right] };
}

function sharedTypes(left: SchemaObject, right: SchemaObject): string[] {
  const [a, b] = [left, right].map(typesOf);
  const allows = (types: readonly string[] = [], type: string) =>
    types.includes(type) || (type === 'integer' && types.includes('number'));
  const shared = schemaTypes.filter((type) => allows(a, type) && allows(b, type));
  const types = shared.includes('number') ? shared.filter((type) => type !== 'integer') : shared;
  if (types.length === 0) throw unsupported('type', 'no value is of all types that are asked for');
  return [...types];
}

/** A schema that allows only its own members leaves no room for those of another. */
function expectOpen(one: SchemaObject, other: SchemaObject): void {
  if (one.additionalProperties === undefined || one.additionalProperties === true) return;
  const own = isObject(one.properties) ? Object.keys(one.properties) : [];
  const others = isObject(other.properties) ? Object.keys(other.properties) : [];
  const patterned = other.patternProperties !== undefined && one.patternProperties === undefined;
  if (patterned || others.some((name) => !own.includes(name))) {
    throw unsupported('additionalProperties', 'excludes members that another schema of "allOf" declares');
  }
}

/** Beside a list of the first items, `items` speaks of the others; where there is none, of all. */
function expectOneKindOfItems(one: SchemaObject, other: SchemaObject): void {
  const speaksOfAll = one.items !== undefined && one.items !== true && one.prefixItems === undefined;
  if (!speaksOfAll || other.prefixItems === undefined) return;
  throw unsupported('items', 'speaks of the "prefixItems" of another schema of "allOf", too');
}

function listOf(keyword: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unsupported(keyword, 'has to be an array');
}
