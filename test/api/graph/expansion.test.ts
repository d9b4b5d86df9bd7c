import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;

interface Result {
  hits: {
    total: { value: number; relation: string };
    max_score: number;
    hits: { _id: string; _score: number; _source?: object; _sort?: unknown[] }[];
  };
  aggregations?: Record<string, { value: number }>;
  graph_results: Record<string, { total: number; nodes: { key: string }[]; took?: number }>;
  partial?: boolean;
}

/** Twelve dishes in a chain, each of which leads to the next; even ones are soups, and the last leads to no document. */
const count = 12;
const tables = { one: 1, three: 3 };
const key = (at: number) => `d${String(at).padStart(2, '0')}`;

beforeAll(async () => {
  server = await startTestServer();
  for (const [name, shards] of Object.entries(tables)) {
    const table = await GraphTable.create(server, name, { shards });
    const inserts = Array.from({ length: count }, (_, at) => {
      const title = at % 2 === 0 ? 'a warm soup' : 'a salad';
      return [key(at), { title, at, _edges: { g: { next: [{ target: key(at + 1) }] } } }] as const;
    });
    expect(await table.batch({ inserts: Object.fromEntries(inserts), sync_level: 'full_index' })).toMatchObject({
      status: 201,
    });
  }
});
afterAll(() => server[Symbol.asyncDispose]());

const soups = { full_text_search: { query: 'title:soup' } };
const after = (start: number, max_depth: number, more: object = {}) => ({
  near: { type: 'traverse', index_name: 'g', start_nodes: { keys: [key(start)] }, params: { max_depth, ...more } },
});

