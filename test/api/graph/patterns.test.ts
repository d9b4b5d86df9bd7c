import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
let people: GraphTable;

interface Node {
  key: string;
  depth: number;
  distance: number;
  document?: object;
}

interface FoundMatches {
  type: string;
  total: number;
  partial?: string;
  matches: { bindings: Record<string, Node>; path?: { source: string; target: string; type: string }[] }[];
}

/** Acquaintances and employers: type, target, weight. */
const edges: Readonly<Record<string, readonly (readonly [type: string, target: string, weight: number])[]>> = {
  ann: [
    ['knows', 'bob', 0.5],
    ['knows', 'cid', 0.25],
    ['works', 'acme', 1],
  ],
  bob: [
    ['knows', 'cid', 1],
    ['works', 'acme', 1],
  ],
  cid: [
    ['knows', 'ann', 0.5],
    ['works', 'zeta', 1],
  ],
  dan: [['knows', 'ghost', 1]],
};

beforeAll(async () => {
  server = await startTestServer();
  people = await GraphTable.create(server, 'people', { shards: 3 });
  const inserts: Record<string, object> = { acme: { kind: 'firm', town: 'bonn' }, zeta: { kind: 'firm', town: 'ulm' } };
  for (const [key, list] of Object.entries(edges)) {
    const ofType = (wanted: string) =>
      list.flatMap(([type, target, weight]) => (type === wanted ? [{ target, weight }] : []));
    inserts[key] = {
      kind: 'person',
      age: key.charCodeAt(0),
      _edges: { g: { knows: ofType('knows'), works: ofType('works') } },
    };
  }
  expect(await people.batch({ inserts, sync_level: 'full_index' })).toMatchObject({ status: 201 });
});
afterAll(() => server[Symbol.asyncDispose]());

async function match(search: object, beside: object = {}): Promise<FoundMatches> {
  const searches = { found: { type: 'pattern', index_name: 'g', ...search } };
  for (;;) {
    const body = { graph_searches: searches, ...beside };
    const answer = await server.send<{ responses: { graph_results: { found: FoundMatches } }[] }>(
      'POST',
      `${people.path}/query`,
      body,
    );
    expect(answer).toMatchObject({ status: 200 });
    const found = answer.body.responses[0]?.graph_results.found;
    if (found && found.partial !== 'indexing') return found;
  }
}

/** Each match as its aliases and keys. */
async function keys(search: object): Promise<string[]> {
  const { matches } = await match(search);
  return matches.map(({ bindings }) =>
    Object.entries(bindings)
      .map(([alias, { key }]) => `${alias}=${key}`)
      .join(' '),
  );
}

const everybody = { keys: ['ann', 'bob', 'cid', 'dan'] };
const knows = (edge: object = {}) => ({ types: ['knows'], ...edge });

