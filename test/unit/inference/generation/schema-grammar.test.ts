import { describe, expect, test } from 'bun:test';
import { isIPv6 } from 'node:net';
import { Ajv2020 } from 'ajv/dist/2020';
import fc from 'fast-check';
import { runSeed, SeededRandom } from '../../../support/fault/seeded-random.ts';
import { Gbnf } from '../../../support/grammar/gbnf.ts';
import { jsonGrammar, schemaGrammar } from '../../../support/grammar/schema-grammar.ts';
import { jsonSchemas } from '../../../support/inference/json-schemas.ts';
import { librarySchemas } from '../../../support/inference/library-schemas.ts';

const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const validator = new Ajv2020({
  strict: false,
  // Hundredths are no exact binary fractions.
  multipleOfPrecision: 6,
  // A member that is called like a method of every object is no member.
  ownProperties: true,
  formats: {
    'date-time': (text: string) => iso.test(text) && !Number.isNaN(Date.parse(text)),
    date: (text: string) => new Date(`${text}T00:00:00Z`).toISOString().startsWith(text),
    time: (text: string) => !Number.isNaN(Date.parse(`2026-01-01T${text}`)),
    uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
    uuid4: /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i,
    ipv4: (text: string) =>
      text.split('.').length === 4 &&
      text.split('.').every((part) => String(Number(part)) === part && Number(part) < 256),
    ipv6: isIPv6,
    hostname: /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i,
    uri: (text: string) => URL.parse(text)?.protocol.startsWith('http') === true,
    duration: /^P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)$/,
    email: /^[\w+.-]+@[\w-]+(\.[\w-]+)+$/,
  },
});

/** Texts that the grammar of a schema produces; each has to be JSON that satisfies it. */
function expectValid(schema: object | boolean, samples: number, random: () => number): string[] {
  const grammar = new Gbnf(schemaGrammar(schema));
  const validate = validator.compile(schema);
  return Array.from({ length: samples }, () => {
    const text = grammar.sample(random);
    if (!validate(JSON.parse(text))) throw new Error(`${text} does not satisfy ${JSON.stringify(schema)}`);
    expect(grammar.accepts(text)).toBe(true);
    return text;
  });
}

function randomFrom(seed: number): () => number {
  const random = new SeededRandom(seed);
  return () => random.next();
}

