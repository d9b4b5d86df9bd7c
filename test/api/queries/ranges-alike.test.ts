import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

/** Whatever is asked, a table of four ranges answers as one of a single range does. */
interface Result {
  hits: { total: unknown; max_score: number; hits: { _id: string; _score: number; _sort?: unknown[] }[] };
  aggregations?: unknown;
}

let server: TestServer;
const words = ['leek', 'potato', 'soup', 'miso', 'tofu', 'stew', 'beef', 'bread', 'butter', 'winter'];

/** Pseudo-random, the same in every run. */
function documentAt(at: number): Record<string, unknown> {
  let seed = (at * 2_654_435_761) % 4_294_967_296;
  const below = (bound: number) => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return Math.floor((seed / 4_294_967_296) * bound);
  };
  const text = (length: number) => Array.from({ length }, () => words[below(words.length)]).join(' ');
  return {
    title: text(2 + below(3)),
    body: text(5 + below(30)),
    tags: [words[below(10)], words[below(10)]],
    ...(below(4) ? { year: 2000 + below(20) } : {}),
    price: below(1000) / 8,
    at: new Date(Date.UTC(2020, below(24), 1 + below(27))).toISOString(),
    vegan: below(2) === 0,
    kitchen: { lat: 40 + below(100) / 10, lon: below(100) / 10 },
  };
}

beforeAll(async () => {
  server = await startTestServer();
  const inserts = Object.fromEntries(
    Array.from({ length: 300 }, (_, at) => [`${'09akluvz'[at % 8]}k${(at * 7919) % 10_007}`, documentAt(at)]),
  );
  for (const [name, shards] of [
    ['one', 1],
    ['four', 4],
  ] as const) {
    await server.send('POST', `/db/v1/tables/${name}`, { num_shards: shards });
    const answer = await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts, sync_level: 'full_text' });
    expect(answer.status).toBe(201);
  }
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

async function ask(table: string, request: object): Promise<Result> {
  const answer = await server.send<{ responses: Result[] }>('POST', `/db/v1/tables/${table}/query`, request);
  expect(answer).toMatchObject({ status: 200 });
  const [result] = answer.body.responses;
  if (!result) throw new Error('no result');
  return result;
}

const queries: object[] = [
  ...[
    'soup',
    'leek potato',
    'leek OR potato OR tofu',
    'title:soup AND NOT body:beef',
    '"potato soup"',
    '"leek soup"~3',
  ],
  ...['pot*', '*tt*', '/b.*/', 'stw~1', 'title:(soup OR stew)^3 butter', 'year:>2010', 'at:[2020-06-01 TO 2021-02-01]'],
  ...['price:<20 AND vegan:true', 'tags:winter', '+soup -stew bread', 'kitchen.lat:>=45', 'body:the', 'title:so?p'],
].map((query) => ({ full_text_search: { query } }));
queries.push(
  {},
  { full_text_search: { match: 'potto bred' }, typo_tolerance: true },
  { full_text_search: { match: { body: { query: 'soup stew', operator: 'and' } } } },
  { full_text_search: { disjuncts: [{ match: 'leek' }, { match: 'soup' }, { match: 'beef' }], min: 2 } },
  { filter_query: { query: 'title:soup' }, exclusion_query: { term: { vegan: true } } },
  { full_text_search: { query: 'soup' }, filter_prefix: 'kk1' },
);
const orders = [
  [],
  [{ field: 'year', desc: true }],
  [{ field: 'tags' }, { field: 'price' }],
  [{ field: '_score', desc: true }],
];

for (const query of queries) {
  test(`${JSON.stringify(query)} in one range and in four`, async () => {
    for (const order_by of orders) {
      for (const page of [{ limit: 25 }, { limit: 1000 }, { limit: 20, offset: 30 }]) {
        const request = { ...query, ...page, ...(order_by.length > 0 ? { order_by } : {}) };
        const [one, four] = [await ask('one', request), await ask('four', request)];
        expect(four.hits.hits.map((hit) => hit._id)).toEqual(one.hits.hits.map((hit) => hit._id));
        expect(four.hits.total).toEqual(one.hits.total);
        expect(four.hits.hits.map((hit) => hit._sort?.slice(0, -1).length)).toEqual(
          one.hits.hits.map((hit) => hit._sort?.slice(0, -1).length),
        );
        for (const [at, hit] of one.hits.hits.entries()) {
          expect(Math.abs((four.hits.hits[at]?._score ?? 0) - hit._score)).toBeLessThanOrEqual(
            1e-5 * Math.max(1, hit._score),
          );
        }
      }
    }
  });
}

test('highlights, explanations and aggregations in one range and in four', async () => {
  const request = {
    full_text_search: { query: 'leek OR miso' },
    fields: ['title'],
    highlight: true,
    explain: true,
    aggregations: { by_tag: { type: 'terms', field: 'tags' }, price: { type: 'stats', field: 'price' } },
  };
  const [one, four] = [await ask('one', request), await ask('four', request)];
  expect(four.aggregations).toEqual(one.aggregations);
  expect(four.hits.hits).toEqual(one.hits.hits);
});
