import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
let roads: GraphTable;

/** Roads between towns: type, length. */
const lengths: Readonly<Record<string, Readonly<Record<string, readonly [type: string, length: number]>>>> = {
  aachen: { bonn: ['road', 0.25], cologne: ['rail', 0.5] },
  bonn: { cologne: ['road', 0.5], frankfurt: ['rail', 1] },
  cologne: { duisburg: ['road', 0.5], frankfurt: ['road', 0.75] },
  duisburg: { aachen: ['road', 0.75] },
  frankfurt: { munich: ['rail', 0.5], nowhere: ['road', 0.25] },
};

beforeAll(async () => {
  server = await startTestServer();
  roads = await GraphTable.create(server, 'roads', { shards: 3 });
  const inserts = Object.entries(lengths).map(([town, ends]) => {
    const of = (wanted: string) =>
      Object.entries(ends).flatMap(([target, [type, weight]]) => (type === wanted ? [{ target, weight }] : []));
    return [town, { name: town, letters: town.length, _edges: { g: { road: of('road'), rail: of('rail') } } }] as const;
  });
  const documents = { ...Object.fromEntries(inserts), munich: { name: 'munich', letters: 6 } };
  expect(await roads.batch({ inserts: documents, sync_level: 'full_index' })).toMatchObject({ status: 201 });
});
afterAll(() => server[Symbol.asyncDispose]());

test('distances and weights are shown as they add up, not as 32-bit numbers are kept', async () => {
  const table = await GraphTable.create(server, 'decimal');
  const to = (target: string, weight: number) => ({ _edges: { g: { to: [{ target, weight }] } } });
  const inserts = { a: to('b', 0.9), b: to('c', 0.2), big: to('bigger', 16_777_216), bigger: to('biggest', 1) };
  await table.batch({ inserts, sync_level: 'full_index' });
  const ask = async (search: object) => {
    const graph_searches = { s: { index_name: 'g', ...search } };
    const { body } = await server.send<{ responses: [{ graph_results: { s: object } }] }>('POST', '/db/v1/query', {
      table: 'decimal',
      graph_searches,
    });
    return body.responses[0].graph_results.s;
  };
  const ab = { start_nodes: { keys: ['a'] } };
  expect(await ask({ type: 'traverse', ...ab })).toMatchObject({
    nodes: [
      { key: 'b', distance: 0.9 },
      { key: 'c', distance: 1.1 },
    ],
  });
  expect(await ask({ type: 'shortest_path', ...ab, target_nodes: { keys: ['c'] } })).toMatchObject({
    paths: [{ total_weight: 1.1 }],
  });
  const pattern = [{ alias: 'x' }, { alias: 'y', edge: { min_hops: 2, max_hops: 2 } }];
  expect(await ask({ type: 'pattern', ...ab, pattern })).toMatchObject({
    matches: [{ bindings: { y: { key: 'c', distance: 1.1 } } }],
  });
  expect(await ask({ type: 'traverse', start_nodes: { keys: ['big'] } })).toMatchObject({
    nodes: [{ distance: 16_777_216 }, { distance: 16_777_217 }],
  });
});

