import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { must } from '../../../src/lib/assert.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const clock = new FakeClock();
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ clock });
});
afterAll(() => server[Symbol.asyncDispose]());

const documents: Record<string, unknown> = {
  'a-leek': {
    title: 'Leek soup',
    minutes: 25,
    tags: ['soup', 'green'],
    on: '2024-01-15',
    at: { lat: 52.52, lon: 13.4 },
  },
  'f-miso': { title: 'Miso soup', minutes: 12.5, tags: ['soup'], on: '2024-01-31', at: { lat: 52.5, lon: 13.45 } },
  'm-stew': {
    title: 'Beef stew',
    minutes: 130,
    tags: ['stew', 'beef'],
    on: '2024-03-02',
    at: { lat: 48.85, lon: 2.35 },
  },
  's-pie': { title: 'Leek pie', minutes: 60, tags: ['pie', 'green', 'green'], on: '2023-12-31', vegan: true },
  'z-salad': { title: 'Salad', minutes: 10, tags: ['green'], vegan: true, spot: [13.4, 52.52] },
};

const schema = {
  document_schemas: {
    recipe: {
      schema: {
        type: 'object',
        properties: {
          blurb: { type: 'string', 'x-service-types': ['text'] },
          code: { type: 'string' },
          at: { description: 'Where it is eaten.' },
          spot: { 'x-service-types': ['geopoint'] },
        },
      },
    },
  },
};

interface Result {
  hits: { total: { value: number; relation: string }; hits: { _id: string }[] };
  aggregations: Record<string, unknown>;
}

