import { describe, expect, test } from 'bun:test';
import { readdirSync, rmSync } from 'node:fs';
import { checkpointFailpoints } from '../crash/kill-plan.ts';
import type { ChildServer } from '../support/fault/child-server.ts';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import type { FaultRule } from '../support/fault/fault-control.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

const timeout = { timeout: 120_000 };
const amber = { table: 't', full_text_search: { field: 'words', match: 'amber' }, fields: ['n'], limit: 1_000 };

async function write(wire: WireClient, from: number, to: number): Promise<void> {
  const keys = Array.from({ length: to - from }, (_, i) => `k${String(from + i).padStart(4, '0')}`);
  const inserts = Object.fromEntries(keys.map((key) => [key, { words: 'amber birch', n: 1 }]));
  expect((await wire.batch('t', { inserts, sync_level: 'full_text' })).status).toBe(201);
}

/** Every document is found again, and a deleted one is not. */
async function expectSearchable(server: ChildServer, count: number): Promise<void> {
  const wire = new WireClient(server.url);
  await wire.batch('t', { inserts: { marker: { words: 'marker' } }, sync_level: 'full_text' });
  expect((await wire.query(amber)).hits.length).toBe(count);
  await wire.batch('t', { deletes: ['k0000'], sync_level: 'full_text' });
  expect((await wire.query(amber)).hits.length).toBe(count - 1);
  expect(await wire.count('t')).toBe(count);
}

describe('S09 a crash inside an index checkpoint', () => {
  const calls: Partial<FaultRule>[] = [0, 1, 3, 6, 10].flatMap((skip) => [
    { calls: ['write'], skip },
    { calls: ['sync'], skip },
  ]);
  const places = [
    ...checkpointFailpoints.map((failpoint) => ({ failpoint })),
    ...calls,
    { calls: ['rename'] },
    { calls: ['directorySync'] },
    { calls: ['unlink'] },
  ] as (Partial<FaultRule> & { failpoint?: string })[];

  test.each(places.map((place) => [JSON.stringify(place), place] as const))(
    'at %s: recovery from either side of it',
    async (_, { failpoint, ...rule }) => {
      using place = new FaultPlace();
      {
        await using first = await place.start();
        await new WireClient(first.url).createTable('t');
        await write(new WireClient(first.url), 0, 100);
        await first.stop();
      }
      {
        await using server = await place.start({ failpoint });
        await write(new WireClient(server.url), 100, 200);
        if (!failpoint) {
          place.control.arm({ ...rule, calls: rule.calls ?? [], path: '/indexes/', action: 'kill' });
        }
        const ending = await server.stop();
        if (failpoint) expect(ending.code === 0 && ending.signal === null).toBe(false);
      }
      place.control.disarmAll();
      await using server = await place.start();
      await expectSearchable(server, 200);
      await server.stop();
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
    },
    timeout,
  );
});