describe('a traversal', () => {
  test('finds nodes by depth and key, without its starts', async () => {
    expect(await roads.reached({ start: 'aachen', max_depth: 2 })).toEqual([
      ['bonn', 1],
      ['cologne', 1],
      ['duisburg', 2],
      ['frankfurt', 2],
    ]);
    expect(await roads.reached({ start: 'munich', direction: 'in' })).toEqual([
      ['frankfurt', 1],
      ['bonn', 2],
      ['cologne', 2],
      ['aachen', 3],
    ]);
    expect(
      await roads.reached({ start_nodes: { keys: ['munich', 'aachen'] }, direction: 'both', max_depth: 1 }),
    ).toEqual([
      ['bonn', 1],
      ['cologne', 1],
      ['duisburg', 1],
      ['frankfurt', 1],
    ]);
    expect(await roads.reached({ start: 'nobody' })).toEqual([]);
  });

  test('follows edges of some types and weights only', async () => {
    expect(await roads.reached({ start: 'aachen', edge_types: ['rail'] })).toEqual([['cologne', 1]]);
    expect(await roads.reached({ start: 'aachen', min_weight: 0.5, max_weight: 0.5 })).toEqual([
      ['cologne', 1],
      ['duisburg', 2],
    ]);
    expect(await roads.reached({ start: 'aachen', edge_types: ['path'] })).toEqual([]);
  });

  test('says how it came to a node, and counts all where it shows some', async () => {
    const { results, total } = await roads.traverse({ start: 'aachen', include_paths: true, max_results: 3 });
    expect(total).toBe(6);
    expect(results.map(({ key, distance, path }) => ({ key, distance, path }))).toEqual([
      { key: 'bonn', distance: 0.25, path: ['aachen', 'bonn'] },
      { key: 'cologne', distance: 0.5, path: ['aachen', 'cologne'] },
      { key: 'duisburg', distance: 1, path: ['aachen', 'cologne', 'duisburg'] },
    ]);
  });

  test('finds a node once for each way to it where it is asked to', async () => {
    const asked = { start: 'aachen', max_depth: 2, deduplicate_nodes: false, include_paths: true };
    const { results } = await roads.traverse(asked);
    expect(results.map(({ path }) => path?.join('>'))).toEqual([
      'aachen>bonn',
      'aachen>cologne',
      'aachen>bonn>cologne',
      'aachen>bonn>frankfurt',
      'aachen>cologne>duisburg',
      'aachen>cologne>frankfurt',
    ]);
  });

  test('shows the documents of its nodes', async () => {
    const asked = { start: 'frankfurt', max_depth: 1, include_documents: true, fields: ['letters'] };
    expect((await roads.traverse(asked)).results).toMatchObject([
      { key: 'munich', document: { letters: 6 } },
      { key: 'nowhere', depth: 1 },
    ]);
    expect((await roads.traverse(asked)).results[1]).not.toHaveProperty('document');
  });

  test('does not walk through a node that its filter leaves out', async () => {
    const short = { node_filter: { filter_query: { range: { letters: { lte: 8 } } } } };
    expect(await roads.reached({ start: 'aachen', ...short })).toEqual([
      ['bonn', 1],
      ['cologne', 1],
      ['duisburg', 2],
    ]);
    expect(await roads.reached({ start: 'aachen', node_filter: { filter_prefix: 'b' } })).toEqual([['bonn', 1]]);
  });

  test.each([
    [{}, '"start"'],
    [{ start: 'a', start_nodes: { keys: ['b'] } }, 'either'],
    [{ start_nodes: { keys: [] } }, '"keys"'],
    [{ start_nodes: { result_ref: '$fused_results' } }, 'result_ref'],
    [{ start: 'a', max_depth: 0 }, '"max_depth"'],
    [{ start: 'a', max_depth: 51 }, '"max_depth"'],
    [{ start: 'a', direction: 'up' }, '"direction"'],
    [{ start: 'a', depth: 2 }, '"depth"'],
    [{ start: 'a', fields: ['n'] }, '"include_documents"'],
    [{ start: 'a', node_filter: { filter_query: { nothing: 1 } } }, 'nothing'],
    [{ start: '' }, 'key'],
  ])('%j is refused', async (body, named) => {
    const answer = await server.send('POST', `${roads.path}/indexes/g/traverse`, body);
    expect(answer.status).toBe(400);
    expect(String(answer.body.message)).toContain(named);
  });
});

