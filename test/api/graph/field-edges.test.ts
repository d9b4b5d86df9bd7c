import { describe, expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

/** Graph indexes whose edges follow a member, over documents that were there before. */

const byBase = { type: 'graph', edge_types: [{ name: 'of', field: 'base.key' }, { name: 'near' }] };

async function filled(server: TestServer, shards: number, inserts: object): Promise<GraphTable> {
  const table = new GraphTable(server, 't');
  expect(await server.send('POST', table.path, { num_shards: shards })).toMatchObject({ status: 200 });
  expect(await table.batch({ inserts })).toMatchObject({ status: 201 });
  return table;
}

const createIndex = (server: TestServer, table: GraphTable, config: object = byBase) =>
  server.send('POST', `${table.path}/indexes/g`, config);

interface Status {
  edge_count: number;
  readiness: { state: string; complete: boolean };
  source_coverage?: { failed: number };
}

async function statusOf(server: TestServer, table: GraphTable): Promise<Status> {
  const answer = await server.send<{ status: Status }>('GET', `${table.path}/indexes/g`);
  return answer.body.status;
}

/** Once the index says that it is complete. */
async function whole(server: TestServer, table: GraphTable): Promise<Status> {
  await until(async () => (await statusOf(server, table)).readiness.complete);
  return statusOf(server, table);
}

describe('edges of a member of documents from before the index', () => {
  test.each([1, 3])('are there when the index says that it is complete, over %i ranges', async (shards) => {
    await using server = await startTestServer();
    const many = Array.from({ length: 700 }, (_, at) => [`k${at}`, { base: { key: `k${(at + 1) % 700}` } }] as const);
    const inserts = {
      ...Object.fromEntries(many),
      z: { base: { key: ['m', '', 'a', 'm'] } },
      y: { base: null },
      x: {},
      emoji: { base: { key: '🌻' } },
    };
    const table = await filled(server, shards, inserts);
    expect((await createIndex(server, table)).body).toMatchObject({ name: 'g', type: 'graph' });
    expect(await whole(server, table)).toMatchObject({ edge_count: 703, readiness: { state: 'ready' } });
    expect(await table.arrows('z')).toEqual(['z>a', 'z>m']);
    expect(await table.arrows('k1', '&direction=both')).toEqual(['k1>k2', 'k0>k1']);
    expect(await table.arrows('🌻', '&direction=in')).toEqual(['emoji>🌻']);
    // From here on they come with the writes.
    expect(await table.batch({ inserts: { z: { base: { key: 'x' } }, x: { base: { key: 'y' } } } })).toMatchObject({
      status: 201,
    });
    expect(await table.arrows('z')).toEqual(['z>x']);
    expect(await table.arrows('x')).toEqual(['x>y']);
  });

  test('are left out where a write would be refused, which the index counts until the document changes', async () => {
    await using server = await startTestServer();
    const table = await filled(server, 1, {
      a: { base: { key: 7 } },
      b: { base: { key: ['c', 'd', 'e'] } },
      c: { base: { key: 'c' } },
    });
    const types = [{ name: 'of', field: 'base.key', allow_self_loops: false }];
    await createIndex(server, table, { ...byBase, edge_types: types, max_edges_per_document: 2 });
    expect(await whole(server, table)).toMatchObject({ edge_count: 0, source_coverage: { failed: 3 } });
    await table.batch({ inserts: { a: { base: { key: 'b' } } } });
    expect(await table.arrows('a')).toEqual(['a>b']);
    await until(async () => (await statusOf(server, table)).source_coverage?.failed === 2);
  });

  test('are there too where a transform comes before them, of another member or of one of two fields', async () => {
    await using server = await startTestServer();
    const many = Array.from({ length: 3_000 }, (_, at) => [`k${at}`, { base: { key: 'm' }, next: `n${at}` }] as const);
    const table = await filled(server, 1, Object.fromEntries(many));
    const created = createIndex(server, table, {
      ...byBase,
      edge_types: [...byBase.edge_types, { name: 'then', field: 'next' }],
    });
    for (let at = 2_999; at >= 0; at -= 250) {
      const operations =
        at % 500 < 250 ? [{ op: '$set', path: 'seen', value: 1 }] : [{ op: '$set', path: 'next', value: 'z' }];
      expect(await table.batch({ transforms: [{ key: `k${at}`, operations }] })).toMatchObject({ status: 201 });
    }
    expect((await created).body).toMatchObject({ name: 'g' });
    expect(await whole(server, table)).toMatchObject({ edge_count: 6_000 });
  });

  test('of a tree are made when the documents are written once more, and counted until then', async () => {
    await using server = await startTestServer();
    const table = await filled(server, 1, { a: { base: { key: 'b' } }, b: {} });
    await createIndex(server, table, { ...byBase, edge_types: [{ name: 'of', field: 'base.key', topology: 'tree' }] });
    expect(await whole(server, table)).toMatchObject({ edge_count: 0, source_coverage: { failed: 1 } });
    await table.batch({ inserts: { a: { base: { key: 'b' } } } });
    expect(await table.arrows('a')).toEqual(['a>b']);
    await until(async () => (await statusOf(server, table)).source_coverage?.failed === 0);
  });

  test.each(['portable', 'native'])(
    'stay away with a deleted target, over a sweep, a restart and a %s backup',
    async (format) => {
      using directory = new TemporaryDirectory();
      using place = new BackupPlace();
      const clock = new FakeClock();
      const start = () => place.server({ directory: directory.path, clock });
      const backup = { backup_id: 'b', location: place.location };
      {
        await using server = await start();
        const table = await filled(server, 3, { a: { base: { key: 'm' } }, z: { base: { key: ['m', 'a'] } }, m: {} });
        await createIndex(server, table);
        expect(await table.arrows('z')).toEqual(['z>a', 'z>m']);
        await table.batch({ deletes: ['m'] });
        await table.batch({ inserts: { m: {} }, sync_level: 'full_index' });
        expect(await table.arrows('m', '&direction=in')).toEqual([]);
        await clock.advance(31_000);
      }
      await using server = await start();
      const table = new GraphTable(server, 't');
      expect(await table.arrows('m', '&direction=in')).toEqual([]);
      expect(await table.arrows('z')).toEqual(['z>a']);
      expect((await server.send('POST', '/db/v1/backup', { ...backup, format })).status).toBe(200);
      await using other = await place.server();
      expect(await restore(other, backup)).toMatchObject({ phase: 'succeeded' });
      const restored = new GraphTable(other, 't');
      expect(await restored.arrows('m', '&direction=in')).toEqual([]);
      expect(await restored.arrows('z')).toEqual(['z>a']);
      await restored.batch({ inserts: { a: { base: { key: 'm' } } } });
      expect(await restored.arrows('m', '&direction=in')).toEqual(['a>m']);
    },
  );
});