describe.each([1, 4])('aggregations over %d ranges', (num_shards) => {
  const table = `/db/v1/tables/recipes-${num_shards}`;
  const write = (body: Record<string, unknown>) =>
    server.send('POST', `${table}/batch`, { ...body, sync_level: 'full_text' });

  async function query(request: Record<string, unknown>): Promise<Result> {
    const { status, body } = await server.send<{ responses: Result[] }>('POST', `${table}/query`, request);
    expect({ status, body }).toMatchObject({ status: 200 });
    return body.responses[0] as Result;
  }

  const aggregate = async (aggregation: unknown, request: Record<string, unknown> = {}) =>
    (await query({ limit: 0, ...request, aggregations: { a: aggregation } })).aggregations.a;

  const counts = async (aggregation: unknown, request: Record<string, unknown> = {}) => {
    const { buckets } = (await aggregate(aggregation, request)) as { buckets: { key: unknown; doc_count: number }[] };
    return buckets.map(({ key, doc_count }) => [key, doc_count]);
  };

  beforeAll(async () => {
    expect((await server.send('POST', table, { num_shards, schema })).status).toBe(200);
    await write({ inserts: { ...documents, 'b-gone': { minutes: 1e6, tags: ['gone'] }, 'a-leek': { minutes: 5 } } });
    await write({ deletes: ['b-gone'], inserts: { 'a-leek': documents['a-leek'] } });
  });

  test('metrics', async () => {
    expect(await aggregate({ type: 'sum', field: 'minutes' })).toEqual({ value: 237.5 });
    expect(await aggregate({ type: 'avg', field: 'minutes' })).toEqual({
      count: 5,
      sum: 237.5,
      avg: 47.5,
      value: 47.5,
    });
    expect(await aggregate({ type: 'min', field: 'minutes' })).toEqual({ value: 10 });
    expect(await aggregate({ type: 'max', field: 'minutes' })).toEqual({ value: 130 });
    expect(await aggregate({ type: 'count', field: 'vegan' })).toEqual({ value: 2 });
    expect(await aggregate({ type: 'count' })).toEqual({ value: 5 });
    expect(await aggregate({ type: 'sumsquares', field: 'minutes' })).toEqual({ value: 21_381.25 });
    expect(await aggregate({ type: 'cardinality', field: 'tags' })).toEqual({ value: 5, approximate: false });
    expect(await aggregate({ type: 'stats', field: 'minutes' })).toEqual({
      count: 5,
      min: 10,
      max: 130,
      sum: 237.5,
      sum_of_squares: 21_381.25,
      avg: 47.5,
      std_deviation: Math.sqrt(2020),
      variance: 2020,
    });
    expect(await aggregate({ type: 'max', field: 'on' })).toEqual({
      value: Date.parse('2024-03-02'),
      value_as_string: '2024-03-02T00:00:00Z',
    });
    expect(await aggregate({ type: 'avg', field: 'nowhere' })).toEqual({ count: 0, sum: 0, avg: null, value: null });
  });

  test('terms, of one field and of several', async () => {
    const all = [
      ['green', 3],
      ['soup', 2],
      ['beef', 1],
      ['pie', 1],
      ['stew', 1],
    ];
    expect(await counts({ type: 'terms', field: 'tags' })).toEqual(all);
    expect(await counts({ type: 'terms', field: 'tags', size: 2 })).toEqual(all.slice(0, 2));
    expect(await counts({ type: 'terms', field: 'tags', min_doc_count: 2 })).toEqual(all.slice(0, 2));
    expect(await counts({ type: 'terms', fields: ['vegan', 'tags'] })).toEqual([
      [[true, 'green'], 2],
      [[true, 'pie'], 1],
    ]);
    expect((await query({ limit: 0, facets: ['vegan'] })).aggregations).toEqual({
      vegan: { buckets: [{ key: true, key_as_string: 'true', doc_count: 2 }] },
    });
  });

  test('terms shows values of the table that no match has, when asked for documents from 0 on', async () => {
    const soups = { full_text_search: { query: 'tags:soup' } };
    const tags = { type: 'terms', field: 'tags', min_doc_count: 0 };
    const all = [
      ['soup', 2],
      ['green', 1],
      ['beef', 0],
      ['pie', 0],
      ['stew', 0],
    ];
    expect(await counts(tags, soups)).toEqual(all);
    expect(await counts({ ...tags, size: 3 }, soups)).toEqual(all.slice(0, 3));
    const nested = { type: 'terms', field: 'vegan', sub_aggregations: { tags: { ...tags, size: 4 } } };
    expect(await aggregate(nested, { full_text_search: { query: 'vegan:true' } })).toEqual({
      buckets: [
        {
          key: true,
          key_as_string: 'true',
          doc_count: 2,
          sub_aggregations: {
            tags: {
              buckets: [
                { key: 'green', doc_count: 2 },
                { key: 'pie', doc_count: 1 },
                { key: 'beef', doc_count: 0 },
                { key: 'soup', doc_count: 0 },
              ],
            },
          },
        },
      ],
    });
    expect(await counts(tags, { full_text_search: { query: 'nothing' } })).toHaveLength(5);
  });

  const calendar_interval = 'month';
  const ranges = [{ name: 'all' }];
  test.each([
    ['blurb', 'whole values', { type: 'terms' }],
    ['blurb', 'whole values', { type: 'count' }],
    ['spot', 'whole values', { type: 'cardinality' }],
    ['code', 'dates', { type: 'date_histogram', calendar_interval }],
    ['code', 'dates', { type: 'date_range', date_ranges: ranges }],
    ['code', 'numbers or dates', { type: 'avg' }],
    ['_timestamp', 'numbers', { type: 'histogram', interval: 1 }],
    ['code', 'numbers', { type: 'range', ranges }],
    ['code', 'places', { type: 'geohash_grid' }],
    ['blurb', 'places', { type: 'geo_distance', origin: '52,13', distance_ranges: ranges }],
  ])('of "%s", which is declared without %s, they are refused', async (field, kind, aggregation) => {
    const nested = { minutes: { type: 'terms', field: 'minutes', sub_aggregations: { a: { ...aggregation, field } } } };
    for (const aggregations of [{ a: { ...aggregation, field } }, nested]) {
      const { status, body } = await server.send('POST', `${table}/query`, { aggregations });
      const message = expect.stringContaining(`"a": "${field}" is declared without ${kind}`);
      expect({ status, body }).toMatchObject({ status: 400, body: { code: 'invalid_query', message } });
    }
  });

  test('of what the schema does not declare they are empty where there are no such values', async () => {
    for (const field of ['title', 'no.such.field']) {
      expect(await counts({ type: 'date_histogram', field, calendar_interval })).toEqual([]);
      expect(await counts({ type: 'geohash_grid', field })).toEqual([]);
      expect(await aggregate({ type: 'sum', field })).toEqual({ value: 0 });
    }
  });

  test('ranges, empty ones too', async () => {
    const ranges = [
      { name: 'quick', to: 25 },
      { name: 'slow', from: 25, to: 1000 },
      { name: 'never', from: 1000 },
    ];
    expect(await aggregate({ type: 'range', field: 'minutes', ranges })).toEqual({
      buckets: [
        { key: 'quick', to: 25, doc_count: 2 },
        { key: 'slow', from: 25, to: 1000, doc_count: 3 },
        { key: 'never', from: 1000, doc_count: 0 },
      ],
    });
  });

  test('date ranges, from now too', async () => {
    const days = Math.floor((clock.nowMs() - Date.parse('2024-01-31')) / 86_400_000);
    const date_ranges = [
      { name: 'before', to: '2024-01-31' },
      { name: 'since', from: `now-${days}d/d` },
    ];
    const january = Date.parse('2024-01-31');
    expect(await aggregate({ type: 'date_range', field: 'on', date_ranges })).toEqual({
      buckets: [
        { key: 'before', to: january, to_as_string: '2024-01-31T00:00:00Z', doc_count: 2 },
        { key: 'since', from: january, from_as_string: '2024-01-31T00:00:00Z', doc_count: 2 },
      ],
    });
  });

  test('histograms fill the gaps', async () => {
    expect(await aggregate({ type: 'histogram', field: 'minutes', interval: 50 })).toEqual({
      buckets: [
        { key: 0, key_as_string: '0', doc_count: 3 },
        { key: 50, key_as_string: '50', doc_count: 1 },
        { key: 100, key_as_string: '100', doc_count: 1 },
      ],
    });
    const months = { type: 'date_histogram', field: 'on', calendar_interval: 'month' };
    const month = (text: string, doc_count: number) => ({
      key: Date.parse(text),
      key_as_string: `${text}T00:00:00Z`,
      doc_count,
    });
    const [december, january, february, march] = [
      month('2023-12-01', 1),
      month('2024-01-01', 2),
      month('2024-02-01', 0),
      month('2024-03-01', 1),
    ];
    expect(await aggregate(months)).toEqual({ buckets: [december, january, february, march] });
    expect(await aggregate({ ...months, min_doc_count: 1 })).toEqual({ buckets: [december, january, march] });
  });

  test('places', async () => {
    expect(await counts({ type: 'geohash_grid', field: 'at', precision: 4 })).toEqual([
      ['u33d', 2],
      ['u09t', 1],
    ]);
    // Declared to hold places, in another spelling.
    expect(await counts({ type: 'geohash_grid', field: 'spot', precision: 4 })).toEqual([['u33d', 1]]);
    const distance_ranges = [
      { name: 'here', to: 10 },
      { name: 'away', from: 10 },
    ];
    const distance = { type: 'geo_distance', field: 'at', origin: '52.52,13.405', unit: 'km', distance_ranges };
    expect(await aggregate(distance)).toEqual({
      buckets: [
        { key: 'here', to: 10, doc_count: 2 },
        { key: 'away', from: 10, doc_count: 1 },
      ],
    });
  });

  test('significant terms', async () => {
    const request = { filter_query: { term: { tags: 'soup' } } };
    const significant = { type: 'significant_terms', field: 'tags' };
    // Two of two documents in the set, two of five in all.
    const soup = { key: 'soup', doc_count: 2, score: (1 - 0.4) * (1 / 0.4), bg_count: 2 };
    const close = { ...soup, score: expect.closeTo(soup.score, 9) };
    expect(await aggregate(significant, request)).toEqual({ buckets: [close] });
    expect(await aggregate({ ...significant, algorithm: 'percentage', min_doc_count: 2 }, request)).toEqual({
      buckets: [{ ...soup, score: 1 }],
    });
    const among_soups = { ...significant, background_filter: { term: { tags: 'soup' } } };
    expect(await aggregate(among_soups, request)).toEqual({ buckets: [] });
    const named = { ...significant, background_filter: { ref: 'soups' } };
    const soups = { soups: { term: { tags: 'soup' } } };
    expect(await aggregate(named, { ...request, with: soups })).toEqual({ buckets: [] });
  });

  test('the background of significant terms has the documents of the query too, each once', async () => {
    const request = { filter_query: { term: { tags: 'green' } } };
    const significant = { type: 'significant_terms', field: 'tags', algorithm: 'percentage' };
    const apart = { ...significant, background_filter: { terms: { title: ['Miso soup', 'Beef stew'] } } };
    expect(await aggregate(apart, request)).toEqual({
      buckets: [
        { key: 'green', doc_count: 3, score: 1, bg_count: 3 },
        { key: 'pie', doc_count: 1, score: 1, bg_count: 1 },
        { key: 'soup', doc_count: 1, score: 0.5, bg_count: 2 },
      ],
    });
    const overlapping = { ...significant, background_filter: { term: { tags: 'soup' } } };
    expect(await aggregate(overlapping, request)).toEqual(await aggregate(apart, request));
    const nested = { type: 'terms', field: 'vegan', sub_aggregations: { odd: overlapping } };
    expect(await aggregate(nested, request)).toMatchObject({
      buckets: [
        {
          key: true,
          sub_aggregations: {
            odd: {
              buckets: [
                { key: 'pie', bg_count: 1 },
                { key: 'green', bg_count: 3 },
              ],
            },
          },
        },
      ],
    });
  });

  test('nested in buckets, those without documents too', async () => {
    const slow = { slow: { type: 'range', field: 'minutes', ranges: [{ name: 'slow', from: 100 }] } };
    const greenest = { type: 'terms', field: 'tags', size: 1, sub_aggregations: slow };
    const ranges = [
      { name: 'quick', to: 70 },
      { name: 'none', from: 1000 },
    ];
    const answer = await aggregate({ type: 'range', field: 'minutes', ranges, sub_aggregations: { tag: greenest } });
    expect(answer).toEqual({
      buckets: [
        {
          key: 'quick',
          to: 70,
          doc_count: 4,
          sub_aggregations: {
            tag: {
              buckets: [
                {
                  key: 'green',
                  doc_count: 3,
                  sub_aggregations: { slow: { buckets: [{ key: 'slow', from: 100, doc_count: 0 }] } },
                },
              ],
            },
          },
        },
        { key: 'none', from: 1000, doc_count: 0, sub_aggregations: { tag: { buckets: [] } } },
      ],
    });
  });

  test('all matches count, not only the page', async () => {
    const request = {
      full_text_search: { match: 'leek soup', field: 'title' },
      exclusion_query: { term: { minutes: 60 } },
    };
    const { hits, aggregations } = await query({
      ...request,
      limit: 1,
      aggregations: { n: { type: 'sum', field: 'minutes' } },
    });
    expect(hits.hits.map((hit) => hit._id)).toEqual(['a-leek']);
    expect(hits.total).toEqual({ value: 2, relation: 'exact' });
    expect(aggregations).toEqual({ n: { value: 37.5 } });
    const none = await query({ filter_query: { match_none: {} }, limit: 0, aggregations: { n: { type: 'count' } } });
    expect([none.hits.total.value, none.hits.hits, none.aggregations]).toEqual([0, [], { n: { value: 0 } }]);
    const counted = await query({
      count: true,
      filter_prefix: 's-',
      aggregations: { n: { type: 'max', field: 'minutes' } },
    });
    expect([counted.hits.total.value, counted.aggregations]).toEqual([1, { n: { value: 60 } }]);
  });

  test('too many buckets are refused', async () => {
    const aggregations = { a: { type: 'histogram', field: 'minutes', interval: 0.001 } };
    const { status, body } = await server.send('POST', `${table}/query`, { aggregations });
    expect({ status, body }).toMatchObject({ status: 400, body: { code: 'limit_exceeded' } });
  });

  test('a number that no interval holds is named in short', async () => {
    await server.send('POST', `${table}-far`, {});
    await server.send('POST', `${table}-far/batch`, { inserts: { a: { n: 1e300 } }, sync_level: 'full_text' });
    const aggregations = { a: { type: 'histogram', field: 'n', interval: 0.5 } };
    const { body } = await server.send('POST', `${table}-far/query`, { aggregations });
    expect(body.message).toBe('a histogram with the interval 0.5 cannot place 1e300');
  });

  test('algebraic joins are not built', async () => {
    const aggregations = { a: { type: 'terms', field: 'tags', algebraic_join: { name: 'j' } } };
    expect((await server.send('POST', `${table}/query`, { aggregations })).status).toBe(501);
  });
});

