import { describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { BackupPlace } from '../support/backup-place.ts';
import type { FaultCall, FaultRule } from '../support/fault/fault-control.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { endOfRestore } from '../support/restore-jobs.ts';
import { FaultPlace } from './fault-place.ts';

const timeout = { timeout: 120_000 };
const keys = Array.from({ length: 60 }, (_, n) => `${'0hqz'.charAt(n % 4)}${n}`);
const sync: FaultCall[] = ['sync'];
const changes: FaultCall[] = ['create', ...sync];
const sender = (wire: WireClient) => ({
  send: async (method: string, path: string, body?: unknown) => wire.send(method, path, body) as never,
});

async function fill(wire: WireClient, generation: string): Promise<void> {
  const inserts = Object.fromEntries(keys.map((key) => [key, { generation }]));
  expect((await wire.batch('t', { inserts, sync_level: 'full_index' })).status).toBe(201);
}

async function generations(wire: WireClient): Promise<unknown[]> {
  const found = await Promise.all(keys.map((key) => wire.lookup('t', key)));
  return [...new Set(found.map((each) => each?.document.generation))];
}

describe.each(['portable', 'native'])('S07: a full disk and backups of the format "%s"', (format) => {
  test(
    'at the location fails the backup and leaves nothing; once there is room, the same id can be used',
    async () => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      await using server = await place.start({ arguments: ['--config', archive.configuration] });
      const wire = new WireClient(server.url);
      await wire.createTable('t', { num_shards: 3 });
      await fill(wire, 'first');
      const request = { backup_id: 'b', location: archive.location, format };
      // In a payload, after some that had room; and in the manifest that would make it a backup.
      for (const rule of [
        { path: archive.path, skip: 2, calls: changes },
        { path: '-cluster-metadata.json', calls: changes },
        { path: '-cluster-metadata.json', calls: sync },
      ]) {
        const full = place.control.arm({ action: 'ENOSPC', ...rule });
        const answer = await wire.send('POST', '/db/v1/backup', request);
        expect(full.acted).toBeGreaterThan(0);
        full.disarm();
        expect(answer.body).toMatchObject({
          status: 'failed',
          tables: [{ name: 't', status: 'failed', code: 'location_unavailable', retryable: true }],
        });
        expect(JSON.stringify(answer.body)).toContain('the disk of the location is full');
        expect(JSON.stringify(answer.body)).not.toContain(archive.path);
        expect(archive.manifests).toEqual([]);
        expect(archive.files('b')).toEqual([]);
        expect(readdirSync(archive.path).filter((name) => name.endsWith('.partial'))).toEqual([]);
        // The database has noticed nothing.
        await fill(wire, 'first');
      }
      expect((await wire.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
    },
    timeout,
  );

  test(
    'in the data directory holds the restore up and leaves the table as it was; it goes on once there is room',
    async () => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      await using server = await place.start({ arguments: ['--config', archive.configuration] });
      const wire = new WireClient(server.url);
      await wire.createTable('t', { num_shards: 3 });
      await fill(wire, 'first');
      const request = { backup_id: 'b', location: archive.location };
      expect((await wire.send('POST', '/db/v1/backup', { ...request, format })).body).toMatchObject({
        status: 'completed',
      });
      await fill(wire, 'second');
      // Ranges of the staged tables: the first three are the table's own.
      const paths = format === 'native' ? ['/restored-'] : ['/ranges/4/', '/ranges/5/', '/ranges/6/'];
      const full = paths.map((path) => place.control.arm({ calls: ['write'], path, action: 'ENOSPC' }));
      const asked = await wire.send('POST', '/db/v1/restore', { ...request, restore_mode: 'overwrite' });
      const { job_id: id } = asked.body as { job_id: string };
      await until(async () => full.some(({ acted }) => acted > 0));
      expect(await generations(wire)).toEqual(['second']);
      for (const each of full) each.disarm();
      // It goes on by itself with a later attempt.
      expect(await endOfRestore(sender(wire), id)).toMatchObject({ phase: 'succeeded' });
      expect(await generations(wire)).toEqual(['first']);
      await fill(wire, 'third');
      await until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
    },
    timeout,
  );
});

test(
  'S07: a full data directory fails a backup of the format "native", which copies ranges there; once there is room, it works',
  async () => {
    using archive = new BackupPlace();
    using place = new FaultPlace();
    await using server = await place.start({ arguments: ['--config', archive.configuration] });
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 3 });
    await fill(wire, 'first');
    const request = { backup_id: 'b', location: archive.location, format: 'native' };
    // The folder of the first range's copy, that of its index, and those of the second range.
    for (const skip of [0, 1, 2, 3]) {
      const rule: FaultRule = { calls: ['mkdir'], path: '/image-', action: 'ENOSPC', skip, times: 1 };
      const full = place.control.arm(rule);
      const answer = await wire.send('POST', '/db/v1/backup', request);
      expect([rule, full.acted]).toEqual([rule, 1]);
      full.disarm();
      expect(answer.body).toMatchObject({
        status: 'failed',
        tables: [{ name: 't', status: 'failed', code: 'insufficient_storage', retryable: true }],
      });
      expect([archive.manifests, archive.files('b'), place.files('/image-')]).toEqual([[], [], []]);
      await fill(wire, 'second');
    }
    expect((await wire.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
    expect(await generations(wire)).toEqual(['second']);
  },
  timeout,
);

test(
  'B04: a folder whose last sync fails leaves an outcome that is said to be unknown, and a backup that is whole where it is there',
  async () => {
    using archive = new BackupPlace();
    using place = new FaultPlace();
    await using server = await place.start({ arguments: ['--config', archive.configuration] });
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 3 });
    await fill(wire, 'first');
    const request = { backup_id: 'b', location: archive.location };
    // The first sync is that of the new folder's name.
    const broken = place.control.arm({ calls: ['directorySync'], path: `${archive.path}$`, action: 'EIO', skip: 1 });
    const answer = await wire.send('POST', '/db/v1/backup', request);
    expect(broken.acted).toBe(1);
    broken.disarm();
    expect(answer.body).toMatchObject({ status: 'failed', tables: [{ code: 'backup_outcome_ambiguous' }] });
    expect((await wire.send('POST', '/db/v1/backup', request)).status).toBe(409);
    await fill(wire, 'second');
    const asked = await wire.send('POST', '/db/v1/restore', { ...request, restore_mode: 'overwrite' });
    const job = await endOfRestore(sender(wire), String((asked.body as { job_id: string }).job_id));
    expect(job).toMatchObject({ phase: 'succeeded' });
    expect(await generations(wire)).toEqual(['first']);
  },
  timeout,
);

test(
  'B04: a folder in which the other name of a manifest stays has the backup, whole',
  async () => {
    using archive = new BackupPlace();
    using place = new FaultPlace();
    await using server = await place.start({ arguments: ['--config', archive.configuration] });
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 3 });
    await fill(wire, 'first');
    const request = { backup_id: 'b', location: archive.location };
    const broken = place.control.arm({ calls: ['unlink'], path: '-cluster-metadata.json', action: 'EIO' });
    const answer = await wire.send('POST', '/db/v1/backup', request);
    expect(broken.acted).toBe(1);
    broken.disarm();
    expect(answer.body).toMatchObject({ status: 'completed' });
    await fill(wire, 'second');
    const asked = await wire.send('POST', '/db/v1/restore', { ...request, restore_mode: 'overwrite' });
    const job = await endOfRestore(sender(wire), String((asked.body as { job_id: string }).job_id));
    expect(job).toMatchObject({ phase: 'succeeded' });
    expect(await generations(wire)).toEqual(['first']);
  },
  timeout,
);
