/** Schemas of single values as Zod 4 writes them: a pattern beside each format. */
const zod = [
  {
    type: 'string',
    format: 'date-time',
    pattern:
      '^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))T(?:(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:Z))$',
  },
  {
    type: 'string',
    format: 'date-time',
    pattern:
      '^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))T(?:(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:Z|([+-](?:[01]\\d|2[0-3]):[0-5]\\d)))$',
  },
  {
    type: 'string',
    format: 'date-time',
    pattern:
      '^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))T(?:(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d\\.\\d{3}(?:Z))$',
  },
  {
    type: 'string',
    format: 'date',
    pattern:
      '^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))$',
  },
  {
    type: 'string',
    format: 'email',
    pattern:
      "^(?:[A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
  },
  {
    type: 'string',
    format: 'uuid',
    pattern:
      '^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$',
  },
  {
    type: 'string',
    format: 'uuid',
    pattern: '^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12})$',
  },
  {
    type: 'string',
    format: 'ipv4',
    pattern:
      '^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])$',
  },
  {
    type: 'string',
    format: 'ipv6',
    pattern:
      '^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})|:((:[0-9a-fA-F]{1,4}){1,7}|:))$',
  },
  { type: 'string', format: 'e164', pattern: '^\\+[1-9]\\d{6,14}$' },
  { type: 'string', format: 'nanoid', pattern: '^[a-zA-Z0-9_-]{21}$' },
  { type: 'string', format: 'ulid', pattern: '^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$' },
  { type: 'string', format: 'starts_with', pattern: '^a.*' },
  { type: 'string', minLength: 3, pattern: '^a+$' },
  { type: 'string', maxLength: 2048, format: 'uri' },
  {
    type: 'object',
    propertyNames: { type: 'string', enum: ['a', 'b'] },
    additionalProperties: { type: 'number' },
    required: ['a', 'b'],
  },
  { type: 'object', propertyNames: { type: 'string', enum: ['a', 'b'] }, additionalProperties: { type: 'number' } },
  {
    type: 'string',
    format: 'email',
    pattern:
      "^(?:[A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
    maxLength: 255,
  },
];

/** Longer than the engine repeats anything. */
const long = [
  { type: 'string', maxLength: 5_000 },
  { type: 'string', minLength: 1, maxLength: 100_000 },
];

/** As Pydantic writes them: lengths beside formats, and where to look first among alternatives. */
const pydantic = [
  { format: 'uuid4', type: 'string' },
  { format: 'uri', maxLength: 2083, minLength: 1, type: 'string' },
  { format: 'uri', minLength: 1, type: 'string' },
  { maxLength: 5, minLength: 1, pattern: '^a+$', type: 'string' },
  {
    type: 'object',
    propertyNames: { $ref: '#/$defs/Size' },
    additionalProperties: { type: 'integer' },
    $defs: { Size: { enum: ['s', 'm'], type: 'string' } },
  },
  { type: 'object', propertyNames: { const: 'only' }, additionalProperties: { type: 'integer' } },
  {
    discriminator: { mapping: { a: '#/$defs/A', b: '#/$defs/Bm' }, propertyName: 'k' },
    oneOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/Bm' }],
    $defs: {
      A: {
        properties: { k: { const: 'a', title: 'K', type: 'string' }, v: { title: 'V', type: 'integer' } },
        required: ['k', 'v'],
        title: 'A',
        type: 'object',
      },
      Bm: {
        properties: { k: { const: 'b', title: 'K', type: 'string' } },
        required: ['k'],
        title: 'Bm',
        type: 'object',
      },
    },
  },
];

/** How other libraries write what can be enforced. */
export const librarySchemas: readonly object[] = [...zod, ...long, ...pydantic];