test('expired documents are not aggregated', async () => {
  await server.send('POST', '/db/v1/tables/short', { num_shards: 2, schema: { ttl: { duration: '1h' } } });
  const write = (key: string, n: number) =>
    server.send('POST', '/db/v1/tables/short/batch', { inserts: { [key]: { n } }, sync_level: 'full_text' });
  await write('old', 1);
  await clock.advance(1_800_000);
  await write('young', 2);
  clock.jump(1_800_001);
  const request = { limit: 0, aggregations: { n: { type: 'sum', field: 'n' } } };
  const { body } = await server.send<{ responses: Result[] }>('POST', '/db/v1/tables/short/query', request);
  expect(body.responses[0]?.aggregations).toEqual({ n: { value: 2 } });
});

test('a sum may leave the range of doubles and come back', async () => {
  await server.send('POST', '/db/v1/tables/large', { num_shards: 2 });
  const inserts = { a: { n: 1e308 }, b: { n: 1e308 }, c: { n: -1e308 }, d: { n: -1e308 }, e: { n: 0.5 } };
  await server.send('POST', '/db/v1/tables/large/batch', { inserts, sync_level: 'full_text' });
  const aggregations = { sum: { type: 'sum', field: 'n' }, avg: { type: 'avg', field: 'n' } };
  const request = { limit: 0, aggregations };
  const { body } = await server.send<{ responses: Result[] }>('POST', '/db/v1/tables/large/query', request);
  expect(body.responses[0]?.aggregations).toEqual({
    sum: { value: 0.5 },
    avg: { count: 5, sum: 0.5, avg: 0.1, value: 0.1 },
  });
});

