import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FakeClock } from '../../support/fake-clock.ts';
import { runSeed, SeededRandom } from '../../support/fault/seeded-random.ts';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const parentType = { name: 'parent', topology: 'tree' };
const bossType = { name: 'boss', topology: 'tree', field: 'boss' };

function create(
  name: string,
  shards = 3,
  graph: object = { edge_types: [parentType, { name: 'likes' }] },
  on = server,
) {
  return GraphTable.create(on, name, { shards, graph });
}

/** A document whose parent is this. */
function child(parent: string | null, type = 'parent'): object {
  return { _edges: { g: parent === null ? {} : { [type]: [{ target: parent }] } } };
}

/** Puts documents, each with its parent. */
function link(table: GraphTable, parents: Readonly<Record<string, string | null>>) {
  const inserts = Object.entries(parents).map(([key, parent]) => [key, child(parent)] as const);
  return table.batch({ inserts: Object.fromEntries(inserts) });
}

async function expectRefused(answer: ReturnType<GraphTable['batch']>, ...named: string[]): Promise<void> {
  const { status, body } = await answer;
  expect({ status, code: body.code }).toEqual({ status: 400, code: 'tree_topology_violation' });
  for (const name of named) expect(String(body.message)).toContain(name);
}

describe('edges of a tree', () => {
  test('lead from each document to one parent, and another one takes its place', async () => {
    const table = await create('family');
    expect(await link(table, { a: null, m: 'a', z: 'm' })).toMatchObject({ status: 201 });
    expect(await table.arrows('z')).toEqual(['z>m']);
    expect(await link(table, { z: 'a' })).toMatchObject({ status: 201 });
    expect(await table.arrows('z')).toEqual(['z>a']);
    const two = { z: { _edges: { g: { parent: [{ target: 'a' }, { target: 'm' }] } } } };
    await expectRefused(table.batch({ inserts: { ...two, y: {} } }), '"z"', 'g');
    expect(await table.arrows('z')).toEqual(['z>a']);
    expect((await server.send('GET', `${table.path}/documents/y`)).status).toBe(404);
  });

  test('never close a cycle, over ranges, and nothing of the request is written', async () => {
    const table = await create('circle');
    await link(table, { a: null, m: 'a', z: 'm' });
    await expectRefused(link(table, { a: 'z', q: 'a' }), '"a"', '"parent"', '"g"', 'cycle');
    await expectRefused(link(table, { b: 'b' }), '"b"', 'cycle');
    await expectRefused(link(table, { c: 'n', n: 'y', y: 'c' }), 'cycle');
    expect(await table.arrows('a')).toEqual([]);
    for (const key of ['q', 'b', 'c', 'n', 'y']) {
      expect((await server.send('GET', `${table.path}/documents/${key}`)).status).toBe(404);
    }
    // Other types are graphs as ever.
    expect(await table.batch({ inserts: { a: child('z', 'likes') } })).toMatchObject({ status: 201 });
    expect(await table.arrows('a')).toEqual(['a>z']);
  });

  test('may turn around in one request', async () => {
    const table = await create('turned');
    await link(table, { a: null, b: 'a', z: 'b' });
    expect(await link(table, { a: 'z', b: null })).toMatchObject({ status: 201 });
    expect(await table.reached({ start: 'b', direction: 'in' })).toEqual([
      ['z', 1],
      ['a', 2],
    ]);
    // A document that the request deletes leads nowhere.
    expect(await table.batch({ inserts: { b: child('a') }, deletes: ['z'] })).toMatchObject({ status: 201 });
    expect(await table.arrows('b')).toEqual(['b>a']);
    await expectRefused(link(table, { a: 'b' }), 'cycle');
  });

  test('to a deleted document are gone: neither a parent nor a way to a cycle', async () => {
    const table = await create('gone');
    await link(table, { a: null, m: 'a', z: 'm' });
    await table.batch({ deletes: ['m'] });
    expect(await link(table, { a: 'z' })).toMatchObject({ status: 201 });
    // The old edge from z does not come back with its target.
    expect(await link(table, { m: 'a' })).toMatchObject({ status: 201 });
    await expectRefused(link(table, { z: 'm' }), 'cycle');
  });

  test('of a field follow puts and transforms', async () => {
    const table = await create('staff', 3, { edge_types: [bossType] });
    const put = (bosses: Record<string, string>) => {
      const inserts = Object.entries(bosses).map(([key, boss]) => [key, { boss }] as const);
      return table.batch({ inserts: Object.fromEntries(inserts) });
    };
    expect(await put({ m: 'a', z: 'm' })).toMatchObject({ status: 201 });
    await expectRefused(put({ a: 'z' }), '"a"', '"boss"', 'cycle');
    await table.batch({ inserts: { a: {} } });
    const set = (key: string, boss: unknown) =>
      table.batch({ transforms: [{ key, operations: [{ op: '$set', path: '$.boss', value: boss }] }] });
    await expectRefused(set('a', 'z'), 'cycle');
    expect(await set('z', 'a')).toMatchObject({ status: 201 });
    expect(await set('m', 'z')).toMatchObject({ status: 201 });
    expect(await table.reached({ start: 'm' })).toEqual([
      ['z', 1],
      ['a', 2],
    ]);
    // Written again as it is, a document stays where it is.
    expect(await put({ z: 'a' })).toMatchObject({ status: 201 });
    await expectRefused(put({ z: 'm' }), 'cycle');
    await expectRefused(table.batch({ inserts: { q: { boss: ['a', 'm'] } } }), '"q"');
  });

  test('are kept by a linear merge', async () => {
    const table = await create('merged');
    await link(table, { a: null, m: 'a' });
    const merge = (records: object) => server.send('POST', `${table.path}/merge`, { records });
    const refused = await merge({ a: child('m'), m: { n: 2 } });
    expect(refused).toMatchObject({ status: 400, body: { code: 'tree_topology_violation' } });
    // A document that the merge deletes is no ancestor, and the edge to it goes with it.
    expect(await merge({ a: child('m'), z: {} })).toMatchObject({ status: 200, body: { deleted: 1 } });
    expect(await table.arrows('a')).toEqual([]);
  });

  test('are no parents any more once they have expired, and hold over a restart', async () => {
    using directory = new TemporaryDirectory();
    const clock = new FakeClock();
    const graph = { edge_types: [parentType], ttl_duration: '1h' };
    {
      await using own = await startTestServer({ directory: directory.path, clock });
      const table = await create('t', 3, graph, own);
      await link(table, { a: null, m: 'a', z: 'm' });
      await expectRefused(link(table, { a: 'z' }), 'cycle');
    }
    await using own = await startTestServer({ directory: directory.path, clock });
    const table = new GraphTable(own, 't');
    await expectRefused(link(table, { a: 'z' }), 'cycle');
    clock.jump(3_600_000);
    expect(await link(table, { a: 'z' })).toMatchObject({ status: 201 });
  });
});

