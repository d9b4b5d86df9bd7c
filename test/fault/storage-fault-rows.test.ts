import { describe, expect, test } from 'bun:test';
import { readdirSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { CrashRun, writesBeforeFailure } from '../crash/crash-run.ts';
import { Violation } from '../crash/load-client.ts';
import { ChildServer, StartFailure } from '../support/fault/child-server.ts';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import { changingCalls, type FaultRule } from '../support/fault/fault-control.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

const timeout = { timeout: 120_000 };
const powerFailures = Number(process.env.SUNDEW_POWER_FAILURES ?? 8);
const hour = 3_600_000;

/** Sets the soft limit of a process that runs. */
function limitOpenFiles(pid: number, most: number): void {
  const { success, stderr } = Bun.spawnSync(['prlimit', '--pid', String(pid), `--nofile=${most}:`]);
  if (!success) throw new Error(stderr.toString());
}

describe('S02 the power fails', () => {
  test(
    'what was acknowledged is in what was synced',
    async () => {
      const seed = runSeed();
      const random = new SeededRandom(seed);
      using place = new FaultPlace();
      const run = new CrashRun(place.directory, random);
      try {
        for (let round = 0; round < powerFailures; round += 1) {
          const shadowDir = join(place.directory, `shadow-${round}`);
          const openShadow = (dataDir: string) => new DurableShadow(dataDir, shadowDir);
          await run.powerFailure(openShadow, random.between(50, round % 3 === 0 ? 1_800 : 500));
          rmSync(shadowDir, { recursive: true });
        }
      } catch (error) {
        console.log(`S02: seed ${seed}\n${run.history.join('\n')}`);
        throw error;
      }
      expect(run.acknowledged).toBeGreaterThanOrEqual(powerFailures * writesBeforeFailure);
    },
    { timeout: 120_000 + powerFailures * 16_000 },
  );

  test(
    'a disk that claims to sync and does not is found out: the comparison can fail',
    async () => {
      using place = new FaultPlace();
      const run = new CrashRun(place.directory, new SeededRandom(1));
      const openShadow = (dataDir: string) => new DurableShadow(dataDir, join(place.directory, 'shadow'));
      const liar: FaultRule = { calls: ['sync'], path: '.db-wal', action: 'drop' };
      await expect(run.powerFailure(openShadow, 2_000, liar)).rejects.toBeInstanceOf(Violation);
    },
    timeout,
  );
});

describe('S06 a sync that fails once', () => {
  test.each(['documents.db-wal', 'catalog.db-wal'])(
    'on %s: the store stops acknowledging, the process ends with 74, the next start recovers',
    async (path) => {
      using place = new FaultPlace();
      const acknowledged = new Set<string>();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t', { num_shards: 3 });
        const write = async (i: number) => {
          const inserts = { [`!${i}`]: { i }, [`a${i}`]: { i }, [`~${i}`]: { i } };
          const answer = await wire.batch('t', { inserts }).catch(() => undefined);
          if (answer?.status === 201) for (const key of Object.keys(inserts)) acknowledged.add(key);
          return answer;
        };
        for (let i = 0; i < 10; i += 1) await write(i);
        expect(acknowledged.size).toBe(30);
        const fault = place.control.arm({ calls: ['sync'], path, action: 'EIO', times: 1 });
        const failed = await write(10);
        expect(fault.acted).toBe(1);
        expect(failed?.status ?? 503).toBe(503);
        if (failed) expect(failed.body).toHaveProperty('code', 'storage_failed');
        const next = await write(11);
        expect(next?.status ?? 503).toBe(503);
        expect((await server.ended).code).toBe(74);
      }
      await using server = await place.start();
      const found = await new WireClient(server.url).scan('t');
      for (const key of acknowledged) expect(found.has(key)).toBe(true);
      // The write in doubt is there whole or not at all.
      const parts = ['!10', 'a10', '~10'].filter((key) => found.has(key)).length;
      expect([0, 3]).toContain(parts);
      expect(found.has('a11')).toBe(false);
    },
    timeout,
  );
});

