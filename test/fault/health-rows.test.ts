import { describe, expect, test } from 'bun:test';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import type { ChildServer } from '../support/fault/child-server.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';

const timeout = { timeout: 120_000 };

interface Status {
  health: string;
  message: string;
  disk: { health: string; message: string };
  ranges: { range_id: number; table: string; health: string; message: string }[];
}

interface LogLine {
  msg: string;
  level: string;
  request_id?: string;
  route?: string;
  table?: string;
  range_id?: number;
  code?: string;
}

const status = async (server: ChildServer) => (await (await fetch(`${server.url}/db/v1/status`)).json()) as Status;
const readiness = async (server: ChildServer) => {
  const answer = await fetch(`${server.url}/readyz`);
  return [answer.status, ((await answer.json()) as { failing?: string[] }).failing];
};
const metric = async (server: ChildServer, line: string) =>
  (await (await fetch(`${server.metricsUrl}/metrics`)).text()).includes(`${line}\n`);
const logOf = (server: ChildServer) =>
  server.log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as LogLine);

/** Sets the soft limit of a process that runs. */
function limitFileSize(pid: number, most: number | 'unlimited'): void {
  const { success, stderr } = Bun.spawnSync(['prlimit', '--pid', String(pid), `--fsize=${most}:`]);
  if (!success) throw new Error(stderr.toString());
}

/** A stopped directory with the tables `t` and `whole`, a document in each. */
async function filled(place: FaultPlace): Promise<void> {
  await using server = await place.start();
  const wire = new WireClient(server.url);
  for (const table of ['t', 'whole']) {
    await wire.createTable(table);
    const inserts = { a: { note: 'needle', kind: 'x' }, b: { note: 'second', kind: 'x' } };
    expect((await wire.batch(table, { inserts, sync_level: 'full_text' })).status).toBe(201);
  }
  expect((await server.stop()).code).toBe(0);
}

/** The report of a fault in the one range of the table `t`. */
async function expectRangeDown(server: ChildServer, place: FaultPlace, kind: string): Promise<void> {
  const found = await status(server);
  expect(found).toMatchObject({
    health: 'degraded',
    disk: { health: 'healthy', message: '' },
    ranges: [{ range_id: 1, table: 't', health: 'unhealthy' }],
  });
  expect(found.message).toContain('range 1 of table "t"');
  expect(JSON.stringify(found)).not.toContain(place.directory);
  expect(await readiness(server)).toEqual([503, ['ranges']]);
  expect(await metric(server, `sundew_standing_faults{kind="${kind}"} 1`)).toBe(true);
  expect(logOf(server)).toContainEqual(
    expect.objectContaining({ level: 'error', fault: kind, table: 't', range_id: 1 }),
  );
}

