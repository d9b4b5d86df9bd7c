import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';
import { fused } from '../../support/vectors/vector-oracle.ts';

let server: TestServer;

interface Result {
  hits: {
    total: { value: number; relation: string };
    max_score: number;
    hits: {
      _id: string;
      _score: number;
      _index_scores?: Record<string, number>;
      _source?: object;
      _explanation?: object;
    }[];
  };
  graph_results: Record<string, { total: number; nodes: { key: string }[] }>;
  partial?: boolean;
  profile?: { legs: { name: string; kind: string; hits: number; weight: number }[]; merge: Record<string, number> };
}

/** Papers in a chain of citations: p0 -> p1 -> ... -> p9, and p0 -> p5. */
const count = 10;
const tables = { one: 1, four: 4 };

beforeAll(async () => {
  server = await startTestServer();
  for (const [name, shards] of Object.entries(tables)) {
    const table = await GraphTable.create(server, name, { shards });
    const inserts = Array.from({ length: count }, (_, at) => {
      const targets = [`p${at + 1}`, ...(at === 0 ? ['p5'] : [])].filter((key) => key !== `p${count}`);
      const cites = targets.map((target) => ({ target, weight: 0.5 }));
      const title = at % 2 === 0 ? 'graphs and trees' : 'trees';
      return [`p${at}`, { title, year: 2_000 + at, _edges: { g: { cites } } }] as const;
    });
    const ghost = [
      'q',
      { title: 'none', year: 1_990, _edges: { g: { cites: [{ target: 'ghost' }, { target: 'p9' }] } } },
    ] as const;
    const body = { inserts: Object.fromEntries([...inserts, ghost]), sync_level: 'full_index' };
    expect(await table.batch(body)).toMatchObject({ status: 201 });
  }
});
afterAll(() => server[Symbol.asyncDispose]());

async function askOne(table: string, body: object): Promise<Result> {
  const answer = await server.send<{ responses: Result[] }>('POST', `/db/v1/tables/${table}/query`, {
    wait_for_index_ms: 30_000,
    ...body,
  });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body.responses[0] as Result;
}

/** Asks the tables of one range and of four, which must say the same. */
async function ask(body: object): Promise<Result> {
  const [one, four] = [await askOne('one', body), await askOne('four', body)];
  expect(four.hits).toEqual(one.hits);
  const totals = ({ graph_results }: Result) => Object.values(graph_results ?? {}).map(({ total }) => total);
  expect(totals(four)).toEqual(totals(one));
  return one;
}

const near = (more: object = {}) => ({
  type: 'traverse',
  index_name: 'g',
  start_nodes: { keys: ['p0'] },
  params: { max_depth: 3 },
  leg: true,
  ...more,
});

