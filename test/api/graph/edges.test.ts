import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

let tables = 0;
const newTable = (options?: Parameters<typeof GraphTable.create>[2]) => {
  tables += 1;
  return GraphTable.create(server, `t${tables}`, options);
};

describe('the configuration of a graph index', () => {
  test.each([
    [{ template: 7 }, '"template"'],
    [{ template: '{{#if}}' }, 'line 1'],
    [{ summarizer: 'a model' }, '"summarizer"'],
    [{ summarizer: { provider: 'service' } }, '"summarizer.model"'],
    [{ resolvers: [{ table: 'people' }] }, '"name"'],
    [{ resolvers: [{ name: 'people', tabel: 'people' }] }, 'Did you mean "table"?'],
    [{ nodes: { model: 'external' } }, '"nodes"'],
    [{ edge: {} }, '"edge"'],
    [{ context: {} }, '"context"'],
    [{ artifact: {} }, '"artifact"'],
    [{ algebraic_planning: true }, '"algebraic_planning"'],
    [{ ttl_duration: 'soon' }, '"ttl_duration"'],
    [{ ttl_duration: '0s' }, '"ttl_duration"'],
    [{ max_edges_per_document: -1 }, '"max_edges_per_document"'],
    [{ edge_types: ['likes'] }, '"edge_types"'],
    [{ edge_types: [{ name: 'likes', topolgy: 'tree' }] }, '"topology"'],
    [{ edge_types: [{ name: 'likes' }, { name: 'likes' }] }, '"likes" twice'],
    [{ edge_types: [{ name: 'likes', min_weight: 2, max_weight: 1 }] }, '"max_weight"'],
    [{ edge_types: [{ name: 'likes', field: 'a[0]' }] }, '"field"'],
    [{ ttl: '1d' }, '"ttl"'],
  ])('%j is refused by name', async (config, named) => {
    const { path } = await newTable();
    const answer = await server.send('POST', `${path}/indexes/other`, { type: 'graph', ...config });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect(String(answer.body.message)).toContain(named);
  });

  test('keeps and shows the members that clients go by, without credentials that are written out', async () => {
    const { path } = await newTable();
    const kept = {
      description: 'who knows whom',
      version: 3,
      template: '{{name}}',
      resolvers: [{ name: 'people', table: 'people', candidate_search: 'prefix', candidate_limit: 5 }],
      algebraic_planning: { enabled: true },
    };
    const summarizer = { provider: 'openai', model: 'm', max_tokens: 100, url: 'http://127.0.0.1:9/v1' };
    const config = { type: 'graph', ...kept, summarizer: { ...summarizer, api_key: 'k-canary' } };
    const created = await server.send('POST', `${path}/indexes/known`, config);
    expect(created).toMatchObject({ status: 201, body: { ...kept, summarizer } });
    const details = (await server.send('GET', `${path}/indexes/known`)).body;
    const record = (await server.send('GET', path)).body;
    expect(details).toMatchObject({ config: { ...kept, summarizer } });
    expect(record).toMatchObject({ indexes: { known: { ...kept, summarizer } } });
    for (const shown of [created.body, details, record]) expect(JSON.stringify(shown)).not.toContain('canary');
    expect(await server.send('POST', `${path}/indexes/known`, config)).toMatchObject({ status: 200 });
  });

  test('is shown with every member filled', async () => {
    const { path } = await newTable({
      graph: { ttl_duration: '30d', edge_types: [{ name: 'goes_with', max_weight: 1 }] },
    });
    const { config } = (await server.send('GET', `${path}/indexes/g`)).body as { config: unknown };
    expect(config).toMatchObject({
      type: 'graph',
      ttl_duration: '30d',
      max_edges_per_document: 0,
      edge_types: [
        {
          name: 'goes_with',
          topology: 'graph',
          min_weight: 0,
          max_weight: 1,
          allow_self_loops: true,
          required_metadata: [],
        },
      ],
    });
  });
});

