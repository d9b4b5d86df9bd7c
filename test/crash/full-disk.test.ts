import { expect, test } from 'bun:test';
import { statSync } from 'node:fs';
import { FaultPlace } from '../fault/fault-place.ts';
import { offlineCheck } from '../fault/offline-check.ts';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import type { FaultRule } from '../support/fault/fault-control.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';

/** One in each range, so that each write has a redo record in the catalog. */
const keys = ['!a', 'm', '~z'];
const logs = '.db-wal$';

/** Writes until a write is refused, or gets no answer, or `count` times; returns the last version that was acknowledged. */
async function write(wire: WireClient, from: number, count: number): Promise<number> {
  for (let v = from; v < from + count; v += 1) {
    const inserts = Object.fromEntries(keys.map((key) => [key, { v }]));
    const answer = await wire.batch('t', { inserts }).catch(() => undefined);
    if (!answer || answer.status === 507) return v - 1;
    expect([201, 202]).toContain(answer.status);
  }
  return from + count - 1;
}

/** All documents are of one write; returns its version. */
async function versionIn(url: string): Promise<number> {
  const versions = [...(await new WireClient(url).scan('t')).values()].map(({ v }) => Number(v));
  expect(versions).toEqual(keys.map(() => versions[0] ?? 0));
  return versions[0] ?? 0;
}

/** The first four truncations cut the logs of the catalog and of three ranges, the next four empty them. */
const places: (Partial<FaultRule> & { power?: boolean })[] = [
  { calls: ['truncate'], path: '-wal$', skip: 0 },
  { calls: ['truncate'], path: '-wal$', skip: 2, power: true },
  { calls: ['truncate'], path: '-wal$', skip: 4, power: true },
  { calls: ['truncate'], path: '-wal$', skip: 6 },
  { calls: ['write'], path: 'documents.db$', skip: 1, power: true },
  { calls: ['sync'], path: 'documents.db$', skip: 0, power: true },
  { calls: ['sync'], path: 'documents.db$', skip: 1 },
];

test.each(places.map((place) => [JSON.stringify(place), place] as const))(
  'a kill while a full disk gets the space of its logs back, at %s: the last acknowledged write is there, whole',
  async (_, { power, ...rule }) => {
    using place = new FaultPlace();
    let acknowledged = 0;
    {
      const shadow = power ? new DurableShadow(place.dataDir, `${place.directory}/shadow`) : undefined;
      await using server = await place.start(shadow ? { shadow } : {});
      const wire = new WireClient(server.url);
      await wire.createTable('t', { num_shards: 3 });
      await write(wire, 1, 20);
      place.control.arm({ calls: [], path: '', ...rule, action: 'kill' });
      // A part of the last write gets into a log.
      place.control.arm({ calls: ['write'], path: logs, skip: 5, action: 'ENOSPC' });
      acknowledged = await write(wire, 21, 20);
      expect(acknowledged).toBeLessThan(40);
      expect((await server.ended).signal).toBe('SIGKILL');
      shadow?.replace();
    }
    place.control.disarmAll();
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
    await using server = await place.start();
    expect([acknowledged, acknowledged + 1]).toContain(await versionIn(server.url));
  },
  120_000,
);

test('logs that a full disk has cut, and then emptied, take writes that outlast a loss of power', async () => {
  using place = new FaultPlace();
  let acknowledged = 0;
  const bytes = () => place.files('.db-wal').map((path) => statSync(path).size);
  {
    const shadow = new DurableShadow(place.dataDir, `${place.directory}/shadow`);
    await using server = await place.start({ shadow });
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 3 });
    for (const step of ['cut', 'emptied']) {
      acknowledged = await write(wire, acknowledged + 1, 20);
      const before = bytes();
      // Files that take nothing: their logs cannot be emptied.
      if (step === 'cut') place.control.arm({ calls: ['write'], path: '.db$', action: 'ENOSPC' });
      place.control.arm({ calls: ['write'], path: logs, skip: 5, action: 'ENOSPC' });
      acknowledged = await write(wire, acknowledged + 1, 20);
      const isThere = (size: number, at: number) => (step === 'cut' ? size < (before[at] ?? 0) : size === 0);
      await until(async () => bytes().every(isThere));
      if (step === 'cut') expect(Math.min(...bytes())).toBeGreaterThan(0);
      place.control.disarmAll();
      await until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
    }
    acknowledged = await write(wire, acknowledged + 1, 3);
    await server.kill();
    shadow.replace();
  }
  expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
  await using server = await place.start();
  expect(await versionIn(server.url)).toBe(acknowledged);
}, 120_000);
