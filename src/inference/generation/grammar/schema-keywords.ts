import { ServiceError } from '../../../protocol/service-error.ts';

export type SchemaObject = Readonly<Record<string, unknown>>;

/** Keywords that say nothing about which values are valid. */
const annotations: readonly string[] = [
  '$schema',
  '$id',
  '$comment',
  '$defs',
  'definitions',
  'title',
  'description',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  // Of OpenAPI: it says where to look first, and nothing that the alternatives do not say.
  'discriminator',
];

/** Keywords that are enforced, by the type that they speak of. */
export const typeKeywords = {
  object: ['properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames'],
  array: ['items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems'],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
} as const;

const enforced: readonly string[] = [
  'type',
  'nullable',
  'enum',
  'const',
  'anyOf',
  'oneOf',
  'allOf',
  '$ref',
  ...Object.values(typeKeywords).flat(),
];

export const schemaTypes = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const;
export type SchemaType = (typeof schemaTypes)[number];

/** A schema, keyword or bound that cannot be enforced. */
export class UnsupportedKeyword extends ServiceError {
  readonly keyword: string;

  constructor(keyword: string, message: string) {
    super('unsupported_response_format', message);
    this.keyword = keyword;
  }
}

export function unsupported(keyword: string, why: string): UnsupportedKeyword {
  return new UnsupportedKeyword(keyword, `JSON Schema keyword "${keyword}": ${why}`);
}

/** Keywords that cannot be enforced, with the values for which there is nothing to enforce. */
const harmless: Readonly<Record<string, (value: unknown) => boolean>> = {
  uniqueItems: (value) => value === false,
  minProperties: (value) => value === 0,
  propertyNames: (value) =>
    value === true || (isObject(value) && ['{}', '{"type":"string"}'].includes(JSON.stringify(value))),
};

/** Keywords of a schema that matter; refuses by name what is neither enforced nor an annotation. */
export function keywordsOf(schema: SchemaObject): string[] {
  return Object.keys(schema).filter((keyword) => {
    if (Object.hasOwn(harmless, keyword) && harmless[keyword]?.(schema[keyword])) return false;
    if (enforced.includes(keyword)) return schema[keyword] !== undefined;
    if (annotations.includes(keyword) || keyword.startsWith('x-')) return false;
    throw unsupported(keyword, 'cannot be enforced; docs/structured-output.md lists what can');
  });
}

/** The keywords beside a keyword that matter; only annotations where this is empty. */
export function keywordsBeside(schema: SchemaObject, keyword: string, allowed: readonly string[] = []): string[] {
  return keywordsOf(schema).filter((each) => each !== keyword && !allowed.includes(each));
}

/** Refuses keywords beside one that leaves no room for them. */
export function expectAlone(schema: SchemaObject, keyword: string, allowed: readonly string[] = []): void {
  const [other] = keywordsBeside(schema, keyword, allowed);
  if (other !== undefined) throw unsupported(other, `cannot be enforced beside "${keyword}"`);
}

/** The schema without some of its keywords. */
export function omit(schema: SchemaObject, ...keywords: readonly string[]): SchemaObject {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)));
}

export function isObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The types that a schema allows, guessed from its keywords where it names none; empty for any type. */
export function typesOf(schema: SchemaObject): SchemaType[] {
  const { type } = schema;
  const named = type === undefined ? inferredTypes(schema) : Array.isArray(type) ? type : [type];
  const types = named.map((each: unknown) => {
    const known = schemaTypes.find((candidate) => candidate === each);
    if (known === undefined) throw unsupported('type', `${JSON.stringify(each) ?? 'undefined'} is not a type`);
    return known;
  });
  if (Array.isArray(type) && types.length === 0) throw unsupported('type', 'names no type');
  const nullable = schema.nullable === true && types.length > 0 && !types.includes('null');
  return nullable ? [...types, 'null'] : types;
}

function inferredTypes(schema: SchemaObject): SchemaType[] {
  const found = Object.entries(typeKeywords).find(([, keywords]) =>
    keywords.some((keyword) => schema[keyword] !== undefined),
  );
  return found === undefined ? [] : [found[0] as SchemaType];
}

/** A whole number at or above zero, or nothing where the keyword is absent. */
export function countOf(schema: SchemaObject, keyword: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw unsupported(keyword, 'has to be a whole number at or above zero');
}

export function schemaList(schema: SchemaObject, keyword: string): readonly unknown[] {
  const value = schema[keyword];
  if (Array.isArray(value) && value.length > 0) return value;
  throw unsupported(keyword, 'has to be an array with at least one schema');
}