describe('S07 a full disk', () => {
  test(
    'while writing: 507, reads go on, and freed space is used without a restart',
    async () => {
      using place = new FaultPlace();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.createTable('t', { num_shards: 3 });
      expect((await wire.batch('t', { inserts: { '!a': { n: 1 }, m: { n: 1 }, '~z': { n: 1 } } })).status).toBe(201);
      const full = place.control.arm({ calls: ['write', 'create', 'mkdir'], path: place.dataDir, action: 'ENOSPC' });
      for (const inserts of [{ m: { n: 2 } }, { '!a': { n: 2 }, m: { n: 2 }, '~z': { n: 2 } }]) {
        const answer = await wire.batch('t', { inserts });
        expect(answer.status).toBe(507);
        expect(answer.body).toMatchObject({ code: 'insufficient_storage', retryable: true });
      }
      expect((await wire.send('POST', '/db/v1/tables/other', {})).status).toBe(507);
      expect((await wire.lookup('t', 'm'))?.document).toHaveProperty('n', 1);
      expect((await wire.scan('t')).size).toBe(3);
      expect(await wire.count('t')).toBe(3);
      full.disarm();
      const answer = await wire.batch('t', { inserts: { m: { n: 3 }, '~z': { n: 3 } }, sync_level: 'full_text' });
      expect(answer.status).toBe(201);
      expect(await wire.count('t')).toBe(3);
      expect((await wire.send('POST', '/db/v1/tables/other', {})).status).toBeLessThan(300);
    },
    timeout,
  );

  test(
    'behind the commit of a write over several ranges: 202, not to be repeated, and it follows by itself',
    async () => {
      using place = new FaultPlace();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.createTable('t', { num_shards: 3 });
      const inserts = Object.fromEntries(['!a', 'm', '~z'].map((key) => [key, { words: 'amber' }]));
      const full = place.control.arm({ calls: ['write'], path: '/ranges/2/1/documents.db', action: 'ENOSPC' });
      // A range that cannot even be opened takes no part: nothing is written.
      const refused = await wire.batch('t', { inserts, sync_level: 'full_text' });
      expect(refused).toMatchObject({ status: 507, body: { code: 'insufficient_storage' } });
      full.disarm();
      expect((await wire.scan('t')).size).toBe(0);
      const fullAgain = place.control.arm({ calls: ['write'], path: '/ranges/2/1/documents.db', action: 'ENOSPC' });
      const answer = await wire.batch('t', { inserts, sync_level: 'full_text' });
      expect(answer.status).toBe(202);
      expect(answer.body).toMatchObject({ status: 'committed_repair_required', inserted: 3 });
      expect(answer.body).not.toHaveProperty('retryable');
      expect([...(await wire.scan('t')).keys()]).toEqual(['!a', '~z']);
      fullAgain.disarm();
      await until(async () => (await wire.count('t')) === 3);
      expect((await wire.scan('t')).size).toBe(3);
      expect(server.log).toContain('the disk is full');
      await until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
    },
    timeout,
  );

  test(
    'at the start after a kill: the server reads, refuses writes, and names the directory in its log alone',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t', { num_shards: 3 });
        const inserts = { '!a': { words: 'amber' }, m: { words: 'amber' }, '~z': { words: 'amber' } };
        await wire.batch('t', { inserts, sync_level: 'full_text' });
      }
      // But for the shared memory beside the files, which is cut and grown again at every start.
      for (const path of ['.db$', '.db-wal', '/indexes/', 'secrets.json', 'LOCK']) {
        place.control.arm({ calls: ['write', 'create', 'mkdir'], path, action: 'ENOSPC' });
      }
      const server = await ChildServer.spawn({ dataDir: place.dataDir, control: place.control });
      await using _ = server;
      const wire = new WireClient(server.url);
      await until(async () => (await wire.send('GET', '/db/v1/tables').catch(() => undefined))?.status === 200);
      expect((await wire.scan('t')).size).toBe(3);
      const answer = await wire.batch('t', { inserts: { m: { words: 'birch' } } });
      expect(answer.status).toBe(507);
      expect(answer.body).toMatchObject({ code: 'insufficient_storage' });
      expect(JSON.stringify(answer.body)).not.toContain(place.directory);
      expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
      expect(server.log).toContain('read-only');
      expect(server.log).toContain(place.dataDir);
      place.control.disarmAll();
      expect((await wire.batch('t', { inserts: { m: { words: 'birch' } } })).status).toBe(201);
      await server.ready(60_000);
      expect(await wire.count('t')).toBe(3);
    },
    timeout,
  );

  test(
    'while a table is dropped: 507, and the table is there as before until it can be dropped',
    async () => {
      using place = new FaultPlace();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.createTable('t', { num_shards: 3 });
      const inserts = { '!a': { words: 'amber' }, m: { words: 'amber' }, '~z': { words: 'amber' } };
      expect((await wire.batch('t', { inserts, sync_level: 'full_text' })).status).toBe(201);
      const full = place.control.arm({ calls: ['write'], path: '/catalog.db', action: 'ENOSPC' });
      const refused = await wire.send('DELETE', '/db/v1/tables/t');
      expect(refused).toMatchObject({ status: 507, body: { code: 'insufficient_storage' } });
      expect(full.acted).toBeGreaterThan(0);
      expect((await wire.scan('t')).size).toBe(3);
      expect((await wire.send('POST', '/db/v1/tables/t', {})).status).toBe(409);
      expect((await wire.batch('t', { inserts: { n: { words: 'amber' } }, sync_level: 'full_text' })).status).toBe(201);
      await until(async () => (await wire.count('t')) === 4);
      full.disarm();
      expect((await wire.send('DELETE', '/db/v1/tables/t')).status).toBe(204);
      expect((await wire.send('GET', '/db/v1/tables/t')).status).toBe(404);
      await wire.createTable('t');
      expect((await wire.scan('t')).size).toBe(0);
    },
    timeout,
  );

  test(
    'while an index makes its checkpoint: writes go on, and a later checkpoint holds',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start({ environment: { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' } });
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        const full = place.control.arm({ calls: ['write', 'create'], path: '/indexes/', action: 'ENOSPC' });
        for (let i = 0; full.acted === 0 && i < 400; i += 1) {
          expect((await wire.batch('t', { inserts: { [`k${i % 10}`]: { i, words: 'amber' } } })).status).toBe(201);
          await Bun.sleep(10);
        }
        expect(full.acted).toBeGreaterThan(0);
        expect((await wire.batch('t', { inserts: { last: { words: 'amber' } } })).status).toBe(201);
        full.disarm();
        expect((await wire.batch('t', { inserts: { last: { words: 'amber' } }, sync_level: 'full_text' })).status).toBe(
          201,
        );
        expect((await server.stop()).code).toBe(0);
      }
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
      await using server = await place.start();
      const query = { table: 't', full_text_search: { field: 'words', match: 'amber' }, limit: 100 };
      expect((await new WireClient(server.url).query(query)).hits.length).toBe(11);
    },
    timeout,
  );
});