describe('the shortest path', () => {
  const route = async (body: object) => (await roads.paths(body)).paths.map(({ nodes }) => nodes.join('>'));

  test('has the fewest edges, the least sum, or the greatest product', async () => {
    const ends = { source: 'aachen', target: 'frankfurt' };
    expect(await route(ends)).toEqual(['aachen>bonn>frankfurt']);
    expect((await roads.paths({ ...ends, weight_mode: 'min_weight' })).paths).toMatchObject([
      { nodes: ['aachen', 'bonn', 'frankfurt'], total_weight: 1.25, length: 2 },
    ]);
    expect((await roads.paths({ ...ends, weight_mode: 'max_weight' })).paths).toMatchObject([
      { nodes: ['aachen', 'cologne', 'frankfurt'], total_weight: 0.375, length: 2 },
    ]);
  });

  test('comes with its next best', async () => {
    const asked = { source: 'aachen', target: 'frankfurt', weight_mode: 'min_weight', k: 5 };
    expect((await roads.paths(asked)).paths).toMatchObject([
      { nodes: ['aachen', 'bonn', 'frankfurt'], total_weight: 1.25 },
      { nodes: ['aachen', 'cologne', 'frankfurt'], total_weight: 1.25 },
      { nodes: ['aachen', 'bonn', 'cologne', 'frankfurt'], total_weight: 1.5 },
    ]);
  });

  test('names its edges', async () => {
    const { paths } = await roads.paths({ source: 'bonn', target: 'munich' });
    expect(paths[0]?.edges).toMatchObject([
      { source: 'bonn', target: 'frankfurt', type: 'rail', weight: 1 },
      { source: 'frankfurt', target: 'munich', type: 'rail', weight: 0.5 },
    ]);
  });

  test('is empty from a node to itself, and absent where no way leads', async () => {
    expect((await roads.paths({ source: 'bonn', target: 'bonn' })).paths).toMatchObject([
      { nodes: ['bonn'], length: 0 },
    ]);
    expect((await roads.paths({ source: 'munich', target: 'bonn' })).paths).toEqual([]);
    expect(await route({ source: 'aachen', target: 'munich', max_depth: 2 })).toEqual([]);
  });

  test('keeps to the bound on its edges where a longer way would weigh less', async () => {
    const table = await GraphTable.create(server, 'bounded', { shards: 2 });
    const edge = (target: string, weight: number) => ({ target, weight });
    await table.batch({
      inserts: {
        a: { _edges: { g: { to: [edge('m', 0.1), edge('z', 0.9)] } } },
        m: { _edges: { g: { to: [edge('n', 0.1)] } } },
        n: { _edges: { g: { to: [edge('z', 0.1)] } } },
      },
    });
    const asked = { source: 'a', target: 'z', weight_mode: 'min_weight' };
    expect((await table.paths(asked)).paths[0]?.nodes).toEqual(['a', 'm', 'n', 'z']);
    expect((await table.paths({ ...asked, max_depth: 2 })).paths[0]?.nodes).toEqual(['a', 'z']);
  });

  test('says how long the search took, by both names', async () => {
    const table = await GraphTable.create(server, 'timed');
    await table.batch({ inserts: { a: { _edges: { g: { to: [{ target: 'b' }] } } } } });
    const { body } = await server.send('POST', `${table.path}/indexes/g/shortest-path`, { source: 'a', target: 'b' });
    expect(body).toMatchObject({ paths_found: 1, weight_mode: 'min_hops', search_time_ms: body.took });
    expect(Number.isInteger(body.search_time_ms)).toBe(true);
  });

  test('names an edge whose weight the mode cannot take', async () => {
    const table = await GraphTable.create(server, 'heavy');
    await table.batch({ inserts: { a: { _edges: { g: { to: [{ target: 'b', weight: 2 }] } } } } });
    const asked = { source: 'a', target: 'b', weight_mode: 'max_weight' };
    const answer = await server.send('POST', `${table.path}/indexes/g/shortest-path`, asked);
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
    expect(String(answer.body.message)).toContain('"to" from "a" to "b" has the weight 2');
  });
});

