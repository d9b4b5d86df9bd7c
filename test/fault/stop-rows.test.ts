import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { ChildServer } from '../support/fault/child-server.ts';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import type { FaultRule } from '../support/fault/fault-control.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(180_000);

const names = Array.from({ length: 8 }, (_, at) => `t${at}`);
async function writeAll(server: ChildServer): Promise<void> {
  const wire = new WireClient(server.url);
  for (const name of names) {
    await wire.createTable(name);
    const written = await wire.batch(name, { inserts: { a: { title: 'amber' } }, sync_level: 'full_index' });
    expect(written.status).toBe(201);
  }
}

async function expectAllFound(server: ChildServer): Promise<void> {
  const wire = new WireClient(server.url);
  for (const table of names) {
    const { total } = await wire.query({ table, full_text_search: { query: 'amber' }, count: true });
    expect([table, total]).toEqual([table, { value: 1, relation: 'exact' }]);
  }
}

/** Counts calls without touching them. */
const counting = { action: 'EIO', skip: 1_000_000_000 } as const;

describe('a stop after writes to many tables', () => {
  test('makes all of them durable with a few syncs of the file system, and leaves nothing to replay', async () => {
    using place = new FaultPlace();
    {
      await using server = await place.start();
      await writeAll(server);
      const single = place.control.arm({ calls: ['sync', 'directorySync'], path: '/ranges/', ...counting });
      const whole = place.control.arm({ calls: ['fileSystemSync'], path: '', ...counting });
      expect((await server.stop()).code).toBe(0);
      // The upkeep of a log that was just written to may be at work still.
      expect(single.met).toBeLessThan(names.length / 2);
      expect(whole.met).toBeGreaterThan(0);
      expect(whole.met).toBeLessThanOrEqual(5);
    }
    expect(place.files('-wal')).toEqual([]);
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
    await using server = await place.start();
    const metrics = await (await fetch(`${server.metricsUrl}/metrics`)).text();
    // No range was opened to replay anything.
    expect(metrics).toMatch(/^sundew_open_ranges 0$/m);
    await expectAllFound(server);
  });

  const faults: { what: string; rule: FaultRule }[] = [
    { what: 'nothing fails', rule: { calls: ['fileSystemSync'], path: '', action: 'EIO', skip: 1_000_000_000 } },
    { what: 'the first sync fails', rule: { calls: ['fileSystemSync'], path: '', action: 'EIO', times: 1 } },
    { what: 'every sync fails', rule: { calls: ['fileSystemSync'], path: '', action: 'EIO' } },
    { what: 'the process dies before the first sync', rule: { calls: ['fileSystemSync'], path: '', action: 'kill' } },
    { what: 'it dies before the second', rule: { calls: ['fileSystemSync'], path: '', action: 'kill', skip: 1 } },
    { what: 'it dies before the last', rule: { calls: ['fileSystemSync'], path: '', action: 'kill', skip: 2 } },
    { what: 'the disk is full', rule: { calls: ['write', 'create'], path: '/indexes/', action: 'ENOSPC' } },
  ];
  test.each(faults)('loses nothing when $what, and the power with it', async ({ rule }) => {
    using place = new FaultPlace();
    const shadow = new DurableShadow(place.dataDir, `${place.directory}/shadow`);
    {
      await using server = await place.start({ shadow });
      await writeAll(server);
      const fault = place.control.arm(rule);
      await server.stop();
      expect(fault.met).toBeGreaterThan(0);
    }
    place.control.disarmAll();
    shadow.replace();
    await using server = await place.start();
    await expectAllFound(server);
    expect((await server.stop()).code).toBe(0);
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
  });

  test.each(['/catalog.db', '/documents.db', '/indexes/'])(
    'ends as any other where the disk has no room for %s, and loses nothing',
    async (path) => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        await writeAll(server);
        place.control.arm({ calls: ['write', 'create'], path, action: 'ENOSPC' });
        expect((await server.stop()).code).toBe(0);
      }
      place.control.disarmAll();
      await using server = await place.start();
      await expectAllFound(server);
    },
  );
});