describe('edges of a document', () => {
  test('are given with it, kept when left out, replaced by others, and deleted by null', async () => {
    const table = await newTable();
    const put = (document: object) => table.batch({ inserts: { a: document } });
    await put({ n: 1, _edges: { g: { likes: [{ target: 'b', weight: 0.5, metadata: { since: 2020 } }] } } });
    expect(await table.edges('a')).toMatchObject([
      { source: 'a', target: 'b', type: 'likes', weight: 0.5, metadata: { since: 2020 } },
    ]);
    await put({ n: 2 });
    await put({ n: 3, _edges: {} });
    await put({ n: 4, _edges: null });
    expect(await table.arrows('a')).toEqual(['a>b']);
    await put({ n: 5, _edges: { g: { knows: [{ target: 'c' }, { target: 'd' }] } } });
    expect(await table.arrows('a')).toEqual(['a>c', 'a>d']);
    await put({ n: 6, _edges: { g: null } });
    expect(await table.arrows('a')).toEqual([]);
    expect((await server.send('GET', `${table.path}/lookup/a`)).body).toEqual({ n: 6 });
  });

  test('are cleared by an empty list of types', async () => {
    const table = await newTable();
    await table.link({ a: ['b'] });
    await table.batch({ inserts: { a: { _edges: { g: {} } } } });
    expect(await table.arrows('a')).toEqual([]);
  });

  test('of one target given twice are one, as given last', async () => {
    const table = await newTable();
    const twice = [
      { target: 'b', weight: 0.25 },
      { target: 'b', weight: 0.75 },
    ];
    await table.batch({ inserts: { a: { _edges: { g: { likes: twice } } } } });
    expect(await table.edges('a')).toMatchObject([{ target: 'b', weight: 0.75 }]);
  });

  test.each([
    [{ nowhere: {} }, 'invalid_edge', 'names no index'],
    [{ full_text_index_v0: {} }, 'invalid_edge', 'not a graph'],
    [{ g: [] }, 'invalid_edge', 'object of types'],
    [{ g: { likes: {} } }, 'invalid_edge', 'array of edges'],
    [{ g: { likes: ['b'] } }, 'invalid_edge', 'not an object'],
    [{ g: { likes: [{}] } }, 'invalid_edge', 'without "target"'],
    [{ g: { likes: [{ target: '' }] } }, 'invalid_edge', 'is empty'],
    [{ g: { likes: [{ target: 7 }] } }, 'invalid_edge', '"target" is not a string'],
    [{ g: { likes: [{ target: 'b', weight: 'much' }] } }, 'invalid_edge', '"weight"'],
    [{ g: { likes: [{ target: 'b', weight: -1 }] } }, 'invalid_edge', 'weight -1'],
    [{ g: { likes: [{ target: 'b', weight: 1.5 }] } }, 'invalid_edge', '"max_weight" is 1'],
    [{ g: { likes: [{ target: 'b', metadata: [] }] } }, 'invalid_edge', '"metadata"'],
    [{ g: { likes: [{ target: 'b', wieght: 1 }] } }, 'invalid_edge', '"wieght"'],
    [{ g: { likes: [{ target: 'a' }] } }, 'invalid_edge', 'its own document'],
    [{ g: { hates: [{ target: 'b' }] } }, 'invalid_edge', '"edge_types"'],
    [{ g: { cites: [{ target: 'b', metadata: { page: null } }] } }, 'invalid_edge', '"page"'],
    [{ g: { likes: [{ target: 'b' }, { target: 'c' }, { target: 'd' }] } }, 'too_many_edges', 'takes 2'],
  ])('%j are refused, with index and document named, and nothing is written', async (edges, code, what) => {
    const table = await newTable({
      graph: {
        max_edges_per_document: 2,
        edge_types: [
          { name: 'likes', max_weight: 1, allow_self_loops: false },
          { name: 'cites', required_metadata: ['page'] },
        ],
      },
    });
    const answer = await table.batch({ inserts: { b: { n: 1 }, a: { _edges: edges } } });
    expect(answer).toMatchObject({ status: 400, body: { code } });
    expect(String(answer.body.message)).toContain('document "a": "_edges.');
    expect(String(answer.body.message)).toContain(what);
    expect((await server.send('GET', `${table.path}/lookup/b`)).status).toBe(404);
  });

  test('beside a vector, in any order of members, are cut from the document', async () => {
    const table = await newTable();
    await server.send('POST', `${table.path}/indexes/v`, { type: 'embeddings', external: true, dimension: 1 });
    await table.batch({
      inserts: {
        a: { _edges: { g: { to: [{ target: 'x' }] } }, n: 1, _embeddings: { v: [1] } },
        b: { _embeddings: { v: [1] }, _edges: { g: { to: [{ target: 'x' }] } } },
      },
    });
    expect((await server.send('GET', `${table.path}/lookup/a`)).body).toEqual({ n: 1 });
    expect((await server.send('GET', `${table.path}/lookup/b`)).body).toEqual({});
    expect(await table.arrows('x', '&direction=in')).toEqual(['a>x', 'b>x']);
  });
});

describe('edges of a field', () => {
  const fields = { graph: { edge_types: [{ name: 'cites', field: 'refs.keys' }, { name: 'to' }] } };

  test('follow the document, beside those that are given', async () => {
    const table = await newTable(fields);
    await table.batch({
      inserts: { a: { refs: { keys: ['b', 'c', 'b'] }, _edges: { g: { to: [{ target: 'z' }] } } } },
    });
    expect(await table.arrows('a')).toEqual(['a>b', 'a>c', 'a>z']);
    await table.batch({ inserts: { a: { refs: { keys: 'd' } } } });
    expect(await table.arrows('a')).toEqual(['a>d', 'a>z']);
    await table.batch({ transforms: [{ key: 'a', operations: [{ op: '$push', path: 'refs.more', value: 1 }] }] });
    expect(await table.arrows('a')).toEqual(['a>d', 'a>z']);
    await table.batch({
      transforms: [{ key: 'a', operations: [{ op: '$set', path: 'refs.keys', value: ['e', ''] }] }],
    });
    expect(await table.arrows('a')).toEqual(['a>e', 'a>z']);
    await table.batch({ inserts: { a: { refs: { keys: null } } } });
    expect(await table.arrows('a')).toEqual(['a>z']);
  });

  test('need keys', async () => {
    const table = await newTable(fields);
    for (const keys of [7, [{ key: 'b' }], {}]) {
      const answer = await table.batch({ inserts: { a: { refs: { keys } } } });
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_edge' } });
      expect(String(answer.body.message)).toContain('"refs.keys"');
    }
  });
});

