import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

const hourMs = 3_600_000;

describe('a deleted document', () => {
  test('loses its edges in both directions at once, over ranges', async () => {
    await using server = await startTestServer();
    const table = await GraphTable.create(server, 't', { shards: 3 });
    await table.link({ a: ['m'], m: ['a', 'z'], z: ['m', 'a'] });
    await table.batch({ deletes: ['m'] });
    expect(await table.arrows('m', '&direction=both')).toEqual([]);
    expect(await table.arrows('z')).toEqual(['z>a']);
    expect(await table.reached({ start: 'a', direction: 'both' })).toEqual([['z', 1]]);
    expect(await table.status()).toMatchObject({ edge_count: 1, node_count: 2 });
  });

  test('that comes back has none of its old edges, but those that are written after', async () => {
    await using server = await startTestServer();
    const table = await GraphTable.create(server, 't', { shards: 3 });
    await table.link({ a: ['m'], m: ['a'], z: ['m'] });
    await table.batch({ deletes: ['m'] });
    await table.batch({ inserts: { m: { again: true } } });
    expect(await table.arrows('m', '&direction=both')).toEqual([]);
    // Left out, the edges of `a` stay as they are: dead.
    await table.batch({ inserts: { a: { n: 2 } } });
    expect(await table.arrows('m', '&direction=in')).toEqual([]);
    await table.link({ z: ['m'] });
    expect(await table.arrows('m', '&direction=in')).toEqual(['z>m']);
  });

  test('stays without the edges of fields that a transform leaves alone', async () => {
    await using server = await startTestServer();
    const edge_types = [
      { name: 'base', field: 'base' },
      { name: 'up', field: 'up' },
    ];
    const table = await GraphTable.create(server, 't', { shards: 3, graph: { edge_types } });
    await table.batch({ inserts: { a: { up: 'm', base: ['m', 'z'] }, m: {}, z: {} } });
    await table.batch({ deletes: ['m'] });
    await table.batch({ inserts: { m: {} } });
    const set = (path: string, value: unknown) =>
      table.batch({ transforms: [{ key: 'a', operations: [{ op: '$set', path, value }] }] });
    await set('n', 1);
    expect(await table.arrows('a')).toEqual(['a>z']);
    await set('base', ['m', 'z', 'k']);
    expect(await table.arrows('a', '&type=base')).toEqual(['a>k', 'a>m', 'a>z']);
    expect(await table.arrows('a', '&type=up')).toEqual([]);
    await set('up', 'k');
    await set('up', 'm');
    expect(await table.arrows('a', '&type=up')).toEqual(['a>m']);
  });

  test.each([1, 20])('loses the edges that the same commit gives to it, over %i ranges', async (shards) => {
    await using server = await startTestServer();
    const table = await GraphTable.create(server, 't', { shards });
    await table.link({ a: ['m'], b: [], z: [] });
    await table.batch({ inserts: { m: {} } });
    // `a` says again what it said, `b` says it for the first time.
    const toM = { _edges: { g: { to: [{ target: 'm' }] } } };
    const records = { a: toM, b: toM, z: {} };
    const merged = await server.send('POST', `${table.path}/merge`, { records });
    expect(merged.body).toMatchObject({ deleted: 1 });
    expect(await table.arrows('m', '&direction=both')).toEqual([]);
    await table.batch({ inserts: { m: {} } });
    expect(await table.arrows('m', '&direction=both')).toEqual([]);
    await table.batch({ deletes: ['m'], inserts: { a: toM } });
    await table.batch({ inserts: { m: {}, b: toM } });
    expect(await table.arrows('m', '&direction=in')).toEqual(['b>m']);
  });

  test('that had expired and is written again has the edges of the same request', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    const table = await GraphTable.create(server, 't', { schema: { ttl: { duration: '1h' } } });
    await table.batch({ inserts: { m: {} } });
    clock.jump(hourMs + 1);
    await table.batch({ inserts: { m: {}, a: { _edges: { g: { to: [{ target: 'm' }] } } } } });
    expect(await table.arrows('m', '&direction=in')).toEqual(['a>m']);
  });

  test('keeps them over a restart, and the sweep takes them from disk', async () => {
    using directory = new TemporaryDirectory();
    const clock = new FakeClock();
    const start = () => startTestServer({ directory: directory.path, clock });
    const open = async (look: (table: GraphTable) => Promise<void>) => {
      await using server = await start();
      await look(new GraphTable(server, 't'));
    };
    {
      await using server = await start();
      const table = await GraphTable.create(server, 't', { shards: 3 });
      await table.link({ a: ['m', 'z'], z: ['m'] });
      await table.batch({ inserts: { m: {} }, sync_level: 'full_index' });
      await table.batch({ deletes: ['m'], inserts: { n: {} } });
    }
    await open(async (table) => {
      expect(await table.arrows('m', '&direction=in')).toEqual([]);
      await table.batch({ inserts: { m: {} } });
      expect(await table.arrows('m', '&direction=in')).toEqual([]);
      expect(await table.arrows('a')).toEqual(['a>z']);
      await clock.advance(31_000);
      await until(async () => !(await hasNotes(directory.path)));
    });
    await open(async (table) => {
      expect(await table.arrows('m', '&direction=in')).toEqual([]);
      expect(await table.arrows('a')).toEqual(['a>z']);
      await table.link({ z: ['m'] });
      expect(await table.arrows('m', '&direction=in')).toEqual(['z>m']);
    });
  });

  test('that has expired is no node any more, from its millisecond on', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    const table = await GraphTable.create(server, 't', { shards: 2, schema: { ttl: { duration: '1h' } } });
    await table.link({ a: ['m'], m: ['z'] });
    await clock.advance(hourMs / 2);
    await table.link({ a: ['m'], z: ['m'] });
    clock.jump(hourMs / 2 - 1);
    expect(await table.reached({ start: 'a' })).toEqual([
      ['m', 1],
      ['z', 2],
    ]);
    clock.jump(1);
    expect(await table.reached({ start: 'a' })).toEqual([]);
    expect(await table.arrows('m', '&direction=both')).toEqual([]);
    expect(await table.arrows('z', '&direction=both')).toEqual([]);
  });
});