describe('texts of a grammar satisfy the schema', () => {
  const seed = 42;
  test.each([...jsonSchemas, ...librarySchemas].map((schema) => [JSON.stringify(schema), schema] as const))(
    '%s',
    (_name, schema) => {
      // Some of the texts are long, and machines are busy.
      expectValid(schema, 60, randomFrom(seed));
    },
    120_000,
  );

  test('with random bounds of numbers, and no number within them is lost', () => {
    const bound = fc.option(fc.integer({ min: -1_200, max: 1_200 }), { nil: undefined });
    const exact = fc.record({
      type: fc.constantFrom('integer', 'number'),
      a: bound,
      b: bound,
      open: fc.boolean(),
      from: fc.boolean(),
      at: fc.integer({ min: -1_300, max: 1_300 }),
    });
    fc.assert(
      fc.property(exact, fc.integer(), ({ type, a, b, open, from, at }, randomSeed) => {
        const low = a === undefined || b === undefined ? a : Math.min(a, b);
        const high = a === undefined || b === undefined ? b : Math.max(a, b) + 2;
        const schema = {
          type,
          ...(low === undefined ? {} : { [from ? 'exclusiveMinimum' : 'minimum']: low }),
          ...(high === undefined ? {} : { [open ? 'exclusiveMaximum' : 'maximum']: high }),
        };
        expectValid(schema, 8, randomFrom(randomSeed));
        const validate = validator.compile(schema);
        const grammar = new Gbnf(schemaGrammar(schema));
        for (const value of [at, ...(type === 'number' ? [at + 0.25] : [])]) {
          expect([value, grammar.accepts(String(value))]).toEqual([value, validate(value)]);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('years begin with the first', () => {
    const grammar = new Gbnf(schemaGrammar({ type: 'string', format: 'date' }));
    const years = ['0000', '0001', '0079', '0100', '1000', '2026', '9999'];
    expect(years.filter((year) => !grammar.accepts(`"${year}-01-31"`))).toEqual(['0000']);
  });

  test('strings of thousands of characters have no more and no fewer than they may', () => {
    const text = (length: number) => JSON.stringify('x'.repeat(length));
    const accepts = (keywords: object, lengths: number[]) => {
      const grammar = new Gbnf(schemaGrammar({ type: 'string', ...keywords }));
      return lengths.filter((length) => grammar.accepts(text(length)));
    };
    const all = [0, 1_000, 1_001, 1_999, 2_000, 2_001, 2_082, 2_083, 2_084, 3_000, 4_500, 5_000, 5_001];
    const within = (min: number, max: number) => all.filter((length) => length >= min && length <= max);
    for (const maxLength of [2_083, 5_000, 3_000]) expect(accepts({ maxLength }, all)).toEqual(within(0, maxLength));
    expect(accepts({ minLength: 2_001, maxLength: 4_500 }, all)).toEqual(within(2_001, 4_500));
    expect(accepts({ minLength: 2_083 }, all)).toEqual(within(2_083, 10_000));
    expect(accepts({ minLength: 2_083, maxLength: 2_083 }, all)).toEqual([2_083]);
  });

  test('tuples of draft 7 are those of later drafts', () => {
    const items = [{ type: 'string' }, { type: 'number' }];
    const tuple = { type: 'array', items, additionalItems: false, minItems: 2, maxItems: 2 };
    expect(schemaGrammar(tuple)).toBe(schemaGrammar({ ...tuple, items: false, prefixItems: items }));
    const open = { type: 'array', items, additionalItems: { type: 'null' } };
    expect(schemaGrammar(open)).toBe(schemaGrammar({ type: 'array', prefixItems: items, items: { type: 'null' } }));
  });

  test('with random patterns and lengths, and no text of them is lost', () => {
    const seed = runSeed();
    console.log(`random patterns: seed ${seed} (SUNDEW_TEST_SEED repeats it)`);
    const { inside } = fc.letrec<{ inside: string }>((tie) => ({
      inside: fc.oneof(
        { maxDepth: 3, depthSize: 'small' },
        fc.constantFrom('a', 'b', '[ab]', '.', '"'),
        fc.array(tie('inside'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
        fc.tuple(tie('inside'), tie('inside')).map((ways) => `(?:${ways.join('|')})`),
        fc
          .tuple(tie('inside'), fc.constantFrom('*', '+', '?', '{2}', '{1,3}'))
          .map(([of, times]) => `(?:${of})${times}`),
      ),
    }));
    const given = fc.record({
      pattern: fc.tuple(fc.constantFrom('^', ''), inside, fc.constantFrom('$', '')).map((parts) => parts.join('')),
      minLength: fc.nat(3),
      maxLength: fc.integer({ min: 3, max: 6 }),
      texts: fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '"', 'c'), maxLength: 7 }), { maxLength: 20 }),
    });
    fc.assert(
      fc.property(given, ({ texts, ...keywords }) => {
        const schema = { type: 'string', ...keywords };
        const valid = validator.compile(schema);
        let grammar: Gbnf;
        try {
          grammar = new Gbnf(schemaGrammar(schema));
        } catch (error) {
          expect(String(error)).toContain('leaves no text beside');
          expect(texts.filter((text) => valid(text))).toEqual([]);
          return;
        }
        for (const text of texts) expect([text, grammar.accepts(JSON.stringify(text))]).toEqual([text, valid(text)]);
      }),
      { numRuns: 300, seed },
    );
  });

  test('with random schemas', () => {
    const seed = runSeed();
    console.log(`random schemas: seed ${seed} (SUNDEW_TEST_SEED repeats it)`);
    const leaf = fc.oneof(
      fc.record({ type: fc.constant('string'), minLength: fc.nat(3), maxLength: fc.integer({ min: 3, max: 9 }) }),
      fc.record({ type: fc.constantFrom('boolean', 'null', 'integer', 'number') }),
      fc.record({
        enum: fc.array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.constant(null)), {
          minLength: 1,
          maxLength: 4,
        }),
      }),
    );
    const { schema } = fc.letrec<{ schema: object }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4, depthSize: 'small' },
        leaf,
        fc.record({
          type: fc.constant('array'),
          items: tie('schema'),
          minItems: fc.nat(2),
          maxItems: fc.integer({ min: 2, max: 4 }),
        }),
        fc
          .record({
            properties: fc.dictionary(
              // Ajv takes a member called `__proto__` for undeclared, also where it is declared.
              fc.oneof(
                fc.constantFrom('a', 'ab', 'b'),
                fc.string({ minLength: 1 }).filter((name) => name !== '__proto__'),
              ),
              tie('schema'),
              { maxKeys: 4 },
            ),
            further: fc.constantFrom(undefined, true, false),
            pick: fc.nat(15),
          })
          .map(({ properties, further, pick }) => ({
            type: 'object',
            properties,
            required: Object.keys(properties).filter((_name, at) => (pick >> at) % 2 === 1),
            ...(further === undefined ? {} : { additionalProperties: further }),
          })),
        fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      ),
    }));
    fc.assert(
      fc.property(schema, fc.integer(), (each, randomSeed) => {
        expectValid(each, 4, randomFrom(randomSeed));
      }),
      { seed, numRuns: 120 },
    );
  });

  test('any JSON object is accepted, nothing else', () => {
    const grammar = new Gbnf(jsonGrammar());
    for (const text of ['{}', '{"a": [1, -2.5e-3, {"b": null}], "c": "\\u00e9\\n\\\\"}', '{\n  "a": true\n}']) {
      expect([text, grammar.accepts(text)]).toEqual([text, true]);
    }
    for (const text of ['', '[]', '{"a":01}', "{'a':1}", '{"a":1,}', '{"a":"\n"}', '{"a":1} x', '{"a":"\\ud83d"}']) {
      expect([text, grammar.accepts(text)]).toEqual([text, false]);
    }
  });

  test('white space stands where people put it, and not without end', () => {
    const grammar = new Gbnf(jsonGrammar());
    const indented = (depth: number) => `{\n${' '.repeat(depth)}"a": [\n${' '.repeat(depth)}1,\n2 ] }`;
    expect([0, 4, 16, 17].map((depth) => grammar.accepts(indented(depth)))).toEqual([true, true, true, false]);
    const wasteful = ['{"a" :1}', '{"a":\n1}', '{"a":1 ,"b":2}', '{  "a":1}', '{\n\n"a":1}'];
    expect(wasteful.map((text) => grammar.accepts(text))).toEqual(wasteful.map(() => false));
  });
});