describe('graph searches of a query', () => {
  interface Result {
    hits: { total: { value: number }; hits: { _id: string }[] };
    graph_results: Record<
      string,
      { type: string; total: number; nodes?: { key: string; depth: number }[]; paths?: { nodes: string[] }[] }
    >;
  }

  async function query(body: object): Promise<Result> {
    for (;;) {
      const answer = await server.send<{ responses: Result[] }>('POST', `${roads.path}/query`, body);
      expect(answer).toMatchObject({ status: 200 });
      const [result] = answer.body.responses;
      if (result && !JSON.stringify(result).includes('"partial":"indexing"')) return result;
    }
  }

  const from = (...keys: string[]) => ({ index_name: 'g', start_nodes: { keys } });

  test('are answered by name, without hits where nothing else is asked for', async () => {
    const { hits, graph_results } = await query({
      graph_searches: {
        near: { type: 'neighbors', ...from('aachen') },
        far: { type: 'traverse', ...from('aachen'), params: { max_depth: 2, edge_types: ['road'] } },
        way: { type: 'shortest_path', ...from('aachen'), target_nodes: { keys: ['munich', 'duisburg', 'nobody'] } },
        ways: {
          type: 'k_shortest_paths',
          ...from('aachen'),
          target_nodes: { keys: ['frankfurt'] },
          params: { k: 2, weight_mode: 'min_weight' },
        },
      },
    });
    expect(hits).toMatchObject({ total: { value: 0 }, hits: [] });
    expect(graph_results).toMatchObject({
      near: { type: 'neighbors', total: 2, nodes: [{ key: 'bonn' }, { key: 'cologne' }] },
      far: { total: 2, nodes: [{ key: 'bonn' }, { key: 'cologne', depth: 2 }] },
      way: {
        paths: [{ nodes: ['aachen', 'cologne', 'duisburg'] }, { nodes: ['aachen', 'bonn', 'frankfurt', 'munich'] }],
      },
      ways: { paths: [{ nodes: ['aachen', 'bonn', 'frankfurt'] }, { nodes: ['aachen', 'cologne', 'frankfurt'] }] },
    });
  });

  test('begin at what other searches of the request have found, in the order that needs', async () => {
    const { hits, graph_results } = await query({
      full_text_search: { query: 'name:bonn OR name:munich' },
      graph_searches: {
        after: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref: '$graph_results.first' } },
        first: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref: '$full_text_results' } },
        fused: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref: '$fused_results', limit: 1 } },
      },
      order_by: [{ field: 'name' }],
    });
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['bonn', 'munich']);
    expect(graph_results).toMatchObject({
      first: { nodes: [{ key: 'cologne' }, { key: 'frankfurt' }] },
      after: { nodes: [{ key: 'duisburg' }, { key: 'munich' }, { key: 'nowhere' }] },
      fused: { nodes: [{ key: 'cologne' }, { key: 'frankfurt' }] },
    });
  });

  test('for paths show their nodes, and how each end was come to', async () => {
    const params = { weight_mode: 'min_weight' };
    const target_nodes = { keys: ['duisburg', 'nowhere'] };
    const way = {
      type: 'shortest_path',
      ...from('aachen'),
      fields: ['letters'],
      target_nodes,
      params,
      include_documents: true,
    };
    const { graph_results } = await query({ graph_searches: { way } });
    const [toDuisburg, toNowhere] = [
      ['aachen', 'cologne', 'duisburg'],
      ['aachen', 'bonn', 'frankfurt', 'nowhere'],
    ];
    const nodes = graph_results.way?.nodes as { key: string; path_edges?: { source: string; target: string }[] }[];
    expect(nodes).toMatchObject([
      { key: 'aachen', depth: 0, distance: 0, document: { letters: 6 } },
      { key: 'cologne', depth: 1, distance: 0.5, document: { letters: 7 } },
      { key: 'duisburg', depth: 2, distance: 1, path: toDuisburg, document: { letters: 8 } },
      { key: 'bonn', depth: 1, distance: 0.25, document: { letters: 4 } },
      { key: 'frankfurt', depth: 2, distance: 1.25, document: { letters: 9 } },
      { key: 'nowhere', depth: 3, distance: 1.5, path: toNowhere },
    ]);
    const edges = nodes.map(({ path_edges = [] }) => path_edges.map(({ source, target }) => `${source}>${target}`));
    expect(edges[2]).toEqual(['aachen>cologne', 'cologne>duisburg']);
    expect(edges.map((each) => each.length)).toEqual([0, 0, 2, 0, 0, 3]);
    expect(nodes[5]).not.toHaveProperty('document');
    expect(JSON.stringify(nodes)).not.toContain('evidence');
  });

  test('for paths name the edges that have metadata as evidence', async () => {
    const documented = await GraphTable.create(server, 'documented');
    const lead = (target: string, metadata?: object) => ({ _edges: { g: { to: [{ target, metadata }] } } });
    const inserts = { a: lead('b'), b: lead('c', { page: 7 }), c: {} };
    await documented.batch({ inserts, sync_level: 'full_index' });
    const way = { type: 'shortest_path', ...from('a'), target_nodes: { keys: ['c'] } };
    const { body } = await server.send<{ responses: Result[] }>('POST', `${documented.path}/query`, {
      graph_searches: { way },
    });
    const nodes = body.responses[0]?.graph_results.way?.nodes as { evidence?: object }[];
    expect(nodes.map(({ evidence }) => evidence)).toEqual([
      undefined,
      undefined,
      { path_edges: [expect.objectContaining({ source: 'b', target: 'c', metadata: { page: 7 } })] },
    ]);
  });

  test('begin at nodes that a filter lets through', async () => {
    const start_nodes = { keys: ['aachen', 'munich'], node_filter: { filter_query: { term: { name: 'munich' } } } };
    const params = { direction: 'in' };
    const { graph_results } = await query({
      graph_searches: { near: { type: 'neighbors', index_name: 'g', start_nodes, params } },
    });
    expect(graph_results.near).toMatchObject({ nodes: [{ key: 'frankfurt' }] });
  });

  test('keep the filter of their nodes beside one that is null', async () => {
    const near = { type: 'neighbors', ...from('aachen'), node_filter: { filter_prefix: 'c' } };
    const { graph_results } = await query({
      graph_searches: { near: { ...near, params: { node_filter: null } }, far: { ...near, params: {} } },
    });
    const found = { nodes: [{ key: 'cologne' }] };
    expect(graph_results).toMatchObject({ near: found, far: found });
  });

  test('leave the counts of values that are asked for beside them', async () => {
    const { aggregations } = (await query({
      graph_searches: { near: { type: 'neighbors', ...from('aachen') } },
      facets: { letters: { path: '/letters', size: 1 } },
    })) as Result & { aggregations?: object };
    expect(aggregations).toMatchObject({ letters: { buckets: [{ key: 6, doc_count: 2 }] } });
  });

  test.each([
    ['$embeddings_results.x', { limit: 5 }, 'searches no such index'],
    ['$fused_results', {}, 'which has none'],
    ['$full_text_results', { full_text_search: { query: 'name:bonn' }, count: true }, 'which has none'],
    ['$full_text_results', { full_text_search: { query: 'name:bonn' }, limit: 0 }, 'which has none'],
  ])('do not begin at %s beside %j', async (result_ref, more, named) => {
    const graph_searches = { near: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref } } };
    const answer = await server.send('POST', `${roads.path}/query`, { graph_searches, ...more });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
    expect(String(answer.body.message)).toContain(named);
  });

  test('may write out what is usual where it says nothing', async () => {
    const params = { weight_mode: 'min_hops', k: 1, max_results: 100, deduplicate_nodes: true };
    const toMunich = { keys: ['munich'] };
    for (const search of [
      { type: 'traverse' },
      { type: 'neighbors' },
      { type: 'shortest_path', target_nodes: toMunich },
      { type: 'k_shortest_paths', target_nodes: toMunich },
    ]) {
      const asked = { ...search, ...from('aachen') };
      const { graph_results } = await query({ graph_searches: { short: asked, long: { ...asked, params } } });
      expect({ ...graph_results.long, took: 0 }).toEqual({ ...graph_results.short, took: 0 });
    }
  });

  test.each([
    [{ near: { type: 'neighbors', index_name: 'no', start_nodes: { keys: ['a'] } } }, '"no"'],
    [{ near: { type: 'near', index_name: 'g' } }, '"type"'],
    [{ near: { type: 'neighbors', ...from('a'), params: { algorithm: 'pagerank' } } }, '"algorithm" is not built'],
    [{ near: { type: 'neighbors', index_name: 'g', start_nodes: {} } }, '"keys"'],
    [{ near: { type: 'shortest_path', ...from('a') } }, '"target_nodes"'],
    [{ near: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref: '$results' } } }, '"result_ref"'],
    [{ near: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref: '$graph_results.x' } } }, 'names no'],
    [{ near: { type: 'neighbors', index_name: 'g', start_nodes: { result_ref: '$graph_results.near' } } }, 'circle'],
    [{ near: { type: 'neighbors', ...from('a'), params: { max_depth: 2 } } }, '"max_depth"'],
    [{ near: { type: 'traverse', ...from('a'), target_nodes: { keys: ['b'] } } }, '"target_nodes" says nothing'],
    [{ near: { type: 'traverse', ...from('a'), params: { weight_mode: 'min_weight' } } }, '"weight_mode" says nothing'],
    [{ near: { type: 'neighbors', ...from('a'), params: { k: 2 } } }, '"k" says nothing'],
    [{ way: { type: 'shortest_path', ...from('a'), target_nodes: { keys: ['b'] }, params: { k: 2 } } }, '"k"'],
    [
      { way: { type: 'k_shortest_paths', ...from('a'), target_nodes: { keys: ['b'] }, params: { max_results: 1 } } },
      '"max_results" says nothing',
    ],
    [{ near: { type: 'traverse', index_name: 'g', start_nodes: { keys: ['a', 'b'], limit: 1 } } }, '"limit"'],
    [
      {
        near: {
          type: 'traverse',
          ...from('a'),
          node_filter: { filter_prefix: 'b' },
          params: { node_filter: { filter_prefix: 'c' } },
        },
      },
      '"node_filter"',
    ],
  ])('%j are refused', async (graph_searches, named) => {
    const answer = await server.send('POST', `${roads.path}/query`, { graph_searches });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
    expect(String(answer.body.message)).toContain(named);
  });
});

test('the edges of a hub come in pages, each of which costs its own size', async () => {
  const hub = await GraphTable.create(server, 'hub', { shards: 3 });
  const keys = Array.from({ length: 5_000 }, (_, at) => `s${String(at).padStart(5, '0')}`);
  await hub.link({ hub: keys, s00007: ['hub'] });
  const found: string[] = [];
  let after = '';
  for (let pages = 0; ; pages += 1) {
    const url = `${hub.path}/indexes/g/edges?key=hub&direction=both&limit=700${after}`;
    const answer = await server.send<{
      edges: { source: string; target: string }[];
      total: number;
      next?: string;
      partial?: string;
    }>('GET', url);
    expect(answer.status).toBe(200);
    if (answer.body.partial === 'indexing') continue;
    expect(answer.body.total).toBe(5_001);
    expect(answer.body.edges.length).toBeLessThanOrEqual(700);
    found.push(...answer.body.edges.map(({ source, target }) => `${source}>${target}`));
    if (answer.body.next === undefined) {
      expect(pages).toBe(7);
      break;
    }
    after = `&after=${encodeURIComponent(answer.body.next)}`;
  }
  expect(found).toEqual([...keys.map((key) => `hub>${key}`), 's00007>hub']);
});