async function askTable(name: string, body: object): Promise<Result> {
  const answer = await server.send<{ responses: Result[] }>('POST', `/db/v1/tables/${name}/query`, body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.body.responses[0] as Result;
}

/** Asks the tables of one range and of three, which must say the same. */
async function ask(body: object): Promise<Result> {
  const answers = [await askTable('one', body), await askTable('three', body)];
  const [one, three] = answers.map(({ hits, aggregations, partial, graph_results }) => {
    const found = Object.entries(graph_results).map(([name, { took, ...rest }]) => [name, rest]);
    return { hits, aggregations, partial, graph_results: Object.fromEntries(found) as Result['graph_results'] };
  });
  expect(three).toEqual(one as never);
  return one as Result;
}

const keysOf = ({ hits }: Result) => hits.hits.map(({ _id }) => _id);

describe('a union', () => {
  test('appends nodes that are not on the page, from the nearest on, with the score 1 and their documents', async () => {
    const result = await ask({ ...soups, expand_strategy: 'union', graph_searches: after(8, 9), fields: ['at'] });
    expect(keysOf(result)).toEqual([0, 2, 4, 6, 8, 10, 9, 11].map(key));
    expect(result.hits.hits.slice(-2)).toEqual([
      { _id: key(9), _score: 1, _source: { at: 9 } },
      { _id: key(11), _score: 1, _source: { at: 11 } },
    ]);
    expect(result.hits.total).toEqual({ value: 8, relation: 'exact' });
    expect(result.hits.max_score).toBe(1);
    // The end of the chain has no document.
    expect(result.graph_results.near?.total).toBe(4);
    expect(result.partial).toBeUndefined();
  });

  test('of a page that is not all counts no node twice: its total is a lower bound', async () => {
    const result = await ask({ ...soups, expand_strategy: 'union', graph_searches: after(8, 9), limit: 2 });
    expect(keysOf(result)).toEqual([0, 2, 9, 10, 11].map(key));
    expect(result.hits.total).toEqual({ value: 6, relation: 'gte' });
  });

  test('takes nodes that other searches of the request have found, and shows as many as they show', async () => {
    const near = {
      type: 'neighbors',
      index_name: 'g',
      start_nodes: { result_ref: '$full_text_results' },
      params: { max_results: 3 },
    };
    const result = await ask({ ...soups, expand_strategy: 'union', graph_searches: { near } });
    expect(keysOf(result).slice(6)).toEqual([1, 3, 5].map(key));
  });

  test('without a query has nodes alone; filters are about hits, and a filter of nodes about nodes', async () => {
    const graph_searches = after(5, 3);
    expect(keysOf(await ask({ expand_strategy: 'union', graph_searches }))).toEqual([6, 7, 8].map(key));
    const filter_query = { match: 'soup', field: 'title' };
    expect(keysOf(await ask({ filter_query, limit: 1, expand_strategy: 'union', graph_searches }))).toEqual(
      [0, 6, 7, 8].map(key),
    );
    const near = after(5, 3, { node_filter: { filter_query: { field: 'at', max: 8 } } });
    expect(keysOf(await ask({ expand_strategy: 'union', graph_searches: near }))).toEqual([6, 7].map(key));
  });
});

describe('an intersection', () => {
  test('finds what the query and the graph searches both find: page, total and aggregations', async () => {
    const aggregations = { highest: { type: 'max', field: 'at' } };
    const result = await ask({
      ...soups,
      expand_strategy: 'intersection',
      graph_searches: after(3, 5),
      aggregations,
      limit: 2,
    });
    expect(keysOf(result)).toEqual([4, 6].map(key));
    expect(result.hits.total).toEqual({ value: 3, relation: 'exact' });
    expect(result.aggregations?.highest?.value).toBe(8);
  });

  test('looks among all nodes, not only those that are shown', async () => {
    const graph_searches = after(0, 20, { max_results: 1 });
    const result = await ask({ ...soups, expand_strategy: 'intersection', graph_searches });
    expect(result.graph_results.near?.nodes.map((node) => node.key)).toEqual([key(1)]);
    expect(keysOf(result)).toEqual([2, 4, 6, 8, 10].map(key));
    expect(result.hits.total).toEqual({ value: 5, relation: 'exact' });
  });

  test('of searches that begin at hits takes the page that the query has without them', async () => {
    const near = {
      type: 'traverse',
      index_name: 'g',
      start_nodes: { result_ref: '$full_text_results', limit: 1 },
      params: { max_depth: 4 },
    };
    const result = await ask({ ...soups, expand_strategy: 'intersection', graph_searches: { near }, limit: 5 });
    expect(keysOf(result)).toEqual([2, 4].map(key));
  });

  test('counts, and goes on by cursor', async () => {
    const base = { ...soups, expand_strategy: 'intersection', graph_searches: after(1, 9) };
    expect((await ask({ ...base, count: true })).hits.total).toEqual({ value: 5, relation: 'exact' });
    const order_by = [{ field: 'at', desc: true }];
    const first = await askTable('one', { ...base, order_by, limit: 2 });
    expect(keysOf(first)).toEqual([10, 8].map(key));
    const next = { ...base, order_by, limit: 9, search_after: first.hits.hits.at(-1)?._sort };
    expect(keysOf(await askTable('one', next))).toEqual([6, 4, 2].map(key));
  });

  test('with nodes that are not all known says so', async () => {
    const graph_searches = {
      pairs: {
        type: 'pattern',
        index_name: 'g',
        start_nodes: { keys: Array.from({ length: count }, (_, at) => key(at)) },
        pattern: [{ alias: 'a' }, { alias: 'b', edge: {} }],
        params: { max_results: 2 },
      },
    };
    const result = await ask({ ...soups, expand_strategy: 'intersection', graph_searches });
    expect(result.partial).toBe(true);
    expect(result.hits.total.relation).toBe('gte');
  });
});

test.each([
  [{ ...soups, expand_strategy: 'both', graph_searches: after(0, 1) }, 'union, intersection'],
  [{ ...soups, expand_strategy: 'union' }, 'needs "graph_searches"'],
  [{ ...soups, expand_strategy: 'union', graph_searches: after(0, 1), count: true }, '"count"'],
  [{ ...soups, expand_strategy: 'union', graph_searches: after(0, 1), offset: 1 }, '"offset"'],
  [{ ...soups, expand_strategy: 'union', graph_searches: after(0, 1), order_by: [{ field: 'at' }] }, '"order_by"'],
  [{ expand_strategy: 'intersection', graph_searches: after(0, 1) }, 'needs a query'],
  [
    {
      ...soups,
      limit: 0,
      expand_strategy: 'intersection',
      graph_searches: { n: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref: '$full_text_results' } } },
    },
    'which has none',
  ],
  [
    {
      ...soups,
      expand_strategy: 'union',
      graph_searches: after(0, 1),
      join: { right_table: 'three', on: { left_field: 'at', right_field: 'at' } },
    },
    '"join"',
  ],
])('%j is refused', async (body, named) => {
  const answer = await server.send('POST', '/db/v1/tables/one/query', body);
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
  expect(String(answer.body.message)).toContain(named);
});
