import { isObject, type SchemaObject, typesOf, unsupported } from './schema-keywords.ts';

/** The schemas that are looked at before any is compiled: objects and arrays, and places that are referred to. */
const refBounds = { parts: 16_384, refs: 512 } as const;

/** The target of `$ref`. Only places in the schema itself: nothing is ever fetched. */
export function resolveRef(root: unknown, ref: unknown): unknown {
  if (typeof ref !== 'string') throw unsupported('$ref', 'has to be a string');
  if (ref !== '#' && !ref.startsWith('#/')) {
    throw unsupported('$ref', `"${ref.slice(0, 80)}" lies outside of this schema; only "#" and "#/..." are followed`);
  }
  let at: unknown = root;
  for (const segment of ref.split('/').slice(1)) {
    const name = decoded(segment).replaceAll('~1', '/').replaceAll('~0', '~');
    at = (isObject(at) || Array.isArray(at)) && Object.hasOwn(at, name) ? (at as SchemaObject)[name] : undefined;
  }
  if (at === undefined) throw unsupported('$ref', `"${ref.slice(0, 80)}" leads nowhere`);
  return at;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Schemas that the value of this one has to satisfy as it is, with no JSON in between. */
function alternativesOf(schema: SchemaObject): readonly unknown[] {
  const lists = ['anyOf', 'oneOf', 'allOf'].map((keyword) => schema[keyword]);
  return lists.flatMap((list) => (Array.isArray(list) ? list : []));
}

/** Schemas without which there is no value of this one. */
function demandsOf(schema: SchemaObject): readonly unknown[] {
  const types = typesOf(schema);
  if (types.length !== 1) return [];
  if (types[0] === 'array') {
    const count = typeof schema.minItems === 'number' ? schema.minItems : 0;
    const prefix = Array.isArray(schema.prefixItems) ? schema.prefixItems.slice(0, count) : [];
    return count > prefix.length && schema.items !== undefined ? [...prefix, schema.items] : prefix;
  }
  if (types[0] !== 'object' || !isObject(schema.properties) || !Array.isArray(schema.required)) return [];
  const { properties } = schema;
  return schema.required.flatMap((name) => (typeof name === 'string' ? [properties[name]] : []));
}

/**
 * Refuses references that go round without end: those that never reach a value, and those that no finite value
 * satisfies.
 */
export function checkRefs(root: unknown): void {
  const refs = new Set<string>();
  collectRefs(root, root, refs, new Set());
  const checked = new Set<string>();
  for (const ref of refs) checkReachesValue(root, ref, [], checked);
  const finite = new Set<string>();
  for (let before = -1; before !== finite.size; ) {
    before = finite.size;
    for (const ref of refs) if (hasFinite(root, resolveRef(root, ref), finite)) finite.add(ref);
  }
  if (!hasFinite(root, root, finite)) throw unsupported('$ref', 'only an endless value would satisfy this cycle');
}

/** Values, and definitions, which may say what they like while nothing points to them. */
const notSchemas: readonly string[] = ['$defs', 'definitions', 'enum', 'const', 'default', 'example', 'examples'];

function collectRefs(root: unknown, schema: unknown, refs: Set<string>, seen: Set<unknown>): void {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return;
  seen.add(schema);
  if (seen.size > refBounds.parts) throw unsupported('schema', `has more than ${refBounds.parts} parts`);
  if (refs.size > refBounds.refs) throw unsupported('$ref', `more than ${refBounds.refs} places are referred to`);
  if (isObject(schema) && typeof schema.$ref === 'string' && !refs.has(schema.$ref)) {
    refs.add(schema.$ref);
    collectRefs(root, resolveRef(root, schema.$ref), refs, seen);
  }
  for (const [name, inside] of Object.entries(schema)) {
    if (name === 'properties' && isObject(inside)) {
      for (const each of Object.values(inside)) collectRefs(root, each, refs, seen);
    } else if (!notSchemas.includes(name)) collectRefs(root, inside, refs, seen);
  }
}

function checkReachesValue(root: unknown, ref: string, path: readonly string[], checked: Set<string>): void {
  if (path.includes(ref)) throw unsupported('$ref', `"${ref.slice(0, 80)}" leads back to itself`);
  if (checked.has(ref)) return;
  const walk = (schema: unknown): void => {
    if (!isObject(schema)) return;
    if (typeof schema.$ref === 'string') checkReachesValue(root, schema.$ref, [...path, ref], checked);
    for (const each of alternativesOf(schema)) walk(each);
  };
  walk(resolveRef(root, ref));
  checked.add(ref);
}

function hasFinite(root: unknown, schema: unknown, finite: ReadonlySet<string>): boolean {
  if (!isObject(schema)) return true;
  if (typeof schema.$ref === 'string') return finite.has(schema.$ref);
  const every = (list: unknown) => !Array.isArray(list) || list.every((each) => hasFinite(root, each, finite));
  const some = (list: unknown) => !Array.isArray(list) || list.some((each) => hasFinite(root, each, finite));
  if (!some(schema.anyOf) || !some(schema.oneOf) || !every(schema.allOf)) return false;
  return demandsOf(schema).every((each) => hasFinite(root, each, finite));
}