describe('S08 a disk that turns read-only', () => {
  test(
    'writes are 503, reads work, readiness is false',
    async () => {
      using place = new FaultPlace();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.createTable('t');
      await wire.batch('t', { inserts: { k: { n: 1 } } });
      place.control.arm({ calls: changingCalls, path: place.dataDir, action: 'EROFS' });
      const answer = await wire.batch('t', { inserts: { k: { n: 2 } } });
      expect(answer.status).toBe(503);
      expect(answer.body).toMatchObject({ code: 'read_only', retryable: true });
      expect((await wire.lookup('t', 'k'))?.document).toHaveProperty('n', 1);
      expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
      expect((await wire.scan('t')).size).toBe(1);
    },
    timeout,
  );
});

describe('S11 the wall clock jumps', () => {
  test(
    'back an hour: versions and ranges are never given twice',
    async () => {
      using place = new FaultPlace();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const versions: number[] = [];
      const ranges = new Set<string>();
      for (const offset of [0, -hour, 24 * hour, -48 * hour]) {
        place.control.shiftClock(offset);
        const table = await wire.createTable('t');
        for (const id of Object.keys(table.shards as object)) {
          expect(ranges.has(id)).toBe(false);
          ranges.add(id);
        }
        await wire.batch('t', { inserts: { k: { offset } } });
        versions.push(Number((await wire.lookup('t', 'k'))?.version));
        expect((await wire.send('DELETE', '/db/v1/tables/t')).status).toBe(204);
      }
      expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
    },
    timeout,
  );

  test(
    'back a day across a restart: a table that is dropped unread leaves its versions behind',
    async () => {
      using place = new FaultPlace();
      const versionOf = async (act: (wire: WireClient) => Promise<unknown>) => {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await act(wire);
        await wire.createTable('t');
        await wire.batch('t', { inserts: { k: { n: 1 } } });
        const version = Number((await wire.lookup('t', 'k'))?.version);
        await server.stop();
        return version;
      };
      place.control.shiftClock(24 * hour);
      const first = await versionOf(async () => undefined);
      place.control.shiftClock(0);
      const second = await versionOf((wire) => wire.expect(204, 'DELETE', '/db/v1/tables/t'));
      expect(second).toBeGreaterThan(first);
    },
    timeout,
  );

  test(
    'forward a day: expired documents are hidden, not deleted, until the jump is accepted',
    async () => {
      using place = new FaultPlace();
      const environment = { SUNDEW__TTL__SWEEP_INTERVAL: '100ms', SUNDEW__TTL__GRACE: '0s' };
      await using server = await place.start({ environment });
      const wire = new WireClient(server.url);
      await wire.createTable('t', { schema: { ttl: { duration: '2h' } } });
      const inserts = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, { words: 'amber' }]));
      await wire.batch('t', { inserts, sync_level: 'full_text' });
      // One document that has expired in truth: its deletion shows that the sweeper works.
      const old = new Date(Date.now() - 3 * hour).toISOString();
      await wire.batch('t', { inserts: { old: { _timestamp: old } } });
      await until(async () => (await wire.reportedDocuments()).get('t') === 20);
      place.control.shiftClock(24 * hour);
      expect(await wire.lookup('t', 'k1')).toBeUndefined();
      expect((await wire.scan('t')).size).toBe(0);
      expect(await wire.count('t')).toBe(0);
      await Bun.sleep(600); // several sweeps
      expect((await wire.reportedDocuments()).get('t')).toBe(20);
      place.control.shiftClock(0);
      expect((await wire.scan('t')).size).toBe(20);
      expect(await wire.count('t')).toBe(20);
    },
    timeout,
  );
});

