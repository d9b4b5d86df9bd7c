import { Database } from 'bun:sqlite';
import { afterEach, describe, expect, mock, spyOn, test } from 'bun:test';
import { join } from 'node:path';
import { JobRunner } from '../../../src/jobs/job-runner.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { Storage } from '../../../src/storage/open-storage.ts';
import { TtlRewrite } from '../../../src/tables/upkeep/ttl-rewrite.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

const hourMs = 3_600_000;

afterEach(() => mock.restore());

async function keysEverywhere(server: TestServer): Promise<{ found: string[]; scanned: string[]; looked: number[] }> {
  const query = await server.send('POST', '/db/v1/tables/t/query', { filter_query: { match_all: {} }, limit: 100 });
  const scan = await server.send<string>('POST', '/db/v1/tables/t/lookup', {});
  const looked = await Promise.all(
    ['old', 'young'].map(async (key) => (await server.send('GET', `/db/v1/tables/t/lookup/${key}`)).status),
  );
  const scanned = scan.body
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { key: string }).key]));
  return { found: hitKeys(query).sort(), scanned, looked };
}

async function storedDocuments(server: TestServer): Promise<number> {
  const { ranges } = (await server.send('GET', '/db/v1/cluster')).body.data as { ranges: { doc_count: number }[] };
  return ranges.reduce((total, range) => total + range.doc_count, 0);
}

/** Resolves when the TTL bases of all documents have been read again. */
async function rewritten(server: TestServer): Promise<void> {
  await until(async () => !('ttl_rewrite' in (await server.send('GET', '/db/v1/tables/t')).body));
}