describe('a graph search as a leg', () => {
  test('finds its nodes as hits, scored by their depth', async () => {
    const { hits } = await ask({ graph_searches: { near: near() }, fields: ['year'] });
    // Depths: p1 and p5 1, p2 and p6 2, p3 and p7 3.
    expect(hits.hits.map(({ _id, _score }) => [_id, _score])).toEqual([
      ['p1', 0.5],
      ['p5', 0.5],
      ['p2', 0.3333333],
      ['p6', 0.3333333],
      ['p3', 0.25],
      ['p7', 0.25],
    ]);
    expect(hits).toMatchObject({ total: { value: 6, relation: 'exact' }, max_score: 0.5 });
    expect(hits.hits[0]).toMatchObject({ _index_scores: { near: 0.5 }, _source: { year: 2_001 } });
  });

  test('scores by the distance where it is asked to', async () => {
    const { hits } = await ask({ graph_searches: { near: near({ leg: { by: 'distance' } }) }, limit: 3 });
    expect(hits.hits.map(({ _id, _score }) => [_id, _score])).toEqual([
      ['p1', 0.6666667],
      ['p5', 0.6666667],
      ['p2', 0.5],
    ]);
  });

  test('is fused with text as every other leg, with its weight', async () => {
    const text = { full_text_search: { query: 'graphs' } };
    const alone = async (body: object) =>
      (await ask({ ...body, limit: 20 })).hits.hits.map(({ _id, _score }) => ({ key: _id, score: _score }));
    const lists = { full_text: await alone(text), near: await alone({ graph_searches: { near: near() } }) };
    for (const strategy of ['rrf', 'rsf'] as const) {
      const weights = { full_text: 1, near: 2 };
      const body = { ...text, graph_searches: { near: near() }, limit: 20, merge_config: { strategy, weights } };
      const { hits } = await ask(body);
      const expected = fused(lists, { strategy, weights, rankConstant: 60 });
      expect(hits.hits.map(({ _id }) => _id)).toEqual(expected.map(({ key }) => key));
      for (const [at, { score }] of expected.entries()) expect(hits.hits[at]?._score).toBeCloseTo(score, 5);
      const both = hits.hits.find(({ _id }) => _id === 'p2');
      expect(Object.keys(both?._index_scores ?? {})).toEqual(['full_text', 'near']);
    }
  });

  test('obeys the filters of the query', async () => {
    const filter_query = { range: { year: { gte: 2_003 } } };
    const { hits } = await ask({ graph_searches: { near: near() }, filter_query });
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['p5', 'p6', 'p3', 'p7']);
    const prefixed = await ask({ graph_searches: { near: near() }, filter_prefix: 'p1' });
    expect(prefixed.hits.hits.map(({ _id }) => _id)).toEqual(['p1']);
    const excluded = await ask({ graph_searches: { near: near() }, exclusion_query: { term: { year: 2_001 } } });
    expect(excluded.hits.hits[0]?._id).toBe('p5');
  });

  test('takes all of its nodes, and shows as many as it is asked to', async () => {
    const params = { max_depth: 3, max_results: 1 };
    const { hits, graph_results } = await ask({ graph_searches: { near: near({ params }) } });
    expect(hits.total.value).toBe(6);
    expect(graph_results.near).toMatchObject({ total: 6, nodes: [{ key: 'p1' }] });
    expect(graph_results.near?.nodes.length).toBe(1);
  });

  test('has no hit for a key without a document', async () => {
    const { hits, graph_results } = await ask({ graph_searches: { near: near({ start_nodes: { keys: ['q'] } }) } });
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['p9']);
    expect(graph_results.near?.nodes.map(({ key }) => key)).toEqual(['ghost', 'p9']);
  });

  test('may begin at the nodes of another graph search', async () => {
    const first = { type: 'neighbors', index_name: 'g', start_nodes: { keys: ['p0'] } };
    const leg = near({ type: 'neighbors', start_nodes: { result_ref: '$graph_results.first' }, params: {} });
    const { hits } = await ask({ graph_searches: { leg, first } });
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['p2', 'p6']);
  });

  test('explains itself, and has its row in the profile', async () => {
    const text = { full_text_search: { query: 'graphs' } };
    const { hits, profile } = await ask({ ...text, graph_searches: { near: near() }, explain: true, profile: true });
    expect(JSON.stringify(hits.hits[0]?._explanation)).toContain('near: rank');
    expect(profile?.legs).toMatchObject([
      { name: 'full_text', kind: 'full_text' },
      { name: 'near', kind: 'graph', weight: 1, hits: 6 },
    ]);
    expect(profile?.merge).toMatchObject({ graph_hits: 6, semantic_hits: 0, full_text_hits: 5 });
  });

  test('is cut by a pruner, and counted', async () => {
    const { hits } = await ask({ graph_searches: { near: near() }, pruner: { min_absolute_score: 0.3 } });
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['p1', 'p5', 'p2', 'p6']);
    expect((await ask({ graph_searches: { near: near() }, count: true })).hits.total.value).toBe(6);
  });

  test('shows nothing of a document that was deleted, or no longer matches', async () => {
    const table = await GraphTable.create(server, 'changing', { shards: 2 });
    await table.link({ a: ['b', 'c', 'd'], b: [], c: [], d: [] });
    await table.batch({ deletes: ['b'] });
    const body = { graph_searches: { near: near({ start_nodes: { keys: ['a'] } }) } };
    expect((await askOne('changing', body)).hits.hits.map(({ _id }) => _id)).toEqual(['c', 'd']);
  });

  test.each([
    [{ near: near({ leg: 'yes' }) }, {}, '"leg"'],
    [{ near: near({ leg: { by: 'weight' } }) }, {}, '"by"'],
    [{ near: near({ type: 'shortest_path', target_nodes: { keys: ['p3'] } }) }, {}, '"leg" belongs'],
    [
      { near: near({ start_nodes: { result_ref: '$full_text_results' } }) },
      { full_text_search: { query: 'graphs' } },
      'cannot begin at hits',
    ],
    [{ full_text: near() }, { full_text_search: { query: 'graphs' } }, 'another name'],
    [{ near: near() }, { order_by: [{ field: 'year' }] }, '"order_by"'],
    [{ near: near() }, { offset: 2 }, '"offset"'],
    [{ near: near() }, { merge_config: { weights: { far: 1 } } }, '"far"'],
  ])('%j is refused', async (graph_searches, more, named) => {
    const answer = await server.send('POST', '/db/v1/tables/one/query', { graph_searches, ...more });
    expect(answer.status).toBe(400);
    expect(String(answer.body.message)).toContain(named);
  });
});
