import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { limits } from '../../../src/config/limits.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { type PlanContext, planFilter, planQuery, queryTable } from '../../../src/query/plan/query-plan.ts';
import { readQueryRequests, splitQueryRequests } from '../../../src/query/request/query-requests.ts';
import { showPlan } from '../../support/show-plan.ts';

const context: PlanContext = { name: 'recipes', nowMs: 1_000_000 };

function failure(act: () => unknown): ServiceError {
  try {
    act();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('did not fail');
}

/** Query, filters and exclusions of a plan on one line each. */
function criteria(request: Record<string, unknown>) {
  const { plan } = planQuery(request, context);
  return {
    ...(plan.query ? { query: showPlan(plan.query) } : {}),
    filter: plan.filter.map(showPlan),
    exclusion: plan.exclusion.map(showPlan),
  };
}

describe('planning a query', () => {
  test('an empty request is the first ten documents, counted exactly', () => {
    expect(planQuery({}, context)).toMatchObject({
      table: 'recipes',
      profile: false,
      plan: {
        filter: [],
        exclusion: [],
        limit: 10,
        offset: 0,
        sort: [],
        count_only: false,
        exact_total: true,
        total_exact_up_to: 1_000,
      },
    });
  });

  test('a plan has no members that are undefined', () => {
    const { plan } = planQuery({ full_text_search: { query: 'a' } }, { ...context, ttlDurationMs: undefined });
    expect(Object.values(plan)).not.toContain(undefined);
    expect(JSON.parse(JSON.stringify(plan))).toStrictEqual(plan);
  });

  test('what scores and what does not is kept apart', () => {
    const a = { match: 'a' };
    const b = { match: 'b' };
    expect(criteria({ full_text_search: a, filter_query: b, exclusion_query: { query: 'c d' } })).toEqual({
      query: 'a|or',
      filter: ['b|or'],
      exclusion: ['(+c +d)'],
    });
    expect(criteria({ query: { bool: { must: [a], filter: [b], must_not: [{ match: 'c' }] } } })).toEqual({
      query: 'a|or',
      filter: ['b|or'],
      exclusion: ['c|or'],
    });
    expect(criteria({ query: { bool: { filter: [a, b] } } })).toEqual({ filter: ['a|or', 'b|or'], exclusion: [] });
    expect(criteria({ full_text_search: { query: 'NOT a' } })).toEqual({ filter: [], exclusion: ['a'] });
    expect(criteria({ full_text_search: { query: 'a -b' } })).toEqual({ query: 'a', filter: [], exclusion: ['b'] });
    expect(criteria({ query: { bool: { must: [a], should: [b], filter: [{ term: { f: 1 } }] } } })).toEqual({
      query: '(+a|or ~b|or/0)',
      filter: ['f:=1'],
      exclusion: [],
    });
    expect(criteria({ query: { bool: { should: [a], filter: [b] } } })).toEqual({
      query: '(~a|or/0 #b|or)',
      filter: [],
      exclusion: [],
    });
    expect(criteria({ query: { bool: { must: [a], boost: 2 } } }).query).toBe('(+a|or)^2');
    expect(criteria({ full_text_search: { match_all: {} } })).toEqual({ filter: [], exclusion: [] });
    expect(criteria({ full_text_search: { query: '' } })).toEqual({ filter: [], exclusion: [] });
    expect(criteria({ filter_query: [a, b] })).toEqual({ filter: ['(+a|or +b|or)'], exclusion: [] });
  });

  test('a query that scores may stop counting, one that only filters or counts may not', () => {
    expect(planQuery({ full_text_search: { query: 'a' } }, context).plan.exact_total).toBe(false);
    expect(planQuery({ full_text_search: { query: 'a' }, count: true }, context).plan).toMatchObject({
      count_only: true,
      exact_total: true,
      limit: 0,
    });
    expect(planQuery({ filter_query: { query: 'a' } }, context).plan.exact_total).toBe(true);
    expect(planQuery({ full_text_search: { match_all: {} } }, context).plan.exact_total).toBe(true);
  });

  test('expired documents are hidden from the moment that they are as old as the TTL', () => {
    expect(planQuery({}, context).plan.expired_at_or_before_ms).toBeUndefined();
    expect(planQuery({}, { ...context, ttlDurationMs: 400_000 }).plan.expired_at_or_before_ms).toBe(600_000);
    expect(planFilter({ match: 'a' }, { nowMs: 1_000, ttlDurationMs: 400 })?.expired_at_or_before_ms).toBe(600);
  });

  test('page, order, prefix and projection', () => {
    const { plan, projection, profile } = planQuery(
      {
        table: 'recipes',
        limit: 0,
        offset: 10_000,
        filter_prefix: 'soup:',
        order_by: [{ field: 'year', desc: true }, { field: '_id' }],
        fields: ['title'],
        profile: true,
      },
      context,
    );
    expect(plan).toMatchObject({
      limit: 0,
      offset: 10_000,
      key_prefix: 'soup:',
      sort: [
        { field: 'year', desc: true },
        { field: '_id', desc: false },
      ],
    });
    expect(profile).toBe(true);
    expect(projection.isWhole).toBe(false);
    expect(projection.apply('{"title":"Leek","n":1}')).toBe('{"title":"Leek"}');
    expect(planQuery({ filter_prefix: '' }, context).plan.key_prefix).toBeUndefined();
  });

  test('null is the same as absent', () => {
    const request = { full_text_search: null, semantic_search: null, limit: null, fields: null, order_by: null };
    expect(planQuery(request, context).plan).toStrictEqual(planQuery({}, context).plan);
  });

  const invalid: [request: unknown, words: string][] = [
    [[], 'JSON object'],
    ['a', 'JSON object'],
    [{ limt: 5 }, 'unknown member "limt". Did you mean "limit"?'],
    [{ filterQuery: {} }, 'Did you mean "filter_query"?'],
    [{ zzz: 1 }, 'unknown member "zzz".'],
    [{ limit: -1 }, '"limit" must be an integer from 0 to 10000'],
    [{ limit: 1.5 }, '"limit"'],
    [{ limit: 1e9 }, '"limit"'],
    [{ limit: '10' }, '"limit"'],
    [{ offset: -1 }, '"offset"'],
    [{ limit: 10, offset: 9_991 }, 'page further by cursor'],
    [{ count: 1 }, '"count"'],
    [{ profile: 'yes' }, '"profile"'],
    [{ fields: 'title' }, 'array of strings'],
    [{ fields: [1] }, 'array of strings'],
    [{ filter_prefix: 5 }, '"filter_prefix"'],
    [{ order_by: 'year' }, 'order_by'],
    [{ order_by: ['year'] }, 'order_by[0]'],
    [{ order_by: [{ field: 'year', dsc: true }] }, 'Did you mean "desc"?'],
    [{ order_by: [{ desc: true }] }, 'needs a "field"'],
    [{ order_by: [{ field: 'year', desc: 'asc' }] }, '"desc"'],
    [{ full_text_search: 'soup' }, 'full_text_search: must be a query node'],
    [{ full_text_search: { match: 'a' }, query: { match: 'b' } }, 'not both'],
    [{ filter_query: { conjuncts: [{ mtch: 'a' }] } }, 'filter_query.conjuncts[0]'],
    [{ table: 'others' }, 'the address says "recipes"'],
    [{ table: 5 }, '"table" must be a string'],
  ];
  for (const [request, words] of invalid) {
    test(`${JSON.stringify(request)} is refused: ${words}`, () => {
      const error = failure(() => planQuery(request, context));
      expect(error.code).toBe('invalid_query');
      expect(error.message).toContain(words);
    });
  }

  for (const name of [...['analyses', 'tree_search'], 'document_renderer']) {
    test(`${name} is known and not built`, () => {
      const error = failure(() => planQuery({ [name]: {} }, context));
      expect(error.code).toBe('not_implemented');
      expect(error.message).toContain(`"${name}"`);
    });
  }

  test('too many clauses, sort keys, fields or levels are refused by their bound', () => {
    const words = { query: 'a '.repeat(600) };
    let deep = 'a';
    for (let level = 0; level < 60; level += 1) deep = level % 2 ? `(${deep}) OR b` : `(${deep}) AND b`;
    for (const request of [
      { full_text_search: words, filter_query: words },
      { order_by: Array(9).fill({ field: 'f' }) },
      { fields: Array(257).fill('f') },
      { full_text_search: { query: `x OR NOT (${deep})` } },
    ]) {
      expect(failure(() => planQuery(request, context)).code).toBe('limit_exceeded');
    }
    expect(() => planQuery({ full_text_search: { query: deep } }, context)).not.toThrow();
  });

  test('a filter that is referred to counts as often as it is, and so does a list without nodes', () => {
    const planned = (filter: unknown, references: number) => {
      const conjuncts = Array(references).fill({ ref: 'a' });
      return () => planQuery({ with: { a: filter }, filter_query: { conjuncts } }, context);
    };
    const ids = { ids: Array.from({ length: 10_000 }, (_, at) => `document:${at}`) };
    expect(planned(ids, 5)).not.toThrow();
    expect(failure(planned(ids, 10)).code).toBe('limit_exceeded');
    expect(failure(planned(Array(2_000).fill([]), 1)).code).toBe('limit_exceeded');
  });

  test('no plan nests so deeply that a JSON reader with 128 levels refuses it', () => {
    let deep = 'a';
    for (let level = 0; level < 60; level += 1) deep = level % 2 ? `(${deep}) OR b` : `(${deep}) AND b`;
    const depthOf = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;
    expect(depthOf(planQuery({ filter_query: { query: deep } }, context).plan)).toBeLessThan(128);
  });

  test('the table is that of the path, or the one named', () => {
    expect(queryTable({}, 'a')).toBe('a');
    expect(queryTable({ table: 'a' }, 'a')).toBe('a');
    expect(queryTable({ table: 'a' })).toBe('a');
    expect(failure(() => queryTable({ table: 'b' }, 'a')).code).toBe('invalid_query');
    expect(failure(() => queryTable({})).message).toContain('"table" must name a table');
    expect(failure(() => queryTable({ table: '' })).code).toBe('invalid_query');
  });
});

describe('several queries in one body', () => {
  const bodies: [body: string, requests: string[]][] = [
    ['{"a":1}', ['{"a":1}']],
    ['{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']],
    ['{"a":1}{"b":2}', ['{"a":1}', '{"b":2}']],
    ['  {"a":"}{"} \r\n\r\n {"b":"\\"}"} ', ['{"a":"}{"}', '{"b":"\\"}"}']],
    ['[{"a":1},{"b":[1,{"c":"]"}]}]', ['{"a":1}', '{"b":[1,{"c":"]"}]}']],
    [' [ {"a":1} , {"b":2} ] ', ['{"a":1}', '{"b":2}']],
  ];
  for (const [body, requests] of bodies) {
    test(`${JSON.stringify(body)}`, () => expect(splitQueryRequests(body)).toEqual(requests));
  }

  for (const body of [
    '{"a":1',
    '{"a":"x',
    '{"a":1},{"b":2}',
    '[{"a":1}',
    '[{"a":1},]',
    '[{"a":1}{"b":2}]',
    '[{}] {}',
    'nul',
    '[',
  ]) {
    test(`${body} is not a list of queries`, () => {
      expect(failure(() => splitQueryRequests(body)).code).toBe('invalid_json');
    });
  }

  test('JSON of another kind is told from what is no JSON', () => {
    for (const body of ['5', '-1.5', '[1]', 'null', 'true', '"a"']) {
      expect(failure(() => splitQueryRequests(body)).code).toBe('invalid_request');
    }
  });

  test('no query at all is refused', () => {
    for (const body of ['', ' \n ', '[]', ' [ ] ']) {
      expect(failure(() => splitQueryRequests(body)).code).toBe('invalid_request');
    }
  });

  test.each([
    ['{"a":1}', [{ a: 1 }]],
    ['[{"a":1}]', [{ a: 1 }]],
    ['{"a":1}{"a":2}', [{ a: 1 }, { a: 2 }]],
  ])('a byte order mark before %s is no part of it', async (body, requests) => {
    expect(await readQueryRequests(new TextEncoder().encode(`\ufeff${body}`))).toEqual(requests);
  });

  test('the length of a query is that of its bytes', async () => {
    const query = (length: number) => new TextEncoder().encode(`{"a":"${'日'.repeat(length)}"}`);
    expect(await readQueryRequests(query(Math.floor(limits.queryBytesMax / 3) - 3))).toHaveLength(1);
    const refused = readQueryRequests(query(Math.floor(limits.queryBytesMax / 3)));
    expect(await refused.catch((error: unknown) => error)).toMatchObject({ code: 'limit_exceeded' });
  });

  test('a hundred queries are taken, more are refused', () => {
    expect(splitQueryRequests('{}\n'.repeat(100))).toHaveLength(100);
    expect(failure(() => splitQueryRequests('{}\n'.repeat(101))).code).toBe('limit_exceeded');
  });

  test('any values written one after the other are cut apart again', () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(fc.array(object, { minLength: 1, maxLength: 8 }), fc.constantFrom('', '\n', ' '), (objects, gap) => {
        const texts = objects.map((each) => JSON.stringify(each));
        expect(splitQueryRequests(texts.join(gap))).toEqual(texts);
        expect(splitQueryRequests(`[${texts.join(',')}]`)).toEqual(texts);
      }),
    );
  });
});