describe('a merge', () => {
  test('writes edges that differ, and leaves equal ones alone', async () => {
    const table = await newTable();
    const merge = (records: object) => server.send('POST', `${table.path}/merge`, { records });
    const record = (target: string) => ({ a: { n: 1, _edges: { g: { to: [{ target }] } } } });
    await merge(record('b'));
    expect((await merge(record('b'))).body).toMatchObject({ upserted: 0, skipped: 1 });
    expect((await merge(record('c'))).body).toMatchObject({ upserted: 1 });
    expect(await table.arrows('a')).toEqual(['a>c']);
  });
});

describe('the edges of a node', () => {
  test('are paged in order, both ways', async () => {
    const table = await newTable({ shards: 3 });
    await table.link({ hub: ['a', 'hub', 'z'], a: ['hub'], m: ['hub'], z: ['hub'] });
    const all = ['hub>a', 'hub>hub', 'hub>z', 'a>hub', 'm>hub', 'z>hub'];
    expect(await table.arrows('hub', '&direction=both')).toEqual(all);
    const paged: string[] = [];
    let after = '';
    for (let page = 0; page < 4; page += 1) {
      const url = `${table.path}/indexes/g/edges?key=hub&direction=both&limit=2${after}`;
      const { body } = await server.send<{ edges: { source: string; target: string }[]; total: number; next?: string }>(
        'GET',
        url,
      );
      expect(body.total).toBe(6);
      paged.push(...body.edges.map(({ source, target }) => `${source}>${target}`));
      if (body.next === undefined) break;
      after = `&after=${body.next}`;
      // A character that base64 does not have is not skipped.
      expect((await server.send('GET', `${url.replace(/&after=.*/, '')}${after}!`)).status).toBe(400);
    }
    expect(paged).toEqual(all);
  });

  test('of an index that is no graph, or not there, are refused', async () => {
    const { path } = await newTable();
    expect((await server.send('GET', `${path}/indexes/no/edges?key=a`)).status).toBe(404);
    expect(await server.send('GET', `${path}/indexes/full_text_index_v0/edges?key=a`)).toMatchObject({
      status: 400,
      body: { code: 'invalid_query' },
    });
    expect((await server.send('GET', `${path}/indexes/g/edges?key=a&after=zz`)).status).toBe(400);
    expect((await server.send('GET', `${path}/indexes/g/edges?key=a&direction=up`)).status).toBe(400);
  });
});

describe('the state of the index', () => {
  test('counts edges, and the nodes at their ends over all ranges', async () => {
    const table = await newTable({ shards: 3 });
    await table.link({ a: ['m', 'z'], m: ['z'], lonely: [] });
    await table.edges('a');
    expect(await table.status()).toMatchObject({
      edge_count: 3,
      total_edges: 3,
      node_count: 3,
      readiness: { state: 'ready' },
    });
  });

  test('tells how searches have ended, and how many nodes they have found', async () => {
    const table = await newTable();
    await table.link({ a: ['m', 'z'], m: ['z'] });
    const count = async () => (await table.status()).algebraic_graph.traversal;
    await table.edges('a');
    expect(await count()).toEqual({ attempted: 0, proven: 0, rejected: 0, fallback: 0, result_nodes: 0 });
    await table.reached({ start: 'a' });
    await table.reached({ start: 'a', include_documents: true });
    await table.paths({ source: 'a', target: 'z' });
    expect(await count()).toEqual({ attempted: 3, proven: 3, rejected: 0, fallback: 0, result_nodes: 6 });
    await table.batch({ inserts: { a: { _edges: { g: { to: [{ target: 'm', weight: 2 }] } } } } });
    const path = { source: 'a', target: 'm', weight_mode: 'max_weight' };
    expect(await server.send('POST', `${table.path}/indexes/g/shortest-path`, path)).toMatchObject({ status: 400 });
    expect(await count()).toMatchObject({ attempted: 4, proven: 3, rejected: 1 });
  });
});

test('vectors are shown of a table that has edges as well', async () => {
  const { path } = await newTable();
  await server.send('POST', `${path}/indexes/v`, { type: 'embeddings', external: true, dimension: 2 });
  const document = { _embeddings: { v: [1, 2] }, _edges: { g: { to: [{ target: 'b' }] } } };
  expect(await server.send('POST', `${path}/batch`, { inserts: { a: document } })).toMatchObject({ status: 201 });
  const shown = await server.send('GET', `${path}/documents/a?fields=_embeddings`);
  expect(shown).toMatchObject({ status: 200, body: { _embeddings: { v: [1, 2] } } });
});