describe('S12 two processes on one directory', () => {
  test(
    'the second ends and names the first; the lock of a dead process does not hold',
    async () => {
      using place = new FaultPlace();
      const first = await place.start();
      const failure = await place.start().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).toBeInstanceOf(StartFailure);
      const { ending, log } = failure as StartFailure;
      expect(ending.code).toBeGreaterThan(0);
      expect(log).toContain(String(first.pid));
      expect(offlineCheck(place.dataDir).code).toBe(1);
      expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
      await first.kill();
      await using next = await place.start();
      expect((await fetch(`${next.url}/readyz`)).status).toBe(200);
    },
    timeout,
  );
});

describe('S13 data of a newer format', () => {
  test(
    'are refused with a hint, and nothing is written',
    async () => {
      using place = new FaultPlace();
      await (await place.start()).stop();
      const file = Bun.file(place.file('format.json'));
      const format = (await file.json()) as Record<string, unknown>;
      const newer = Object.fromEntries(Object.entries(format).map(([k, v]) => [k, typeof v === 'number' ? v + 1 : v]));
      await Bun.write(file, JSON.stringify(newer));
      const before = place.fingerprint();
      const failure = await place.start().then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(failure).toBeInstanceOf(StartFailure);
      const { ending, log } = failure as StartFailure;
      expect(ending.code).toBeGreaterThan(0);
      expect(log).toMatch(/knows formats up to/);
      expect(log).toContain('start the release that wrote this directory');
      const ignored = (files: Record<string, string>) =>
        Object.entries(files).filter(([name]) => !name.startsWith('/LOCK'));
      expect(ignored(place.fingerprint())).toEqual(ignored(before));
    },
    timeout,
  );
});