describe('everybody hears of', () => {
  test(
    'a file of documents that was overwritten: status, readiness, log and metrics, and other tables are served',
    async () => {
      using place = new FaultPlace();
      await filled(place);
      const [file] = place.files('/ranges/1/1/documents.db');
      writeFileSync(file ?? '', new Uint8Array(statSync(file ?? '').size));
      await using server = await place.start({ awaitReady: false });
      const wire = new WireClient(server.url);
      const answer = await wire.send('GET', '/db/v1/tables/t/lookup/a', undefined, { 'x-request-id': 'seek-1' });
      expect(answer.body).toMatchObject({ code: 'data_corrupted' });
      await expectRangeDown(server, place, 'file_damaged');
      await until(async () => logOf(server).some(({ request_id }) => request_id === 'seek-1'));
      expect(logOf(server)).toContainEqual(
        expect.objectContaining({
          request_id: 'seek-1',
          route: '/db/v1/tables/:table/lookup/:key',
          table: 't',
          range_id: 1,
          code: 'data_corrupted',
        }),
      );
      for (const [path, body] of [
        ['/db/v1/query', { table: 't', count: true }],
        ['/db/v1/tables/t/batch', { inserts: { c: {} } }],
        ['/db/v1/batch', { tables: { t: { inserts: { c: {} } } } }],
      ] as const) {
        const failed = await wire.send('POST', path, body, { 'x-request-id': `of${path}` });
        expect(failed.status).toBe(500);
        const isSaid = () => logOf(server).find(({ request_id }) => request_id === `of${path}`);
        await until(async () => isSaid() !== undefined);
        expect(isSaid()).toMatchObject({ table: 't', range_id: 1, code: 'data_corrupted' });
      }
      const several = `${JSON.stringify({ table: 't' })}\n${JSON.stringify({ table: 'whole', count: true })}`;
      const answers = await wire.send('POST', '/db/v1/query', several, { 'x-request-id': 'two' });
      expect(answers.body).toMatchObject({ responses: [{ status: 500, code: 'data_corrupted' }, { status: 200 }] });
      await until(async () => logOf(server).some((line) => line.request_id === 'two' && line.range_id === 1));
      expect((await wire.lookup('whole', 'a'))?.document).toHaveProperty('note', 'needle');
      expect((await wire.send('GET', '/db/v1/cluster')).status).toBe(200);
      expect((await wire.send('GET', '/db/v1/tables')).status).toBe(200);
      expect((await wire.send('DELETE', '/db/v1/tables/t')).status).toBeLessThan(300);
      expect(await status(server)).toMatchObject({ health: 'healthy', message: '', ranges: [] });
      expect(await readiness(server)).toEqual([200, undefined]);
    },
    timeout,
  );

  test(
    'a write-ahead log that is damaged, from the start on',
    async () => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        for (let n = 0; n < 20; n += 1) await wire.batch('t', { inserts: { [`a${n}`]: { pad: 'x'.repeat(900) } } });
      }
      const log = place.file('documents.db-wal');
      const bytes = readFileSync(log);
      bytes.writeUInt8(bytes.readUInt8(20_000) ^ 4, 20_000);
      writeFileSync(log, bytes);
      await using server = await place.start({ awaitReady: false });
      await until(async () => (await status(server)).health === 'degraded' && (await status(server)).ranges.length > 0);
      await expectRangeDown(server, place, 'file_damaged');
    },
    timeout,
  );

  test(
    'a file of documents that may not grow any further, until it may',
    async () => {
      using place = new FaultPlace();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      for (const table of ['t', 'whole']) await wire.createTable(table);
      const inserts = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`k${n}`, { pad: 'x'.repeat(10_000) }]));
      limitFileSize(server.pid, 8 * 1_024 * 1_024);
      await until(async () => (await wire.batch('t', { inserts })).status === 503);
      expect((await wire.batch('t', { inserts })).body).toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('ulimit -f'),
      });
      await expectRangeDown(server, place, 'writes_refused');
      expect((await status(server)).message).toContain('ulimit -f');
      expect((await wire.lookup('t', 'k1'))?.document).toHaveProperty('pad');
      expect((await wire.batch('whole', { inserts: { a: {} } })).status).toBe(201);
      limitFileSize(server.pid, 'unlimited');
      await until(async () => (await readiness(server))[0] === 200);
      expect((await wire.batch('t', { inserts })).status).toBe(201);
      expect((await status(server)).ranges).toEqual([]);
    },
    timeout,
  );

  test.each(['EACCES', 'EROFS', 'EIO', 'EFBIG'] as const)(
    'a catalog that refuses writes by %s, until it takes them: documents are written and read meanwhile',
    async (action) => {
      using place = new FaultPlace();
      await filled(place);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const refusal = place.control.arm({ calls: ['write'], path: '/catalog.db-wal$', action });
      expect(await wire.send('POST', '/db/v1/tables/u', {})).toMatchObject({
        status: 503,
        body: { code: 'unavailable' },
      });
      const found = await status(server);
      expect(found).toMatchObject({ health: 'unhealthy', disk: { health: 'unhealthy' }, ranges: [] });
      expect(found.message).toContain('the catalog refuses writes');
      expect(JSON.stringify(found)).not.toContain(place.directory);
      expect(await readiness(server)).toEqual([503, ['storage']]);
      expect(await metric(server, 'sundew_standing_faults{kind="writes_refused"} 1')).toBe(true);
      expect(logOf(server)).toContainEqual(expect.objectContaining({ level: 'error', fault: 'writes_refused' }));
      expect((await wire.batch('t', { inserts: { c: { note: 'third' } } })).status).toBe(201);
      expect((await wire.lookup('t', 'c'))?.document).toHaveProperty('note', 'third');
      refusal.disarm();
      await until(async () => (await readiness(server))[0] === 200);
      expect(await status(server)).toMatchObject({ health: 'healthy', message: '' });
      expect(await wire.send('POST', '/db/v1/tables/u', {})).toMatchObject({ status: 200, body: { name: 'u' } });
    },
    timeout,
  );

  test(
    'a file of documents that refuses what its log holds at the start: the log stays, and all is served',
    async () => {
      using place = new FaultPlace();
      const started = await place.start();
      const before = new WireClient(started.url);
      await before.createTable('t');
      const refusal = place.control.arm({ calls: ['write'], path: '/ranges/1/1/documents.db$', action: 'EIO' });
      expect((await before.batch('t', { inserts: { a: { n: 1 } } })).status).toBe(201);
      await started[Symbol.asyncDispose]();
      await using server = await place.start();
      const wire = new WireClient(server.url);
      expect((await wire.lookup('t', 'a'))?.document).toHaveProperty('n', 1);
      expect((await wire.batch('t', { inserts: { b: { n: 2 } } })).status).toBe(201);
      expect(refusal.acted).toBeGreaterThan(0);
    },
    timeout,
  );

  test(
    'documents that are damaged, as soon as somebody reads one',
    async () => {
      using place = new FaultPlace();
      await filled(place);
      const [file] = place.files('/ranges/1/1/documents.db');
      const bytes = readFileSync(file ?? '');
      for (let at = bytes.indexOf('needle'); at >= 0; at = bytes.indexOf('needle', at + 1)) bytes.write('noodle', at);
      writeFileSync(file ?? '', bytes);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      for (let round = 0; round < 2; round += 1) {
        const answer = await wire.send('GET', '/db/v1/tables/t/lookup/a');
        expect(answer.body).toMatchObject({ code: 'data_corrupted' });
      }
      expect(await metric(server, 'sundew_damaged_documents_total 1')).toBe(true);
      expect(await status(server)).toMatchObject({
        health: 'degraded',
        ranges: [
          { range_id: 1, table: 't', health: 'degraded', message: expect.stringContaining('one stored document') },
        ],
      });
      expect(await readiness(server)).toEqual([200, undefined]);
      expect(server.log).toContain('does not match its checksum');
    },
    timeout,
  );

  test(
    'a full disk, until there is room',
    async () => {
      using place = new FaultPlace();
      await filled(place);
      await using server = await place.start();
      const wire = new WireClient(server.url);
      expect((await wire.batch('t', { inserts: { c: { note: 'third' } } })).status).toBe(201);
      const full = place.control.arm({ calls: ['write', 'create', 'mkdir'], path: place.dataDir, action: 'ENOSPC' });
      await until(async () => (await wire.batch('t', { inserts: { d: { pad: 'x'.repeat(500_000) } } })).status === 507);
      const found = await status(server);
      expect(found).toMatchObject({ health: 'unhealthy', disk: { health: 'unhealthy' } });
      expect(found.disk.message).toContain('full');
      expect(await readiness(server)).toEqual([503, ['storage']]);
      expect(await metric(server, 'sundew_standing_faults{kind="disk_full"} 1')).toBe(true);
      expect(logOf(server)).toContainEqual(expect.objectContaining({ level: 'error', fault: 'disk_full' }));
      full.disarm();
      await until(async () => {
        await wire.batch('t', { inserts: { d: { note: 'fourth' } } });
        return (await status(server)).health === 'healthy';
      });
      expect(await readiness(server)).toEqual([200, undefined]);
    },
    timeout,
  );
});