describe('a TTL', () => {
  test('hides expired documents from every read at once, then the sweep removes them', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', { num_shards: 2, schema: { ttl: { duration: '1h' } } });
    const write = (key: string) =>
      server.send('POST', '/db/v1/tables/t/batch', { inserts: { [key]: { n: 1 } }, sync_level: 'full_text' });
    await write('old');
    await clock.advance(hourMs / 2);
    await write('young');
    expect(await keysEverywhere(server)).toEqual({
      found: ['old', 'young'],
      scanned: ['old', 'young'],
      looked: [200, 200],
    });
    // One millisecond after its hour, and before any sweep.
    clock.jump(hourMs / 2 + 1);
    expect(await keysEverywhere(server)).toEqual({ found: ['young'], scanned: ['young'], looked: [404, 200] });
    expect(await storedDocuments(server)).toBe(2);
    await clock.advance(60_000);
    await until(async () => (await storedDocuments(server)) === 1);
  });

  test('has expired documents off the disk soon, however many they are', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h' } } });
    const inserts = Object.fromEntries(Array.from({ length: 3_500 }, (_, at) => [`k${at}`, { n: at }]));
    await server.send('POST', '/db/v1/tables/t/batch', { inserts });
    clock.jump(hourMs - 1);
    await clock.advance(40_000);
    await until(async () => (await storedDocuments(server)) === 0);
  });

  test('an expired document counts as absent for an optimistic commit', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h' } } });
    await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { n: 1 } } });
    clock.jump(2 * hourMs);
    const answer = await server.send('POST', '/db/v1/transactions/commit', {
      read_set: [{ table: 't', key: 'a', version: '0' }],
      tables: { t: { inserts: { a: { n: 2 } } } },
    });
    expect(answer.status).toBe(200);
  });

  test('the delete of an expired document is not counted, whether or not others are with it', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h' } } });
    const write = (body: object) => server.send('POST', '/db/v1/tables/t/batch', body);
    await write({ inserts: { a: {}, b: {} } });
    clock.jump(2 * hourMs);
    await write({ inserts: { c: {} } });
    expect((await write({ deletes: ['a'] })).body).toMatchObject({ deleted: 0 });
    expect((await write({ deletes: ['none', 'b', 'c'] })).body).toMatchObject({ deleted: 1 });
  });

  test('set, moved to another field, or taken away, it applies to what is stored already', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t');
    const day = new Date(clock.nowMs() + 24 * hourMs).toISOString();
    await server.send('POST', '/db/v1/tables/t/batch', {
      inserts: { old: { n: 1 }, young: { seen: day } },
      sync_level: 'full_text',
    });
    clock.jump(2 * hourMs);
    await server.send('PUT', '/db/v1/tables/t/schema', { ttl: { duration: '1h' } });
    expect((await keysEverywhere(server)).scanned).toEqual([]);
    await server.send('PUT', '/db/v1/tables/t/schema', { ttl: { duration: '3h', field: 'seen' } });
    await rewritten(server);
    expect((await keysEverywhere(server)).scanned).toEqual(['old', 'young']);
    clock.jump(4 * hourMs);
    expect((await keysEverywhere(server)).scanned).toEqual(['young']);
    await server.send('PUT', '/db/v1/tables/t/schema', {});
    await rewritten(server);
    expect((await keysEverywhere(server)).scanned).toEqual(['old', 'young']);
  });

  test('moved to another field, it gives a new version only to documents whose expiry changes', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', { num_shards: 2, schema: { ttl: { duration: '3h' } } });
    const now = new Date(clock.nowMs()).toISOString();
    const later = new Date(clock.nowMs() + hourMs).toISOString();
    const inserts = { '!same': { seen: now }, without: { n: 1 }, '~other': { seen: later } };
    await server.send('POST', '/db/v1/tables/t/batch', { inserts });
    const versions = async () =>
      Promise.all(
        Object.keys(inserts).map(async (key) =>
          (await server.send('GET', `/db/v1/tables/t/lookup/${encodeURIComponent(key)}`)).headers.get(
            'x-service-version',
          ),
        ),
      );
    const before = await versions();
    await server.send('PUT', '/db/v1/tables/t/schema', { ttl: { duration: '3h', field: 'seen' } });
    await rewritten(server);
    const after = await versions();
    expect([after[0], after[1]]).toEqual([before[0] ?? '', before[1] ?? '']);
    expect(after[2]).not.toBe(before[2] ?? '');
    clock.jump(3 * hourMs + 60_000);
    expect((await keysEverywhere(server)).scanned).toEqual(['~other']);
  });

  test('a jump of the clock hides, but does not delete for a while', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h' } } });
    await server.send('POST', '/db/v1/tables/t/batch', { inserts: { old: { n: 1 } }, sync_level: 'full_text' });
    clock.jump(24 * hourMs);
    await clock.advance(5 * 60_000);
    expect((await keysEverywhere(server)).looked[0]).toBe(404);
    expect(server.logLines.some((line) => line.includes('the clock jumped'))).toBe(true);
    clock.jump(-24 * hourMs);
    expect((await keysEverywhere(server)).looked[0]).toBe(200);
  });

  test('a clock that has jumped while the server was stopped does not delete either', async () => {
    using directory = new TemporaryDirectory();
    const clock = new FakeClock();
    {
      await using before = await startTestServer({ clock, directory: directory.path });
      await before.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h' } } });
      await before.send('POST', '/db/v1/tables/t/batch', { inserts: { old: { n: 1 } } });
      await clock.advance(60_000);
    }
    await using after = await startTestServer({
      clock: new FakeClock(clock.nowMs() + 24 * hourMs),
      directory: directory.path,
    });
    expect(after.logLines.some((line) => line.includes('the clock jumped'))).toBe(true);
    expect((await keysEverywhere(after)).looked[0]).toBe(404);
  });

  test('a wrong clock that was believed once does not hide the same jump at a later start', async () => {
    using directory = new TemporaryDirectory();
    const clock = new FakeClock();
    {
      await using before = await startTestServer({ clock, directory: directory.path });
      await before.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h' } } });
      for (const byMs of [24 * hourMs, -24 * hourMs]) {
        clock.jump(byMs);
        // A while in which expired documents stay on disk; the jump is believed behind it.
        await until(async () => {
          await clock.advance(60_000);
          return Math.abs(notedWallClock(directory.path) - clock.nowMs()) < hourMs;
        }, 20_000);
      }
      await before.send('POST', '/db/v1/tables/t/batch', { inserts: { young: { n: 1 } } });
    }
    const later = new FakeClock(clock.nowMs() + 24 * hourMs);
    await using after = await startTestServer({ clock: later, directory: directory.path });
    expect(after.logLines.some((line) => line.includes('the clock jumped'))).toBe(true);
    await later.advance(60_000);
    later.jump(-24 * hourMs);
    expect((await after.send('GET', '/db/v1/tables/t/lookup/young')).status).toBe(200);
  });
});

