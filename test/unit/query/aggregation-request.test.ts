import { describe, expect, test } from 'bun:test';
import { readAggregations } from '../../../src/query/aggregations/aggregation-request.ts';
import { QueryBudget } from '../../../src/query/nodes/query-budget.ts';

const nowMs = Date.parse('2024-02-29T12:00:00Z');
const read = (request: Record<string, unknown>) => readAggregations(request, { nowMs, budget: new QueryBudget() });
const readOne = (aggregation: unknown) => read({ aggregations: { a: aggregation } })?.list[0]?.of;

describe('aggregations of a request', () => {
  test('a request without any has no plan', () => {
    expect(read({})).toBeUndefined();
    expect(read({ aggregations: null, facets: null })).toBeUndefined();
    expect(read({ aggregations: {} })).toBeUndefined();
  });

  const plans: [aggregation: Record<string, unknown>, plan: Record<string, unknown>][] = [
    [
      { type: 'sum', field: 'n' },
      { kind: 'numbers', field: 'n', metric: 'sum' },
    ],
    [
      { type: 'stats', path: '/a/b' },
      { kind: 'numbers', field: 'a.b', metric: 'stats' },
    ],
    [{ type: 'count' }, { kind: 'count' }],
    [
      { type: 'count', field: 'n' },
      { kind: 'count', field: 'n' },
    ],
    [
      { type: 'cardinality', field: 'n', mode: 'exact' },
      { kind: 'cardinality', field: 'n', mode: 'exact' },
    ],
    [
      { type: 'terms', field: 'tag' },
      { kind: 'terms', fields: ['tag'], size: 10, min_doc_count: 1 },
    ],
    [
      { type: 'terms', fields: ['a', 'b'], size: 3, min_doc_count: 2 },
      { kind: 'terms', fields: ['a', 'b'], size: 3, min_doc_count: 2 },
    ],
    [
      { type: 'terms', field: 'tag', min_doc_count: 0 },
      { kind: 'terms', fields: ['tag'], size: 10, min_doc_count: 0, background: 0 },
    ],
    [
      {
        type: 'range',
        field: 'n',
        ranges: [
          { name: 'low', to: 3 },
          { name: 'high', from: 3 },
        ],
      },
      {
        kind: 'range',
        field: 'n',
        ranges: [
          { name: 'low', to: 3 },
          { name: 'high', from: 3 },
        ],
      },
    ],
    [
      { type: 'date_range', field: 'at', date_ranges: [{ name: 'week', from: 'now-7d/d', to: '2024-03-01' }] },
      {
        kind: 'date_range',
        field: 'at',
        ranges: [{ name: 'week', from: '2024-02-22T00:00:00.000Z', to: '2024-03-01' }],
      },
    ],
    [
      { type: 'histogram', field: 'n', interval: 0.5 },
      { kind: 'histogram', field: 'n', interval: 0.5, min_doc_count: 0 },
    ],
    [
      { type: 'date_histogram', field: 'at', calendar_interval: 'week', min_doc_count: 1, size: 4 },
      { kind: 'date_histogram', field: 'at', calendar_interval: 'week', min_doc_count: 1, size: 4 },
    ],
    [
      { type: 'geohash_grid', field: 'where' },
      { kind: 'geohash_grid', field: 'where', precision: 5, size: 10 },
    ],
    [
      {
        type: 'geo_distance',
        field: 'where',
        origin: '52.5, -13.25',
        unit: 'km',
        distance_ranges: [{ name: 'a', to: 1 }],
      },
      {
        kind: 'geo_distance',
        field: 'where',
        lat: 52.5,
        lon: -13.25,
        unit_meters: 1000,
        ranges: [{ name: 'a', to: 1 }],
      },
    ],
    [
      { type: 'significant_terms', field: 'tag', algorithm: 'chi_squared' },
      { kind: 'significant_terms', field: 'tag', size: 10, min_doc_count: 1, algorithm: 'chi_squared', background: 0 },
    ],
  ];
  for (const [aggregation, plan] of plans) {
    test(JSON.stringify(aggregation), () => expect(readOne(aggregation)).toEqual(plan as never));
  }

  test('nested ones come under their buckets', () => {
    const plan = read({
      aggregations: {
        tags: { type: 'terms', field: 'tag', sub_aggregations: { price: { type: 'avg', field: 'price' } } },
      },
    });
    expect(plan?.list[0]?.sub).toEqual([
      { name: 'price', of: { kind: 'numbers', field: 'price', metric: 'avg' }, sub: [] },
    ]);
  });

  test('significant terms share a background that is the same', () => {
    const of = (filter?: unknown) => ({ type: 'significant_terms', field: 'tag', background_filter: filter });
    const filter = { term: { year: 2024 } };
    const plan = read({ aggregations: { a: of(), b: of(filter), c: of(filter) } });
    expect(plan?.list.map(({ of }) => 'background' in of && of.background)).toEqual([0, 1, 1]);
    expect(plan?.backgrounds).toEqual([
      { field: 'tag' },
      { field: 'tag', filter: { kind: 'term', field: 'year', value: 2024, boost: 1 } },
    ]);
  });

  test('facets are terms aggregations', () => {
    const terms = (field: string, size = 10) => ({ kind: 'terms', fields: [field], size, min_doc_count: 1 });
    const named = (facets: unknown) => read({ facets })?.list.map(({ name, of }) => [name, of]);
    expect(named(['tag', 'author.name'])).toEqual([
      ['tag', terms('tag')],
      ['author.name', terms('author.name')],
    ] as never);
    expect(named({ tag: {}, by: { field: 'author', size: 3 }, at: { path: '/author/name' } })).toEqual([
      ['tag', terms('tag')],
      ['by', terms('author', 3)],
      ['at', terms('author.name')],
    ] as never);
  });

  const range = { name: 'a', from: 1 };
  const refused: [aggregation: unknown, message: string][] = [
    [{ type: 'term', field: 'a' }, 'Did you mean "terms"?'],
    [{ field: 'a' }, 'needs a "type"'],
    [{ type: 'terms' }, 'needs a "field"'],
    [{ type: 'terms', field: 'a', fields: ['b'] }, 'not both'],
    [{ type: 'terms', path: 'a', fields: ['b'] }, '"path" or "fields", not both'],
    [{ type: 'terms', field: 'a', fields: [] }, 'must name paths'],
    [{ type: 'terms', field: 'a', sizes: 3 }, 'Did you mean "size"?'],
    [{ type: 'terms', field: 'a', size: 0 }, '"size" must be an integer from 1 to 65536'],
    [{ type: 'terms', fields: ['a', 'b'], min_doc_count: 0 }, '"min_doc_count"'],
    [{ type: 'significant_terms', field: 'a', min_doc_count: 0 }, '"min_doc_count"'],
    [{ type: 'sum', field: 'a', sub_aggregations: {} }, 'only aggregations that make buckets'],
    [{ type: 'sum', field: 'a', size: 1 }, 'unknown member "size"'],
    [{ type: 'cardinality', field: 'a', mode: 'exakt' }, 'Did you mean "exact"?'],
    [{ type: 'range', field: 'a' }, '"ranges" must be an array'],
    [{ type: 'range', field: 'a', ranges: [{ from: 1 }] }, 'ranges[0]: needs a "name"'],
    [{ type: 'range', field: 'a', ranges: [{ ...range, to: '2' }] }, 'ranges[0].to: must be a number'],
    [{ type: 'date_range', field: 'a', date_ranges: [{ name: 'a', from: 'yesterday' }] }, 'date_ranges[0].from'],
    [{ type: 'histogram', field: 'a' }, 'interval: must be a number'],
    [{ type: 'histogram', field: 'a', interval: 0 }, 'above 0'],
    [{ type: 'date_histogram', field: 'a' }, 'needs a "calendar_interval"'],
    [{ type: 'date_histogram', field: 'a', calendar_interval: 'moth' }, 'Did you mean "month"?'],
    [{ type: 'geohash_grid', field: 'a', precision: 13 }, 'from 1 to 12'],
    [{ type: 'geo_distance', field: 'a', origin: '1', distance_ranges: [range] }, '"origin" must be a place'],
    [{ type: 'geo_distance', field: 'a', origin: '91,0', distance_ranges: [range] }, '"origin" must be a place'],
    [{ type: 'geo_distance', field: 'a', origin: '1,2', unit: 'mile', distance_ranges: [range] }, '"unit"'],
    [{ type: 'significant_terms', field: 'a', background_filter: { trem: 1 } }, 'background_filter'],
    ['terms', 'must be an object'],
  ];
  for (const [aggregation, message] of refused) {
    test(`${JSON.stringify(aggregation)} is refused`, () => {
      expect(() => readOne(aggregation)).toThrow(expect.objectContaining({ code: 'invalid_query' }));
      expect(() => readOne(aggregation)).toThrow(message);
    });
  }

  test('names are not given twice', () => {
    const aggregations = { tag: { type: 'count' } };
    expect(() => read({ aggregations, facets: ['tag'] })).toThrow('"tag" is an aggregation already');
    expect(() => read({ aggregations: { '': { type: 'count' } } })).toThrow('1 to 255 characters');
    expect(() => read({ facets: { a: { type: 'sum', field: 'a' } } })).toThrow('a facet is a "terms" aggregation');
  });

  test('bounds', () => {
    const nested = (depth: number): Record<string, unknown> => ({
      type: 'terms',
      field: 'a',
      ...(depth > 1 ? { sub_aggregations: { inner: nested(depth - 1) } } : {}),
    });
    expect(readOne(nested(8))).toBeDefined();
    expect(() => readOne(nested(9))).toThrow(expect.objectContaining({ code: 'limit_exceeded' }));
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, { type: 'count' }]));
    expect(read({ aggregations: many(256) })?.list.length).toBe(256);
    expect(() => read({ aggregations: many(257) })).toThrow(expect.objectContaining({ code: 'limit_exceeded' }));
    const ranges = Array.from({ length: 1_025 }, () => range);
    expect(() => readOne({ type: 'range', field: 'a', ranges })).toThrow(
      expect.objectContaining({ code: 'limit_exceeded' }),
    );
  });

  test('algebraic joins are not built', () => {
    const join = { type: 'terms', field: 'a', algebraic_join: { name: 'j', group_side: 'l', measure_side: 'r' } };
    expect(() => readOne(join)).toThrow(expect.objectContaining({ code: 'not_implemented' }));
  });
});
