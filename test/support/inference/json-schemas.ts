const list = {
  type: 'object',
  properties: { value: { type: 'integer' }, next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } },
  required: ['value', 'next'],
  additionalProperties: false,
};
const shapes = {
  $defs: {
    circle: {
      type: 'object',
      properties: { kind: { const: 'circle' }, radius: { type: 'number', minimum: 0 } },
      required: ['kind', 'radius'],
    },
    square: {
      type: 'object',
      properties: { kind: { const: 'square' }, side: { type: 'number', exclusiveMinimum: 0, maximum: 10 } },
      required: ['kind', 'side'],
    },
  },
  type: 'array',
  items: { oneOf: [{ $ref: '#/$defs/circle' }, { $ref: '#/$defs/square' }] },
  minItems: 1,
  maxItems: 3,
};

/** Schemas that can be enforced: every keyword, and how libraries write them. */
export const jsonSchemas: readonly (object | boolean)[] = [
  true,
  {},
  { type: 'object' },
  {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'number' }, c: { type: 'boolean' } },
    required: ['b'],
  },
  {
    type: 'object',
    properties: { a: {}, ab: { type: 'null' }, 'q"\\\n': { type: 'null' } },
    required: ['ab'],
    additionalProperties: { type: 'integer' },
  },
  { type: 'object', properties: { only: { type: 'string' } }, additionalProperties: true },
  { type: 'object', additionalProperties: { type: 'array', items: { type: 'boolean' } } },
  { type: 'object', properties: {}, additionalProperties: false },
  { type: ['string', 'null', 'integer'], maxLength: 3, minimum: 5 },
  { type: 'string', nullable: true, minLength: 2 },
  { enum: ['a', 1, null, { x: [1, 'quote " and \\'] }] },
  { type: 'string', enum: ['a', 1, 'two\nlines'] },
  { const: 'only "this"' },
  { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false, minItems: 1 },
  { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'null' }, minItems: 2, maxItems: 4 },
  { type: 'array', prefixItems: [{ type: 'string' }, { type: 'null' }] },
  { type: 'array', items: { type: 'integer' }, maxItems: 0 },
  { type: 'array', minItems: 2 },
  { allOf: [{ type: 'integer', minimum: -5, maximum: 5 }], title: 'one of one' },
  { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { const: 7 }] },
  list,
  shapes,
  // As schema libraries write them.
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      age: { type: 'integer', minimum: -9_007_199_254_740_991, maximum: 9_007_199_254_740_991 },
      tags: { type: 'array', items: { type: 'string' }, uniqueItems: false },
      scores: { type: 'object', propertyNames: { type: 'string' }, additionalProperties: { type: 'number' } },
      home: { description: 'where', allOf: [{ $ref: '#/$defs/Place' }], default: null },
      away: { anyOf: [{ $ref: '#/$defs/Place' }, { type: 'null' }], title: 'Away', default: null },
    },
    required: ['age', 'tags', 'home'],
    additionalProperties: false,
    $defs: {
      Place: {
        title: 'Place',
        type: 'object',
        properties: { name: { title: 'Name', type: 'string' } },
        required: ['name'],
      },
    },
  },
  ...['date', 'time', 'date-time', 'duration', 'uuid', 'ipv4', 'ipv6', 'hostname', 'uri', 'email'].map((format) => ({
    type: 'string',
    format,
  })),
  ...[
    '^[a-z]+$',
    '^\\d{3}-\\d{2,4}$',
    'abc',
    '^a|b$',
    '^(?:foo|ba[rz])?!*$',
    '^[^"\\\\x]{2}$',
    '["\\\\]',
    '^\\S+@\\w+\\.\\w+$',
    '^.{0,3}$',
    '^[\\u00e0-\\u00ff]+\\t?$',
    '^a{2,}?$',
    '^\u{1f33b}+$',
  ].map((pattern) => ({ type: 'string', pattern })),
  {
    type: 'array',
    items: { type: 'object', properties: { a: { type: 'string', maxLength: 2_000 } } },
    maxItems: 2_000,
  },
  {
    type: 'array',
    items: { type: ['integer', 'string'], pattern: '^(\\d{1,40}(a{30}){30}){2,40}$' },
    minItems: 20,
    maxItems: 1_900,
  },
];
