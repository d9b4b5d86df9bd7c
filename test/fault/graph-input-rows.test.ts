import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { limits } from '../../src/config/limits.ts';
import { ChildServer } from '../support/fault/child-server.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import type { ShownEdge } from '../support/graph/graph-table.ts';
import { expectClean } from './clean-failure.ts';

setDefaultTimeout(120_000);

let directory: string;
let server: ChildServer;
let wire: WireClient;
const table = '/db/v1/tables/graphs';
const graph = `${table}/indexes/g`;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'sundew-graph-input-'));
  server = await ChildServer.start({ dataDir: join(directory, 'data') });
  wire = new WireClient(server.url);
  await wire.createTable('graphs', { num_shards: 3 });
  await wire.expect(201, 'POST', graph, { type: 'graph', max_edges_per_document: 50 });
});

afterAll(async () => {
  await server.kill();
  rmSync(directory, { recursive: true, force: true });
});

/** A batch of one good document beside another one with these edges, as JSON text. */
const withEdges = (edges: string) => `{"inserts":{"witness":{"a":1},"k":{"_edges":{"g":${edges}}}}}`;

/** The write is refused, and nothing of it is there. */
async function refused(edges: string, status: number, code: string): Promise<void> {
  await expectClean(server, await wire.send('POST', `${table}/batch`, withEdges(edges)), status, code);
  expect(await wire.lookup('graphs', 'witness')).toBeUndefined();
}

async function edgesOf(key: string): Promise<ShownEdge[]> {
  for (;;) {
    const path = `${graph}/edges?key=${encodeURIComponent(key)}&direction=both`;
    const { body } = await wire.expect(200, 'GET', path);
    const { edges, partial } = body as unknown as { edges: ShownEdge[]; partial?: string };
    if (partial !== 'indexing') return edges;
  }
}