describe('an edge with a TTL', () => {
  test('is gone from its millisecond on, in every answer and count, and swept from disk', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    const table = await GraphTable.create(server, 't', { shards: 2, graph: { ttl_duration: '1h' } });
    await table.link({ a: ['b', 'z'] });
    await clock.advance(hourMs / 2);
    // Given again, an edge keeps the time of its creation.
    await table.link({ a: ['b', 'c'], z: ['a'] });
    clock.jump(hourMs / 2 - 1);
    expect(await table.arrows('a')).toEqual(['a>b', 'a>c']);
    clock.jump(1);
    expect(await table.arrows('a')).toEqual(['a>c']);
    expect(await table.status()).toMatchObject({ edge_count: 2, node_count: 3 });
    // Given after it has expired, it is a new one.
    await table.link({ a: ['b', 'c'] });
    await clock.advance(hourMs / 2 + 1);
    expect(await table.arrows('a')).toEqual(['a>b']);
    expect(await table.reached({ start: 'z' })).toEqual([]);
  });
});

/** Whether a range still says of deleted documents that edges may lead to them. */
async function hasNotes(directory: string): Promise<boolean> {
  const files = new Bun.Glob('ranges/*/*/documents.db').scan({ cwd: directory, absolute: true });
  for await (const file of files) {
    using database = new Database(file, { readonly: true });
    if (database.query("SELECT 1 FROM range_state WHERE CAST(key AS TEXT) LIKE 'x/%'").get() !== null) return true;
  }
  return false;
}