describe('S06 a sync of an index checkpoint that fails once', () => {
  test.each(['sync', 'directorySync'] as const)(
    '%s: what it left unsynced is never counted as durable',
    async (call) => {
      using place = new FaultPlace();
      const shadow = new DurableShadow(place.dataDir, `${place.directory}/shadow`);
      {
        const environment = { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' };
        await using server = await place.start({ shadow, environment });
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        await write(wire, 0, 100);
        const fault = place.control.arm({ calls: [call], path: '/indexes/', action: 'EIO', times: 1 });
        await until(async () => fault.acted === 1);
        await write(wire, 100, 200);
        expect((await wire.query(amber)).hits.length).toBe(200);
        expect((await server.stop()).code).toBe(0);
      }
      shadow.replace();
      // The first checkpoint that counts has made the name of the index's directory durable, too.
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
      await using server = await place.start();
      await expectSearchable(server, 200);
    },
    timeout,
  );
});

describe('S10 a crash inside a rebuild or an upgrade', () => {
  const schema = (types: string[]) => ({
    default_type: 'd',
    document_schemas: {
      d: { schema: { type: 'object', properties: { words: { type: 'string', 'x-service-types': types } } } },
    },
  });

  test.each([0, 2, 5])(
    'in a rebuild after a schema change, %d calls in: the old version serves until the new one is whole',
    async (skip) => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t', { schema: schema(['text']) });
        await write(wire, 0, 500);
        await server.stop();
      }
      {
        await using server = await place.start({ environment: { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' } });
        const wire = new WireClient(server.url);
        place.control.arm({ calls: ['write', 'create'], path: 'full_text_index_v1', action: 'kill', skip });
        await wire.send('PUT', '/db/v1/tables/t/schema', schema(['text', 'keyword'])).catch(() => undefined);
        await Promise.race([server.ended, server.stop()]);
      }
      place.control.disarmAll();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      expect((await wire.query(amber)).hits.length).toBe(500);
      await until(async () => {
        const table = (await wire.expect(200, 'GET', '/db/v1/tables/t')).body as Record<string, unknown>;
        expect((await wire.query(amber)).hits.length).toBe(500);
        return !table.migration;
      });
      await expectSearchable(server, 500);
    },
    timeout,
  );

  test(
    'a missing index is built again while documents are served, also when that is cut short',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        await new WireClient(server.url).createTable('t');
        await write(new WireClient(server.url), 0, 500);
        await server.stop();
      }
      for (const path of place.files('checkpoint.json')) {
        const directory = path.slice(0, path.lastIndexOf('/'));
        for (const name of readdirSync(directory)) rmSync(`${directory}/${name}`, { recursive: true });
      }
      for (let round = 0; round < 3; round += 1) {
        const server = await place.start();
        expect((await new WireClient(server.url).scan('t')).size).toBe(500);
        await server.kill();
      }
      await using server = await place.start();
      await expectSearchable(server, 500);
    },
    timeout,
  );

  test(
    'while a directory is made, migrations included: the next start makes it whole',
    async () => {
      for (const call of ['sync', 'write', 'directorySync', 'rename'] as const) {
        for (let skip = 0; skip < 9; skip += 2) {
          using place = new FaultPlace();
          place.control.arm({ calls: [call], path: place.dataDir, action: 'kill', skip });
          await place.start().then(
            (server) => server.kill(),
            () => undefined,
          );
          place.control.disarmAll();
          await using server = await place.start();
          const wire = new WireClient(server.url);
          await wire.createTable('t');
          expect((await wire.batch('t', { inserts: { k: { n: 1 } } })).status).toBe(201);
        }
      }
    },
    timeout,
  );
});

describe('a drop of what cannot be removed from the disk', () => {
  const vectors = { type: 'embeddings', external: true, dimension: 2 };
  /** A table whose index "v" has files. */
  const prepare = async (place: FaultPlace) => {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 2, indexes: { v: vectors } });
    const inserts = { a: { words: 'amber', _embeddings: { v: [1, 0] } }, '~z': { words: 'amber' } };
    expect((await wire.batch('t', { inserts, sync_level: 'full_index' })).status).toBe(201);
    await server.stop();
    expect(place.files('/v@').length).toBeGreaterThan(1);
  };

  test.each(['EIO', 'EBUSY', 'ENOSPC'] as const)(
    'an index, %s: it is gone, its vectors with it, and the files follow as soon as they can be removed',
    async (action) => {
      using place = new FaultPlace();
      await prepare(place);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const stuck = place.control.arm({ calls: ['unlink'], path: '/v@', action });
      await wire.expect(204, 'DELETE', '/db/v1/tables/t/indexes/v');
      await until(async () => stuck.acted > 0);
      await wire.expect(404, 'GET', '/db/v1/tables/t/indexes/v');
      expect(place.files('/v@').length).toBeGreaterThan(0);
      // The next one of the name has nothing of it.
      await wire.expect(201, 'POST', '/db/v1/tables/t/indexes/v', vectors);
      const inserts = { b: { words: 'birch', _embeddings: { v: [0, 1] } } };
      expect((await wire.batch('t', { inserts, sync_level: 'full_index' })).status).toBe(201);
      const near = { table: 't', embeddings: { v: [1, 0] }, indexes: ['v'], limit: 9 };
      expect((await wire.query(near)).hits.map(({ _id }) => _id)).toEqual(['b']);
      await wire.expect(204, 'DELETE', '/db/v1/tables/t/indexes/v');
      stuck.disarm();
      await until(async () => place.files('/v@').length === 0);
      expect(server.log).toContain('removal of dropped files');
      expect(await wire.count('t')).toBe(3);
    },
    timeout,
  );

  test(
    'an index, before a kill: the next start removes the files',
    async () => {
      using place = new FaultPlace();
      await prepare(place);
      {
        await using server = await place.start();
        place.control.arm({ calls: ['unlink'], path: '/v@', action: 'EIO' });
        await new WireClient(server.url).expect(204, 'DELETE', '/db/v1/tables/t/indexes/v');
        await server.kill();
      }
      expect(place.files('/v@').length).toBeGreaterThan(0);
      // It starts all the same while they cannot be removed.
      {
        await using server = await place.start();
        expect(await new WireClient(server.url).count('t')).toBe(2);
        await server.kill();
      }
      expect(place.files('/v@').length).toBeGreaterThan(0);
      place.control.disarmAll();
      await using server = await place.start();
      expect(place.files('/v@')).toEqual([]);
      expect(await new WireClient(server.url).count('t')).toBe(2);
    },
    timeout,
  );

  test(
    'a table: it is gone, and the files follow as soon as they can be removed',
    async () => {
      using place = new FaultPlace();
      await prepare(place);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      place.control.arm({ calls: ['rename'], path: '/tmp/range-', action: 'EIO' });
      place.control.arm({ calls: ['unlink'], path: '/ranges/1/', action: 'EIO' });
      await wire.expect(204, 'DELETE', '/db/v1/tables/t');
      await wire.expect(404, 'GET', '/db/v1/tables/t');
      await wire.createTable('t');
      expect(await wire.count('t')).toBe(0);
      expect(place.files('/v@').length).toBeGreaterThan(0);
      place.control.disarmAll();
      await until(async () => place.files('/v@').length === 0);
      expect((await wire.batch('t', { inserts: { a: { words: 'amber' } }, sync_level: 'full_text' })).status).toBe(201);
    },
    timeout,
  );
});