describe('settings of a TTL', () => {
  const needsDuration = 'a TTL needs "ttl.duration", such as "24h"; an empty one says that documents do not expire';

  test.each([
    [{ ttl: {} }, needsDuration],
    [{ ttl: { field: 'until' } }, needsDuration],
    [{ ttl_field: 'until' }, needsDuration],
    [{ ttl: { duration: '1h', ttl_duration: '2h' } }, 'several durations, "1h" and "2h"'],
    [{ ttl: { duration: '1h' }, ttl_duration: '' }, 'several durations, "1h" and ""'],
    [{ ttl: { ttl_duration: 'soon' }, ttl_duration: '1h' }, 'soon'],
    [{ ttl: { field: 'a', duration: '1h' }, ttl_field: 'b' }, 'several fields, "a" and "b"'],
    [{ ttl: { field: '', duration: '1h' } }, '"ttl.field" is empty'],
  ])('%j are refused, for a new table and for one that is there', async (schema, message) => {
    await using server = await startTestServer();
    const refusal = { status: 400, body: { code: 'invalid_schema', message: expect.stringContaining(message) } };
    expect(await server.send('POST', '/db/v1/tables/t', { schema })).toMatchObject(refusal);
    await server.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h' } } });
    expect(await server.send('PUT', '/db/v1/tables/t/schema', schema)).toMatchObject(refusal);
    const shown = (await server.send('GET', '/db/v1/tables/t')).body.schema as { ttl: object };
    expect(shown.ttl).toEqual({ field: '_timestamp', duration: '1h' });
  });

  test.each([
    [{ ttl: { field: 'until', ttl_duration: '24h' }, ttl_field: 'until', ttl_duration: '1d' }, 'until'],
    [{ ttl_field: 'until', ttl_duration: '1h' }, 'until'],
    [{ ttl: { duration: '' } }, undefined],
    [{ ttl: { field: 'until' }, ttl_duration: '' }, undefined],
  ])('%j are taken', async (schema, field) => {
    await using server = await startTestServer();
    await server.send('POST', '/db/v1/tables/t', { schema });
    const shown = (await server.send('GET', '/db/v1/tables/t')).body.schema as { ttl?: { field: string } };
    expect(shown.ttl?.field).toBe(field);
  });
});

