import { describe, expect, test } from 'bun:test';
import { FaultPlace } from '../fault/fault-place.ts';
import { offlineCheck } from '../fault/offline-check.ts';
import type { ChildServer } from '../support/fault/child-server.ts';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import type { FaultRule } from '../support/fault/fault-control.ts';
import { WireClient } from '../support/fault/wire-client.ts';

/** Writes batches of about 1 MB over one table until the server dies; returns the last version that was acknowledged. */
async function writeUntilKilled(server: ChildServer, from: number): Promise<number> {
  const wire = new WireClient(server.url);
  const pad = 'x'.repeat(20_000);
  let acknowledged = from;
  for (let v = from + 1; v <= from + 120; v += 1) {
    const inserts = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, { v, pad }]));
    const answer = await wire.batch('t', { inserts }).catch(() => undefined);
    if (!answer) return acknowledged;
    expect(answer.status).toBe(201);
    acknowledged = v;
  }
  return acknowledged;
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
        acknowledged = await writeUntilKilled(server, 0);
        expect((await server.kill()).signal).toBe('SIGKILL');
        expect(acknowledged).toBeLessThan(120);
        shadow?.replace();
      }
      place.control.disarmAll();
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
      await using server = await place.start();
      const versions = [...(await new WireClient(server.url).scan('t')).values()].map(({ v }) => v);
      expect(versions.length).toBe(50);
      expect(new Set(versions).size).toBe(1);
      expect([acknowledged, acknowledged + 1]).toContain(Number(versions[0]));
    },
    { timeout: 60_000 },
  );
});