describe('a machine that lacks what an index needs', () => {
  const indexes = {
    v: { type: 'embeddings', external: true, dimension: 2 },
    s: { type: 'embeddings', external: true, sparse: true },
    g: { type: 'graph' },
  };
  const document = (i: number) => {
    const _embeddings = { v: [i, 1], s: { indices: [i], values: [1] } };
    return { words: 'amber', _embeddings, _edges: { g: { near: [{ target: 'k1' }] } } };
  };
  /** A stopped server whose indexes have files. */
  const prepare = async (place: FaultPlace) => {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('t', { indexes });
    const inserts = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, document(i)]));
    expect((await wire.batch('t', { inserts, sync_level: 'full_index' })).status).toBe(201);
    await server.stop();
  };
  const nearest = { table: 't', embeddings: { s: { indices: [7], values: [1] } }, indexes: ['s'], limit: 1 };

  test.each([
    ['EMFILE', 0],
    ['EMFILE', 5],
    ['ENOMEM', 0],
    ['EACCES', 0],
  ] as const)(
    '%s behind %d openings of files: they are opened later, and not taken for damaged',
    async (action, skip) => {
      using place = new FaultPlace();
      await prepare(place);
      const lacks = place.control.arm({ calls: ['open'], path: '/indexes/', action, skip });
      await using server = await place.start({ awaitReady: false });
      const wire = new WireClient(server.url);
      expect((await wire.batch('t', { inserts: { late: document(60) } })).status).toBe(201);
      await until(async () => /"attempt":4/.test(server.log));
      lacks.disarm();
      await until(async () => (await wire.count('t').catch(() => 0)) === 51);
      await until(async () => (await wire.query(nearest).catch(() => undefined))?.hits[0]?._id === 'k7');
      expect(server.log).not.toContain('built again');
    },
    timeout,
  );

  test(
    'a removal of old files: they stay, and the index goes on and is opened again beside them',
    async () => {
      using place = new FaultPlace();
      await prepare(place);
      const stuck = place.control.arm({ calls: ['unlink'], path: '/indexes/', action: 'EIO' });
      for (let round = 0; round < 3; round += 1) {
        const environment = { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' };
        await using server = await place.start({ environment });
        const wire = new WireClient(server.url);
        const before = stuck.acted;
        const inserts = { [`late${round}`]: document(60 + round), k1: document(round) };
        expect((await wire.batch('t', { inserts, sync_level: 'full_index' })).status).toBe(201);
        await until(async () => stuck.acted > before);
        expect(await wire.count('t')).toBe(51 + round);
        expect((await server.stop()).code).toBe(0);
        expect(server.log).not.toContain('an index failed');
      }
      place.control.disarmAll();
      await using server = await place.start();
      expect(await new WireClient(server.url).count('t')).toBe(53);
      expect((await new WireClient(server.url).query(nearest)).hits[0]?._id).toBe('k7');
    },
    timeout,
  );
});