test('times keep their milliseconds', async () => {
  await server.send('POST', '/db/v1/tables/moments', {});
  const inserts = { a: { at: '2026-11-21T22:05:37.014Z' }, b: { at: '2026-11-21T22:05:37.994123Z' } };
  await server.send('POST', '/db/v1/tables/moments/batch', { inserts, sync_level: 'full_text' });
  const aggregations = {
    first: { type: 'min', field: 'at' },
    last: { type: 'max', field: 'at' },
    sum: { type: 'sum', field: 'at' },
    since: { type: 'date_range', field: 'at', date_ranges: [{ name: 'x', from: '2026-11-21T22:05:37.042Z' }] },
  };
  const request = { limit: 0, aggregations };
  const { body } = await server.send<{ responses: Result[] }>('POST', '/db/v1/tables/moments/query', request);
  expect(body.responses[0]?.aggregations).toEqual({
    first: { value: 1795298737014, value_as_string: '2026-11-21T22:05:37.014Z' },
    last: { value: 1795298737994.123, value_as_string: '2026-11-21T22:05:37.994123Z' },
    sum: { value: 3590597475008.123 },
    since: {
      buckets: [{ key: 'x', from: 1795298737042, from_as_string: '2026-11-21T22:05:37.042Z', doc_count: 1 }],
    },
  });
});

test('the greatest integers are keys without a fraction', async () => {
  const greatest = Number.MAX_SAFE_INTEGER;
  await server.send('POST', '/db/v1/tables/serials', {});
  const inserts = { a: { id: greatest }, b: { id: -greatest - 1 }, c: { id: greatest + 1 } };
  await server.send('POST', '/db/v1/tables/serials/batch', { inserts, sync_level: 'full_text' });
  const request = { limit: 0, aggregations: { ids: { type: 'terms', field: 'id' } } };
  const { body } = await server.send<{ responses: Result[] }>('POST', '/db/v1/tables/serials/query', request);
  const { ids } = must(body.responses[0], 'an answer').aggregations;
  const { buckets } = ids as { buckets: { key_as_string: string }[] };
  expect(buckets.map((bucket) => bucket.key_as_string).sort()).toEqual([
    '-9007199254740992',
    '9007199254740991',
    '9007199254740992',
  ]);
});