describe('I01 deep JSON in edges', () => {
  test.each([100, 100_000])('metadata of %d levels are refused, and nothing is written', async (depth) => {
    const metadata = `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
    await refused(`{"to":[{"target":"x","metadata":${metadata}}]}`, 400, 'json_too_deep');
  });
});

describe('I02 large bodies of graph searches', () => {
  test.each(['traverse', 'shortest-path'])('%s takes a small body only', async (search) => {
    const body = JSON.stringify({ start: 'x'.repeat(limits.smallBodyBytesMax) });
    await expectClean(server, await wire.send('POST', `${graph}/${search}`, body), 413, 'payload_too_large');
  });
});

describe('I03 bounds of edges', () => {
  const targets = (count: number) => Array.from({ length: count }, (_, at) => `{"target":"t${at}"}`).join(',');

  test('a document with more edges than the index takes is refused whole', async () => {
    await refused(`{"to":[${targets(51)}]}`, 400, 'too_many_edges');
  });

  test('the metadata of an edge and the name of a type are bounded', async () => {
    const metadata = `{"a":"${'x'.repeat(64 * 1024)}"}`;
    await refused(`{"to":[{"target":"x","metadata":${metadata}}]}`, 400, 'invalid_edge');
    await refused(`{"${'x'.repeat(257)}":[{"target":"x"}]}`, 400, 'invalid_edge');
  });

  test('a target is bounded as a key is', async () => {
    await refused(`{"to":[{"target":"${'x'.repeat(limits.keyBytesMax + 1)}"}]}`, 400, 'invalid_edge');
  });
});

describe('I04 odd JSON in edges', () => {
  test('names of prototypes are types, targets and metadata like others', async () => {
    const edges =
      '{"__proto__":[{"target":"constructor","metadata":{"__proto__":{"polluted":1}}}],"toString":[{"target":"__proto__"}]}';
    const answer = await wire.send('POST', `${table}/batch`, `{"inserts":{"proto":{"_edges":{"g":${edges}}}}}`);
    expect(answer.status).toBe(201);
    const found = await edgesOf('proto');
    expect(found.map(({ type, target }) => [type, target])).toEqual([
      ['__proto__', 'constructor'],
      ['toString', '__proto__'],
    ]);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect((await edgesOf('__proto__')).map(({ source }) => source)).toEqual(['proto']);
  });

  test.each([
    ['a weight that no double holds', '{"to":[{"target":"x","weight":1e400}]}'],
    ['a weight that 32 bits do not hold', '{"to":[{"target":"x","weight":1e39}]}'],
    ['a weight that is text', '{"to":[{"target":"x","weight":"1"}]}'],
    ['a weight below 0', '{"to":[{"target":"x","weight":-1}]}'],
    ['a target with NUL', '{"to":[{"target":"a\\u0000b"}]}'],
    ['an empty target', '{"to":[{"target":""}]}'],
    ['a lone surrogate as a target', '{"to":[{"target":"\\ud800"}]}'],
    ['an unknown member', '{"to":[{"target":"x","wieght":1}]}'],
    ['metadata that are an array', '{"to":[{"target":"x","metadata":[]}]}'],
  ])('%s is refused', async (_, edges) => {
    const answer = await wire.send('POST', `${table}/batch`, withEdges(edges));
    expect(answer.status).toBe(400);
    await expectClean(server, answer, 400, (answer.body as { code: string }).code);
    expect(await wire.lookup('graphs', 'witness')).toBeUndefined();
  });
});

describe('I05 compressed bodies of graph searches', () => {
  test('are refused before they are inflated', async () => {
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20)));
    const answer = await wire.send('POST', `${graph}/traverse`, bomb, { 'content-encoding': 'gzip' });
    expect([413, 415]).toContain(answer.status);
    await expectClean(server, answer, answer.status, (answer.body as { code: string }).code);
  });
});

describe('I06 names and keys of graphs', () => {
  test.each(['..%2fx', 'a%00b', 'x'.repeat(300)])('a graph index of the name %s is refused', async (name) => {
    const answer = await wire.send('POST', `${table}/indexes/${name}`, { type: 'graph' });
    await expectClean(server, answer, 400, 'invalid_name');
  });

  test('a key that looks like a path is a key', async () => {
    const inserts = { '../a/b': { _edges: { g: { to: [{ target: '%2e%2e/é' }] } } } };
    expect((await wire.batch('graphs', { inserts })).status).toBe(201);
    expect((await edgesOf('%2e%2e/é')).map(({ source }) => source)).toEqual(['../a/b']);
  });
});

describe('I07 searches that ask for too much', () => {
  test.each([
    ['a depth of 1e9', { start: 'k', max_depth: 1e9 }],
    ['more starts than there may be', { start_nodes: { keys: Array(limits.graphStartsMax + 1).fill('k') } }],
    ['a filter nested 100 deep', { start: 'k', node_filter: { filter_query: nested(100) } }],
  ])('%s is refused', async (_, body) => {
    const answer = await wire.send('POST', `${graph}/traverse`, body);
    expect(answer.status).toBe(400);
    await expectClean(server, answer, 400, (answer.body as { code: string }).code);
  });

  test('every path of a dense graph ends at a bound and says so, and the server goes on meanwhile', async () => {
    const keys = Array.from({ length: 40 }, (_, at) => `dense:${at}`);
    const to = keys.map((target) => ({ target }));
    const inserts = Object.fromEntries(keys.map((key) => [key, { _edges: { g: { to } } }]));
    expect((await wire.batch('graphs', { inserts, sync_level: 'full_index' })).status).toBe(201);
    let isDone = false;
    const body = { start: keys[0], max_depth: 50, deduplicate_nodes: false, max_results: 10 };
    const search = wire.expect(200, 'POST', `${graph}/traverse`, body).finally(() => {
      isDone = true;
    });
    let answeredMeanwhile = 0;
    while (!isDone) {
      await wire.expect(200, 'GET', '/healthz');
      if (!isDone) answeredMeanwhile += 1;
    }
    expect((await search).body).toMatchObject({ count: 10, partial: expect.stringMatching(/^(edges|nodes|time)$/) });
    expect(answeredMeanwhile).toBeGreaterThan(0);
  });
});

describe('I08 paging bounds of edges', () => {
  test.each(['limit=1000000000', 'limit=-1', 'limit=1.5', 'limit=0', 'after=x', 'after=W10', 'direction=up'])(
    '%s is refused',
    async (query) => {
      const answer = await wire.send('GET', `${graph}/edges?key=k&${query}`);
      expect(answer.status).toBe(400);
      expect((answer.body as { code: string }).code).toMatch(/^(invalid_query|invalid_request|limit_exceeded)$/);
      await expectClean(server, answer, 400, (answer.body as { code: string }).code);
    },
  );
});

/** A filter that negates itself so often. */
function nested(depth: number): object {
  return depth === 0 ? { match_all: {} } : { bool: { must_not: [nested(depth - 1)] } };
}