describe('S14 few file descriptors', () => {
  test(
    'that idle connections hold are given to the next client',
    async () => {
      using place = new FaultPlace();
      await using server = await ChildServer.start({ dataDir: place.dataDir, openFilesMax: 128 });
      const { hostname, port } = new URL(server.url);
      const idle = Array.from({ length: 200 }, () => connect(Number(port), hostname));
      try {
        let answers = 0;
        for (const socket of idle) {
          socket.on('error', () => undefined);
          socket.on('data', () => {
            answers += 1;
          });
          socket.write('GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
        }
        // More than the server has descriptors for: each got its answer when those before it were closed.
        await until(async () => answers === idle.length);
        expect((await fetch(`${server.url}/readyz`, { signal: AbortSignal.timeout(20_000) })).status).toBe(200);
        expect(server.log).toContain('few file descriptors are left');
      } finally {
        for (const socket of idle) socket.destroy();
      }
    },
    timeout,
  );

  test(
    'that are taken away from a server under load keep its log uncopied, refuse what needs them, and lose nothing',
    async () => {
      using place = new FaultPlace();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.send('POST', '/db/v1/tables/t', {});
      const words = 'x'.repeat(1_024 * 1_024);
      const acknowledged: string[] = [];
      const write = async (key: string) => {
        const send = () => wire.batch('t', { inserts: { [key]: { words } } });
        // A connection that waits for its next request may be closed for its descriptor: clients send such a request again.
        const { status } = await send().catch(send);
        if (status === 201) acknowledged.push(key);
      };
      await write('before');
      const open = readdirSync(`/proc/${server.pid}/fd`).map(Number);
      limitOpenFiles(server.pid, Math.max(...open) + 3);
      // More than a log has before a thread of its own is started to copy it.
      for (let n = 0; n < 40; n += 1) await write(`short ${n}`);
      expect(server.ending).toBeUndefined();
      expect(acknowledged.length).toBeGreaterThan(20);
      limitOpenFiles(server.pid, 4_096);
      await until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
      for (let n = 0; n < 40; n += 1) await write(`after ${n}`);
      expect(acknowledged).toContain('after 39');
      await until(async () => (await wire.count('t')) === acknowledged.length);
    },
    timeout,
  );

  test(
    'with 256 the server degrades with a clear error and loses nothing',
    async () => {
      using place = new FaultPlace();
      const written = new Set<string>();
      const refusals = new Set<string>();
      {
        await using server = await ChildServer.start({ dataDir: place.dataDir, openFilesMax: 256 });
        const wire = new WireClient(server.url);
        for (let i = 0; i < 60; i += 1) {
          const created = await wire.send('POST', `/db/v1/tables/t${i}`, {});
          if (created.status >= 300) {
            refusals.add(`${created.status} ${(created.body as { code: string }).code}`);
            continue;
          }
          const answer = await wire.batch(`t${i}`, { inserts: { k: { words: 'amber' } }, sync_level: 'full_text' });
          if (answer.status === 201) written.add(`t${i}`);
          else refusals.add(`${answer.status} ${(answer.body as { code: string }).code}`);
        }
        expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
      }
      for (const refusal of refusals) expect(refusal).toMatch(/^(503|507) /);
      expect(written.size).toBeGreaterThan(10);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      for (const table of written) expect(await wire.count(table)).toBe(1);
    },
    timeout,
  );

  test(
    'that never suffice for all ranges of a write: it is refused for good, says so, and writes nothing',
    async () => {
      using place = new FaultPlace();
      await using server = await ChildServer.start({ dataDir: place.dataDir, openFilesMax: 256 });
      const wire = new WireClient(server.url);
      const names = Array.from({ length: 8 }, (_, table) => `t${table}`);
      for (const name of names) await wire.expect(200, 'POST', `/db/v1/tables/${name}`, { num_shards: 20 });
      const write = (tables: string[]) =>
        wire.send('POST', '/db/v1/batch', {
          tables: Object.fromEntries(tables.map((name) => [name, { inserts: { a: {} } }])),
        });
      for (let time = 0; time < 2; time += 1) {
        expect(await write(names)).toMatchObject({
          status: 400,
          body: { code: 'limit_exceeded', retryable: false, message: expect.stringContaining('160 key ranges') },
        });
      }
      expect(await wire.count('t0')).toBe(0);
      await until(async () => (await write(['t0', 't1'])).status === 201);
    },
    timeout,
  );
});