const seed = runSeed();

test(`writers side by side leave trees (seed ${seed})`, async () => {
  const random = new SeededRandom(seed);
  const keys = Array.from({ length: 12 }, (_, at) => String.fromCharCode(97 + at * 2));
  for (const shards of [1, 3, 20]) {
    const table = await create(`crowd${shards}`, shards);
    await link(table, Object.fromEntries(keys.map((key) => [key, null])));
    let refusals = 0;
    for (let round = 0; round < 12; round += 1) {
      const writes = Array.from({ length: 8 }, () => {
        const parents = Object.fromEntries(
          [random.pick(keys), random.pick(keys)].map((key) => [key, random.pick(keys)]),
        );
        return link(table, parents);
      });
      for (const { status, body } of await Promise.all(writes)) {
        expect([201, 400, 409]).toContain(status);
        if (status === 400) expect(body.code).toBe('tree_topology_violation');
        refusals += status === 400 ? 1 : 0;
      }
      const parents = new Map<string, string>();
      for (const key of keys) {
        const edges = await table.edges(key);
        expect(edges.length).toBeLessThanOrEqual(1);
        for (const { target } of edges) parents.set(key, target);
      }
      for (const key of keys) {
        const way: string[] = [];
        for (let here: string | undefined = key; here !== undefined; here = parents.get(here)) {
          expect(way).not.toContain(here);
          way.push(here);
        }
      }
    }
    expect(refusals).toBeGreaterThan(0);
  }
}, 120_000);