describe('the field of a TTL', () => {
  test('has to hold a time also after a transform, and times before 1970 and beyond all dates are times', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h', field: 'until' } } });
    const write = (body: object) => server.send('POST', '/db/v1/tables/t/batch', { ...body, sync_level: 'full_text' });
    const transform = (key: string, path: string, value: unknown) =>
      write({ transforms: [{ key, operations: [{ op: '$set', path, value }] }] });
    const status = async (key: string) => (await server.send('GET', `/db/v1/tables/t/lookup/${key}`)).status;
    const far = 1e30;
    expect((await write({ inserts: { far: { until: far }, a: { n: 1 }, b: { n: 1 }, c: { n: 1 } } })).status).toBe(201);
    for (const value of ['soon', null, '2026-02-30T00:00:00Z', '2026-01-01T00:00:00']) {
      expect((await transform('a', 'until', value)).body).toMatchObject({ code: 'validation_failed' });
    }
    expect((await transform('a', '_timestamp', 'soon')).body).toMatchObject({ code: 'validation_failed' });
    expect((await transform('far', 'n', 1)).status).toBe(201);
    expect((await transform('b', 'until', '1970-01-01T00:00:00Z')).status).toBe(201);
    expect([await status('a'), await status('b'), await status('far')]).toEqual([200, 404, 200]);
    clock.jump(2 * hourMs);
    expect([await status('a'), await status('far')]).toEqual([404, 200]);
  });

  test('may hold no time where it was not that field before; the rest of the document can be changed', async () => {
    await using server = await startTestServer();
    await server.send('POST', '/db/v1/tables/t', {});
    await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { until: 'soon' } } });
    await server.send('PUT', '/db/v1/tables/t/schema', { ttl: { duration: '1h', field: 'until' } });
    await rewritten(server);
    const transforms = [{ key: 'a', operations: [{ op: '$set', path: 'n', value: 1 }] }];
    expect((await server.send('POST', '/db/v1/tables/t/batch', { transforms })).body).toMatchObject({ transformed: 1 });
  });

  test('is the new one for writes that were on their way when it changed', async () => {
    await using server = await startTestServer();
    await server.send('POST', '/db/v1/tables/t', { schema: { ttl: { duration: '1h', field: 'since' } } });
    const { append } = Storage.prototype;
    const [held, arrived] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    spyOn(Storage.prototype, 'append').mockImplementationOnce(async function (this: Storage, request) {
      arrived.resolve();
      await held.promise;
      return append.call(this, request);
    });
    const [past, future] = ['2001-01-01T00:00:00Z', '2101-01-01T00:00:00Z'];
    const inserts = { lives: { since: past, until: future }, ends: { since: future, until: past } };
    const written = server.send('POST', '/db/v1/tables/t/batch', { inserts });
    await arrived.promise;
    await server.send('PUT', '/db/v1/tables/t/schema', { ttl: { duration: '1h', field: 'until' } });
    await rewritten(server);
    held.resolve();
    expect((await written).status).toBe(201);
    const statuses = ['lives', 'ends'].map(
      async (key) => (await server.send('GET', `/db/v1/tables/t/lookup/${key}`)).status,
    );
    expect(await Promise.all(statuses)).toEqual([200, 404]);
  });
});

describe('another TTL field', () => {
  const change = { ttl: { field: 'until', duration: '1h' } };

  test('is taken where the job that reads the bases again has no room on the disk yet, and the job follows', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    await server.send('POST', '/db/v1/tables/t', {});
    spyOn(JobRunner.prototype, 'submit').mockImplementationOnce(async () => {
      throw new ServiceError('insufficient_storage', 'the disk is full');
    });
    const changed = await server.send('PUT', '/db/v1/tables/t/schema', change);
    expect([changed.status, 'ttl_rewrite' in (await server.send('GET', '/db/v1/tables/t')).body]).toEqual([200, true]);
    await clock.advance(1_000);
    await rewritten(server);
  });

  test('has its job asked for again by the next start where that has failed', async () => {
    using directory = new TemporaryDirectory();
    for (let start = 0; start < 3; start += 1) {
      const clock = new FakeClock();
      const failures = spyOn(TtlRewrite.prototype, 'run').mockRejectedValue(new Error('a fault'));
      await using server = await startTestServer({ clock, directory: directory.path });
      if (start === 0) {
        await server.send('POST', '/db/v1/tables/t', {});
        await server.send('PUT', '/db/v1/tables/t/schema', change);
      }
      for (let attempt = 0; attempt < 12; attempt += 1) {
        await until(async () => failures.mock.calls.length > Math.min(attempt, 9));
        await clock.advance(hourMs);
      }
      expect(failures).toHaveBeenCalledTimes(10);
      mock.restore();
    }
    await using server = await startTestServer({ directory: directory.path });
    await rewritten(server);
  });
});

function notedWallClock(directory: string): number {
  using database = new Database(join(directory, 'catalog.db'), { readonly: true });
  const row = database.query("SELECT value FROM counters WHERE name = 'wall_clock_ms'").get() as {
    value: number;
  } | null;
  return row?.value ?? 0;
}