describe('a pattern', () => {
  test('binds its elements to nodes that stand to each other so, by key', async () => {
    const pattern = [{ alias: 'a' }, { alias: 'b', edge: knows() }, { alias: 'firm', edge: { types: ['works'] } }];
    expect(await keys({ start_nodes: everybody, pattern })).toEqual([
      'a=ann b=bob firm=acme',
      'a=ann b=cid firm=zeta',
      'a=bob b=cid firm=zeta',
      'a=cid b=ann firm=acme',
    ]);
  });

  test('closes a cycle where an alias comes again', async () => {
    const pattern = [
      { alias: 'a' },
      { alias: 'b', edge: knows() },
      { alias: 'c', edge: knows() },
      { alias: 'a', edge: knows() },
    ];
    expect(await keys({ start_nodes: everybody, pattern })).toEqual([
      'a=ann b=bob c=cid',
      'a=bob b=cid c=ann',
      'a=cid b=ann c=bob',
    ]);
    const around = [{ alias: 'a' }, { alias: 'a', edge: knows({ min_hops: 1, max_hops: 3 }) }];
    const { matches } = await match({
      start_nodes: { keys: ['ann'] },
      pattern: around,
      params: { include_paths: true },
    });
    expect(matches.map(({ path = [] }) => path.map(({ target }) => target).join('>'))).toEqual([
      'cid>ann',
      'bob>cid>ann',
    ]);
  });

  test('finds colleagues by a node in common, in both directions', async () => {
    const pattern = [
      { alias: 'a' },
      { edge: { types: ['works'] } },
      { alias: 'colleague', edge: { types: ['works'], direction: 'in' } },
    ];
    // Different elements may be one node.
    expect(await keys({ start_nodes: { keys: ['ann'] }, pattern })).toEqual([
      'a=ann colleague=ann',
      'a=ann colleague=bob',
    ]);
    const either = [{ alias: 'a' }, { alias: 'b', edge: knows({ direction: 'both' }) }];
    expect(await keys({ start_nodes: { keys: ['bob'] }, pattern: either })).toEqual(['a=bob b=ann', 'a=bob b=cid']);
  });

  test('finds an element once for each number of hops', async () => {
    const pattern = [{ alias: 'a' }, { alias: 'b', edge: knows({ min_hops: 1, max_hops: 2 }) }];
    const { matches, total } = await match({ start_nodes: { keys: ['ann'] }, pattern });
    expect(matches.map(({ bindings: { b } }) => [b?.key, b?.depth, b?.distance])).toEqual([
      ['bob', 1, 0.5],
      ['cid', 1, 0.25],
      ['ann', 2, 0.75],
      ['cid', 2, 1.5],
    ]);
    expect(total).toBe(4);
    const none = [{ alias: 'a' }, { alias: 'b', edge: knows({ min_hops: 0, max_hops: 1 }) }];
    expect(await keys({ start_nodes: { keys: ['bob'] }, pattern: none })).toEqual(['a=bob b=bob', 'a=bob b=cid']);
  });

  test('takes the edges of its parameters where an element names none', async () => {
    const pattern = [{ alias: 'a' }, { alias: 'b' }];
    const of = (params: object) => keys({ start_nodes: { keys: ['ann'] }, pattern, params });
    expect(await of({})).toEqual(['a=ann b=acme', 'a=ann b=bob', 'a=ann b=cid']);
    expect(await of({ edge_types: ['knows'], min_weight: 0.5 })).toEqual(['a=ann b=bob']);
    expect(await of({ direction: 'in' })).toEqual(['a=ann b=cid']);
    const heavy = [{ alias: 'a' }, { alias: 'b', edge: { min_weight: 0.5, max_weight: 0.75 } }];
    expect(await keys({ start_nodes: { keys: ['ann'] }, pattern: heavy })).toEqual(['a=ann b=bob']);
  });

  test('filters the nodes of each element by their documents, and of all by the filter of the search', async () => {
    const ages = (range: object) => ({ node_filter: { filter_query: { range: { age: range } } } });
    const pattern = [
      { alias: 'a', ...ages({ gte: 98 }) },
      { alias: 'b', edge: knows(), ...ages({ lte: 98 }) },
    ];
    expect(await keys({ start_nodes: everybody, pattern })).toEqual(['a=cid b=ann']);
    const withinTwo = [{ alias: 'a' }, { alias: 'b', edge: knows({ max_hops: 2 }) }];
    const node_filter = { filter_prefix: 'b' };
    expect(await keys({ start_nodes: { keys: ['ann'] }, pattern: withinTwo, node_filter })).toEqual(['a=ann b=bob']);
    // A filter of an element does not concern the nodes on the way to it.
    const end = [{ alias: 'a' }, { alias: 'b', edge: knows({ max_hops: 2 }), node_filter: { filter_prefix: 'c' } }];
    const { matches } = await match({ start_nodes: { keys: ['ann'] }, pattern: end });
    expect(matches.map(({ bindings: { b } }) => [b?.key, b?.depth])).toEqual([
      ['cid', 1],
      ['cid', 2],
    ]);
  });

  test('shows the aliases that are asked for, with documents and the way where they are', async () => {
    const pattern = [{ alias: 'a' }, { alias: 'b', edge: knows() }, { alias: 'firm', edge: { types: ['works'] } }];
    const { matches } = await match({
      start_nodes: { keys: ['bob'] },
      pattern,
      return_aliases: ['firm'],
      include_documents: true,
      include_edges: true,
      fields: ['town'],
    });
    expect(matches).toMatchObject([
      {
        bindings: { firm: { key: 'zeta', depth: 2, document: { town: 'ulm' } } },
        path: [
          { source: 'bob', target: 'cid', type: 'knows' },
          { source: 'cid', target: 'zeta', type: 'works' },
        ],
      },
    ]);
    expect(Object.keys(matches[0]?.bindings ?? {})).toEqual(['firm']);
    // A key without a document is a node without one.
    const ghosts = [{ alias: 'a' }, { alias: 'b', edge: knows() }];
    const found = await match({ start_nodes: { keys: ['dan'] }, pattern: ghosts, include_documents: true });
    expect(found.matches[0]?.bindings.b).toEqual({ key: 'ghost', depth: 1, distance: 1 });
  });

  test('counts what it does not show', async () => {
    const pattern = [{ alias: 'a' }, { alias: 'b' }];
    const { matches, total } = await match({ start_nodes: everybody, pattern, params: { max_results: 2 } });
    expect([matches.length, total]).toEqual([2, 8]);
  });

  test('begins at what other searches have found, and others begin at its nodes', async () => {
    const answer = await server.send<{ responses: { graph_results: Record<string, { nodes: Node[] }> }[] }>(
      'POST',
      `${people.path}/query`,
      {
        filter_query: { term: { town: 'ulm' } },
        wait_for_index_ms: 30_000,
        graph_queries: {
          staff: {
            type: 'pattern',
            index_name: 'g',
            start_nodes: { result_ref: '$fused_results' },
            pattern: [{ alias: 'firm' }, { alias: 'p', edge: { types: ['works'], direction: 'in' } }],
            return_aliases: ['p'],
          },
          friends: {
            type: 'neighbors',
            index_name: 'g',
            start_nodes: { result_ref: '$graph_results.staff' },
            params: { edge_types: ['knows'] },
          },
        },
      },
    );
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.body.responses[0]?.graph_results.friends?.nodes.map(({ key }) => key)).toEqual(['ann']);
  });

  test.each([
    [{}, '"pattern"'],
    [{ pattern: [] }, '"pattern"'],
    [{ pattern: [1] }, 'pattern[0]'],
    [{ pattern: [{ alias: 'a', edge: {} }] }, 'the first has none'],
    [{ pattern: [{ alias: 'a' }, { name: 'b' }] }, '"name"'],
    [{ pattern: [{ alias: 'a' }, { edge: { type: ['x'] } }] }, '"type"'],
    [{ pattern: [{ alias: 'a' }, { edge: { min_hops: 3, max_hops: 2 } }] }, '"min_hops"'],
    [{ pattern: [{ alias: 'a' }, { edge: { max_hops: 51 } }] }, '"max_hops"'],
    [{ pattern: [{ alias: 'a' }, { edge: { direction: 'up' } }] }, '"direction"'],
    [{ pattern: [{ alias: 'a' }], return_aliases: ['b'] }, '"return_aliases"'],
    [{ pattern: [{ alias: 'a' }], params: { k: 3 } }, '"k"'],
    [{ pattern: [{ alias: 'a' }], target_nodes: { keys: ['b'] } }, '"target_nodes"'],
    [{ pattern: Array.from({ length: 17 }, () => ({})) }, 'at most 16'],
  ])('%j is refused', async (search, named) => {
    const searches = { p: { type: 'pattern', index_name: 'g', start_nodes: { keys: ['a'] }, ...search } };
    const answer = await server.send('POST', `${people.path}/query`, { graph_searches: searches });
    expect(answer.status).toBe(400);
    expect(String(answer.body.message)).toContain(named);
  });

  test('is refused beside another name of the member, and its members beside another type', async () => {
    const refused = async (body: object) => (await server.send('POST', `${people.path}/query`, body)).body.message;
    expect(await refused({ graph_searches: {}, graph_queries: {} })).toContain('"graph_searches"');
    const near = { type: 'neighbors', index_name: 'g', start_nodes: { keys: ['a'] }, pattern: [] };
    expect(await refused({ graph_searches: { near } })).toContain('"pattern" says nothing to');
  });
});

test('a pattern over a hub looks at it once, and says where a bound has ended it', async () => {
  const hub = await GraphTable.create(server, 'hub');
  const spokes = Array.from({ length: 2_000 }, (_, at) => ({ target: `s${at}` }));
  await hub.batch({ inserts: { hub: { _edges: { g: { to: spokes } } } }, sync_level: 'full_index' });
  const searches = {
    pairs: {
      type: 'pattern',
      index_name: 'g',
      start_nodes: { keys: ['s0'] },
      pattern: [
        { alias: 'a' },
        { alias: 'h', edge: { direction: 'in' } },
        { alias: 'b' },
        { edge: { direction: 'in' } },
        {},
      ],
      params: { max_results: 1 },
    },
  };
  const answer = await server.send<{ responses: { graph_results: { pairs: FoundMatches } }[] }>(
    'POST',
    `${hub.path}/query`,
    {
      graph_searches: searches,
    },
  );
  expect(answer.body.responses[0]?.graph_results.pairs).toMatchObject({ total: 1_000_000, partial: 'matches' });
});