describe('what a grammar accepts', () => {
  const accepts = (schema: object, text: string) => new Gbnf(schemaGrammar(schema)).accepts(text);

  test('members come in the order of the schema, and undeclared ones only where they are allowed', () => {
    const schema = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['b'] };
    expect(accepts(schema, '{"a": 1, "b": 2}')).toBe(true);
    expect(accepts(schema, '{"b":2}')).toBe(true);
    expect(accepts(schema, '{"b":2,"a":1}')).toBe(false);
    expect(accepts(schema, '{"a":1}')).toBe(false);
    expect(accepts(schema, '{"b":2,"c":3}')).toBe(false);
    const open = { ...schema, additionalProperties: { type: 'null' } };
    expect(accepts(open, '{"b":2,"bc":null,"":null}')).toBe(true);
    expect(accepts(open, '{"b":2,"b":null}')).toBe(false);
    expect(accepts(open, '{"b":2,"\\u0061":null}')).toBe(false);
  });

  test('\\S in a pattern lets through no white space, also none beyond ASCII', () => {
    const schema = { type: 'string', pattern: '^\\S+$' };
    expect(accepts(schema, '"日本"')).toBe(true);
    for (const space of ['\u3000', '\u2003', '\u1680', '\ufeff']) expect(accepts(schema, `"日${space}本"`)).toBe(false);
  });

  test('white space is bounded', () => {
    expect(accepts({ type: 'array', items: { type: 'null' } }, '[\n  null,\n  null\n]')).toBe(true);
    expect(accepts({ type: 'array', items: { type: 'null' } }, '[   null]')).toBe(false);
  });
});

