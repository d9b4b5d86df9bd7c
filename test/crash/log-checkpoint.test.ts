import { describe, expect, test } from 'bun:test';
import { FaultPlace } from '../fault/fault-place.ts';
import { offlineCheck } from '../fault/offline-check.ts';
import type { ChildServer } from '../support/fault/child-server.ts';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import type { FaultRule } from '../support/fault/fault-control.ts';
import { type Batch, WireClient } from '../support/fault/wire-client.ts';

const pad = 'x'.repeat(20_000);

/** A batch of about 1 MB: about sixteen of them fill a write-ahead log. */
function batchOf(v: number): Batch {
  return { inserts: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, { v, pad }])) };
}

/** Writes until the server dies, or long enough; returns the last version that was acknowledged. */
async function writeUntilKilled(server: ChildServer): Promise<number> {
  const wire = new WireClient(server.url);
  for (let v = 1; v <= 120; v += 1) {
    const answer = await wire.batch('t', batchOf(v)).catch(() => undefined);
    if (!answer) return v - 1;
    expect(answer.status).toBe(201);
  }
  return 120;
}

/** All documents are of one batch; returns its version. */
async function versionIn(server: ChildServer): Promise<number> {
  const versions = [...(await new WireClient(server.url).scan('t')).values()].map(({ v }) => Number(v));
  expect(versions.length).toBe(50);
  expect(new Set(versions).size).toBe(1);
  return versions[0] ?? 0;
}

describe('a kill while the write-ahead log is copied into its file', () => {
  /** `power`: what was not synced is gone, too. */
  const places: (Partial<FaultRule> & { failpoint?: string; power?: boolean })[] = [
    { failpoint: 'storage.wal-checkpoint' },
    { calls: ['write'], skip: 0 },
    { calls: ['write'], skip: 40 },
    { calls: ['sync'], skip: 0 },
    { calls: ['sync'], skip: 1 },
    { calls: ['write'], skip: 40, power: true },
    { calls: ['write'], skip: 200, power: true },
    { calls: ['sync'], skip: 0, power: true },
    { calls: ['sync'], skip: 1, power: true },
  ];
  test.each(places.map((place) => [JSON.stringify(place), place] as const))(
    'at %s: the last acknowledged batch is there, whole',
    async (_, { failpoint, power, ...rule }) => {
      using place = new FaultPlace();
      let acknowledged = 0;
      {
        const shadow = power ? new DurableShadow(place.dataDir, `${place.directory}/shadow`) : undefined;
        await using server = await place.start({ failpoint, ...(shadow ? { shadow } : {}) });
        await new WireClient(server.url).createTable('t');
        if (!failpoint) place.control.arm({ ...rule, calls: rule.calls ?? [], path: 'documents.db$', action: 'kill' });
        acknowledged = await writeUntilKilled(server);
        expect((await server.kill()).signal).toBe('SIGKILL');
        expect(acknowledged).toBeLessThan(120);
        shadow?.replace();
      }
      place.control.disarmAll();
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
      await using server = await place.start();
      expect([acknowledged, acknowledged + 1]).toContain(await versionIn(server));
    },
    { timeout: 120_000 },
  );
});

describe('a disk that fails while the write-ahead log is copied into its file', () => {
  test.each(['ENOSPC', 'EROFS'] as const)(
    '%s: commits go on in the log, and the copy is made when it can be',
    async (action) => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        const fault = place.control.arm({ calls: ['write', 'truncate'], path: 'documents.db$', action });
        // SQLite does not say why it could not write: the server finds out with a file beside it.
        const probe = place.control.arm({ calls: ['sync', 'unlink'], path: '-probe$', action });
        let v = 0;
        for (; v < 60 && fault.acted < 2; v += 1) {
          expect((await wire.batch('t', batchOf(v))).status).toBe(201);
        }
        expect(fault.acted).toBeGreaterThan(0);
        expect((await wire.lookup('t', 'k7'))?.document).toHaveProperty('v', v - 1);
        fault.disarm();
        probe.disarm();
        for (const end = v + 25; v < end; v += 1) expect((await wire.batch('t', batchOf(v))).status).toBe(201);
        expect(await versionIn(server)).toBe(v - 1);
      }
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
    },
    { timeout: 120_000 },
  );

  test(
    'EIO of its sync: the server stops with 74 and loses nothing',
    async () => {
      using place = new FaultPlace();
      let acknowledged = 0;
      {
        await using server = await place.start();
        const wire = new WireClient(server.url);
        await wire.createTable('t');
        place.control.arm({ calls: ['sync'], path: 'documents.db$', action: 'EIO', times: 1 });
        for (let v = 1; v <= 120 && !server.ending; v += 1) {
          const answer = await wire.batch('t', batchOf(v)).catch(() => undefined);
          if (answer?.status === 201) acknowledged = v;
          else expect(answer?.status ?? 503).toBe(503);
        }
        expect((await server.ended).code).toBe(74);
      }
      await using server = await place.start();
      expect(await versionIn(server)).toBeGreaterThanOrEqual(acknowledged);
    },
    { timeout: 120_000 },
  );
});