describe('what cannot be enforced is refused by name', () => {
  test('M12: whatever is sent as a schema becomes a grammar or a refusal', () => {
    const words = [
      'type',
      'properties',
      'required',
      'items',
      'prefixItems',
      'minItems',
      'maxItems',
      'enum',
      'const',
      'anyOf',
      'oneOf',
      'allOf',
      '$ref',
      '$defs',
      'pattern',
      'format',
      'minLength',
      'minimum',
      'additionalProperties',
      'nullable',
      'a',
    ] as const;
    const values = fc.oneof(
      fc.constantFrom<unknown>(
        'object',
        'array',
        'string',
        'integer',
        '#',
        '#/$defs/a',
        '#/properties/a',
        'a',
        true,
        null,
        2,
        -1,
        0.5,
      ),
      fc.constantFrom(['a'], ['string', 'null'], []),
    );
    const { schema } = fc.letrec((tie) => ({
      schema: fc.oneof(
        { maxDepth: 5 },
        values,
        fc.dictionary(fc.constantFrom(...words), tie('schema'), { maxKeys: 4 }),
        fc.array(tie('schema'), { maxLength: 3 }),
      ),
    }));
    fc.assert(
      fc.property(schema, (each) => {
        try {
          new Gbnf(schemaGrammar(JSON.parse(JSON.stringify(each))));
        } catch (error) {
          expect(error).toMatchObject({ code: 'unsupported_response_format' });
        }
      }),
      { numRuns: 3_000 },
    );
  });

  const refusals: readonly (readonly [schema: unknown, word: string])[] = [
    [JSON.parse('{"__proto__": 1}'), '__proto__'],
    [{ constructor: 1 }, 'constructor'],
    [false, 'schema'],
    ['string', 'schema'],
    [{ type: 'text' }, 'type'],
    [{ not: { type: 'null' } }, 'not'],
    [{ type: 'array', uniqueItems: true }, 'uniqueItems'],
    [{ type: 'object', patternProperties: { a: {}, b: {} } }, 'patternProperties'],
    [{ type: 'object', properties: { ab: {} }, patternProperties: { '^a': {} } }, 'patternProperties'],
    [{ type: 'number', multipleOf: 0.3 }, 'multipleOf'],
    [{ type: 'number', multipleOf: 0.5 }, 'multipleOf'],
    [{ type: 'integer', multipleOf: 1.5, minimum: 0, maximum: 6 }, 'multipleOf'],
    [
      { type: 'object', properties: { ['a'.repeat(60_000)]: { type: 'string' } }, additionalProperties: true },
      'a name of "properties" is too long',
    ],
    [{ type: 'integer', multipleOf: 1_000 }, 'multipleOf'],
    [{ type: 'integer', multipleOf: 7, minimum: 3 }, 'multipleOf'],
    [{ type: 'integer', multipleOf: 7, minimum: 1, maximum: 6 }, 'multipleOf'],
    [{ type: 'integer', multipleOf: 0 }, 'multipleOf'],
    [{ allOf: [{ type: 'string' }, { type: 'integer' }] }, 'type'],
    [{ allOf: [{ pattern: '^a' }, { pattern: 'b$' }] }, 'pattern'],
    [
      { allOf: [{ type: 'object', properties: { a: {} }, additionalProperties: false }, { properties: { b: {} } }] },
      'additionalProperties',
    ],
    [
      {
        allOf: [
          { type: 'object', properties: { a: {} }, additionalProperties: false },
          { patternProperties: { '^x': {} } },
        ],
      },
      'additionalProperties',
    ],
    [{ allOf: [{ type: 'array', prefixItems: [{ type: 'string' }] }, { items: { type: 'integer' } }] }, 'items'],
    [
      {
        allOf: [
          { type: 'array', items: false },
          { type: 'array', prefixItems: [{ type: 'string' }] },
        ],
      },
      'items',
    ],
    [{ type: 'number', minimum: 0.5 }, 'minimum'],
    [{ type: 'integer', minimum: 3, maximum: 2 }, 'minimum'],
    [{ type: 'string', minLength: 3, maxLength: 2 }, 'minLength'],
    [{ type: 'string', maxLength: 1_000_001 }, 'maxLength'],
    [{ type: 'string', format: 'iri' }, 'format'],
    [{ type: 'string', pattern: '^a', maxLength: 2_000 }, '"maxLength": cannot be enforced beside "pattern"'],
    [{ type: 'string', pattern: '^a$', minLength: 2 }, '"minLength": leaves no text beside "pattern"'],
    [{ type: 'string', pattern: '^a', format: 'date' }, '"format": leaves no text beside "pattern"'],
    [{ type: 'string', format: 'date', maxLength: 9 }, '"maxLength": leaves no text beside "format"'],
    [{ type: 'string', pattern: '^(a|b)*a(a|b){12}$', minLength: 1, maxLength: 900 }, 'beside "pattern"'],
    [{ type: 'string', pattern: '(?=a)' }, 'pattern'],
    [{ type: 'string', pattern: '(a)\\1' }, 'pattern'],
    [{ type: 'string', pattern: '\\bword' }, 'pattern'],
    [{ type: 'string', pattern: '(' }, 'pattern'],
    [{ type: 'string', pattern: 'a{3000}' }, 'pattern'],
    [{ type: 'array', items: [{ type: 'null' }], prefixItems: [{ type: 'null' }] }, 'items'],
    [{ type: 'object', propertyNames: { pattern: '^a' } }, 'propertyNames'],
    [{ type: 'object', propertyNames: { enum: ['a'] }, properties: { b: {} } }, 'propertyNames'],
    [{ type: 'object', propertyNames: { enum: ['a'] }, patternProperties: { a: {} } }, 'propertyNames'],
    [{ type: 'object', properties: {}, required: ['gone'] }, 'required'],
    [{ oneOf: [{ type: 'integer' }, { type: 'number' }] }, 'oneOf'],
    [{ oneOf: [{ type: 'object' }, { type: 'object', properties: { a: {} } }] }, 'oneOf'],
    [{ enum: ['a'], minLength: 1 }, 'minLength'],
    [{ enum: [] }, 'enum'],
    [{ enum: Array.from({ length: 3_000 }, (_, at) => at) }, 'enum'],
    [{ enum: ['x'.repeat(70_000)] }, 'enum'],
    [{ $ref: 'https://example.com/schema.json' }, '$ref'],
    [{ $ref: 'other.json#/a' }, '$ref'],
    [{ $ref: '#anchor' }, '$ref'],
    [{ $ref: '#/$defs/gone' }, '$ref'],
    [{ $ref: '#' }, '$ref'],
    [
      {
        $defs: { a: { $ref: '#/$defs/b' }, b: { anyOf: [{ type: 'null' }, { $ref: '#/$defs/a' }] } },
        $ref: '#/$defs/a',
      },
      '$ref',
    ],
    [{ type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }, '$ref'],
    [{ type: 'array', items: { $ref: '#' }, minItems: 1 }, '$ref'],
  ];
  test.each(refusals.map(([schema, word]) => [JSON.stringify(schema).slice(0, 80), schema, word] as const))(
    '%s',
    (_name, schema, word) => {
      expect(() => schemaGrammar(schema)).toThrow(new RegExp(word.replace('$', '\\$')));
      expect(() => schemaGrammar(schema)).toThrow(expect.objectContaining({ code: 'unsupported_response_format' }));
    },
  );

  test('and null is a value where all schemas of "allOf" take it, and not where one does', () => {
    const accepts = (...allOf: object[]) => new Gbnf(schemaGrammar({ allOf })).accepts('null');
    const nullable = { type: 'string', nullable: true };
    expect([accepts(nullable, { type: 'string' }), accepts({ type: 'string' }, nullable)]).toEqual([false, false]);
    expect([accepts(nullable, nullable), accepts(nullable, { type: ['string', 'null'] })]).toEqual([true, true]);
    // As schemas of OpenAPI refer to what may be missing.
    expect(accepts({ type: 'string' }, { nullable: true })).toBe(true);
  });

  test('and a reference to it stays refused where the schema around it is tried again', () => {
    const closed = { type: 'object', properties: { a: {} }, additionalProperties: false };
    const schema = {
      type: 'object',
      properties: { x: { $ref: '#/$defs/both' } },
      additionalProperties: false,
      $defs: { both: { allOf: [closed, { type: 'object', properties: { b: {} } }] } },
    };
    expect(() => schemaGrammar(schema, false)).toThrow(
      expect.objectContaining({ code: 'unsupported_response_format' }),
    );
  });

  test('and is left out where nobody asked for strictness; what else the schema says is enforced', () => {
    const accepts = (schema: object, text: string) => new Gbnf(schemaGrammar(schema, false)).accepts(text);
    const schema = {
      type: 'object',
      properties: {
        tags: { type: 'array', items: { type: 'string', format: 'iri', minLength: 1 }, uniqueItems: true },
        name: { type: 'string', pattern: '(?=a)', not: { const: 'x' } },
        size: { oneOf: [{ type: 'integer' }, { type: 'number', minimum: 0.5 }] },
      },
      required: ['tags', 'name', 'size'],
      minProperties: 2,
      dependentRequired: { name: ['tags'] },
    };
    expect(accepts(schema, '{"tags":["a","a"],"name":"q","size":0.25}')).toBe(true);
    expect(accepts(schema, '{"tags":[""],"name":"q","size":1}')).toBe(false);
    expect(accepts(schema, '{"tags":[],"name":1,"size":1}')).toBe(false);
    expect(accepts(schema, '{"tags":[],"name":"q"}')).toBe(false);
    // A value that is no schema, or a reference that leads nowhere, is always refused.
    for (const each of [{ $ref: '#/gone' }, 'text', { type: 'text' }]) {
      expect(() => schemaGrammar({ type: 'array', items: each }, false)).toThrow(
        expect.objectContaining({ code: 'unsupported_response_format' }),
      );
    }
  });

  test('M12: schemas that would cost too much: deep, wide, and with many rules', () => {
    let deep: object = { type: 'null' };
    for (let level = 0; level < 40; level += 1) deep = { type: 'array', items: deep };
    const wide = {
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`m${at}`, {}])),
    };
    const repeats = { type: 'string', pattern: '(a{2000}){2001}' };
    const deepPattern = { type: 'string', pattern: `${'('.repeat(20)}a${')'.repeat(20)}` };
    for (const schema of [deep, wide, deepPattern, repeats]) {
      expect(() => schemaGrammar(schema)).toThrow(expect.objectContaining({ code: 'unsupported_response_format' }));
    }
  });

  test('M12: schemas that would take for ever to look at', () => {
    const chain = (length: number, step: (next: object) => object) =>
      Object.fromEntries(
        Array.from({ length }, (_, at) => [
          `d${at}`,
          at === length - 1 ? { type: 'null' } : step({ $ref: `#/$defs/d${at + 1}` }),
        ]),
      );
    const twice = { $defs: chain(30, (next) => ({ anyOf: [next, next] })), $ref: '#/$defs/d0' };
    expect(schemaGrammar(twice)).toContain('null');
    const long = { $defs: chain(2_000, (next) => ({ anyOf: [next] })), $ref: '#/$defs/d0' };
    const self = (name: string) => ({
      type: 'object',
      properties: { x: { $ref: `#/$defs/${name}` } },
      required: ['x'],
    });
    const alike = {
      $defs: { a: self('a'), b: self('b') },
      type: 'array',
      items: { oneOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/b' }] },
    };
    const lists = {
      oneOf: ['a', 'b'].map((name) => ({ enum: Array.from({ length: 200_000 }, (_, at) => name + at) })),
    };
    const huge = { enum: Array.from({ length: 1_000_000 }, (_, at) => at) };
    const many = { anyOf: Array.from({ length: 100_000 }, () => ({ type: 'null' })) };
    for (const schema of [long, alike, lists, huge, many]) {
      expect(() => schemaGrammar(schema)).toThrow(expect.objectContaining({ code: 'unsupported_response_format' }));
    }
  });

  test('a definition that nothing uses may say what it likes', () => {
    expect(schemaGrammar({ type: 'null', $defs: { never: { not: {} } } })).toContain('null');
  });
});
