import { describe, expect, test } from 'bun:test';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import type { RestoreJobBody } from '../../src/protocol/database/restores.ts';
import { BackupPlace, documentsOf } from '../support/backup-place.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { forge, lines, ofPayload, size } from '../support/forged-backup.ts';
import { endOfRestore } from '../support/restore-jobs.ts';
import { FaultPlace } from './fault-place.ts';

const timeout = { timeout: 120_000 };
const tables = ['left', 'right'];
const keys = Array.from({ length: 60 }, (_, n) => `${'0hqz'.charAt(n % 4)}${n}`);

async function fill(url: string, generation: string): Promise<void> {
  const wire = new WireClient(url);
  const inserts = Object.fromEntries(keys.map((key) => [key, { generation }]));
  for (const table of tables) {
    await wire.send('POST', `/db/v1/tables/${table}`, { num_shards: 3 });
    expect((await wire.send('POST', `/db/v1/tables/${table}/batch`, { inserts })).status).toBe(201);
  }
}

/** The generations that a table's documents have, and how many there are. */
async function generations(url: string, table: string): Promise<{ count: number; of: unknown[] }> {
  const wire = new WireClient(url);
  const found = await Promise.all(keys.map((key) => wire.lookup(table, key)));
  const present = found.flatMap((each) => each ?? []);
  return { count: present.length, of: [...new Set(present.map(({ document }) => document.generation))] };
}

const sender = (url: string) => ({
  send: async (method: string, path: string, body?: unknown) => new WireClient(url).send(method, path, body) as never,
});

describe('a server killed in the middle of a backup', () => {
  test.each([
    ['backup.after-table', 'portable'],
    ['backup.after-table:1', 'portable'],
    ['backup.after-cut', 'portable'],
    ['backup.before-manifest', 'portable'],
    ['backup.after-links', 'native'],
    ['backup.after-links:4', 'native'],
    ['backup.after-image-file', 'native'],
    ['backup.after-image-file:7', 'native'],
    ['backup.after-table:1', 'native'],
    ['backup.after-cut', 'native'],
    ['backup.before-manifest', 'native'],
  ])(
    'leaves none, and the same id can be used again: killed at %s, %s',
    async (failpoint, format) => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      const options = { arguments: ['--config', archive.configuration] };
      const request = { backup_id: 'b', location: archive.location, format };
      {
        await using server = await place.start(options);
        await fill(server.url, 'first');
        await server.stop();
      }
      {
        await using server = await place.start({ ...options, failpoint });
        const answer = await new WireClient(server.url).send('POST', '/db/v1/backup', request).catch(() => undefined);
        expect(answer).toBeUndefined();
        expect((await server.ended).signal).toBe('SIGKILL');
      }
      expect(archive.manifests).toEqual([]);
      archive.forget('b');
      await using server = await place.start(options);
      const list = `/db/v1/backups?location=${encodeURIComponent(archive.location)}&connection=archive`;
      expect((await new WireClient(server.url).send('GET', list)).body).toMatchObject({ backups: [] });
      const again = await new WireClient(server.url).send('POST', '/db/v1/backup', request);
      expect(again.body).toMatchObject({ status: 'completed' });
      if (format === 'portable') expect(documentsOf(archive.lines('b')).size).toBe(keys.length);
      const asked = await new WireClient(server.url).send('POST', '/db/v1/restore', {
        backup_id: 'b',
        location: archive.location,
        restore_mode: 'overwrite',
      });
      const job = await endOfRestore(sender(server.url), String((asked.body as { job_id: string }).job_id));
      expect(job).toMatchObject({ phase: 'succeeded' });
      expect(await generations(server.url, 'left')).toEqual({ count: keys.length, of: ['first'] });
      await server.stop();
      // Copies that the killed process has made of ranges are gone.
      expect(place.files('/image-')).toEqual([]);
    },
    timeout,
  );

  test(
    'leaves a whole one when its manifest was written: killed at backup.after-manifest',
    async () => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      const options = { arguments: ['--config', archive.configuration] };
      const request = { backup_id: 'b', location: archive.location };
      {
        await using server = await place.start({ ...options, failpoint: 'backup.after-manifest' });
        await fill(server.url, 'first');
        await new WireClient(server.url).send('POST', '/db/v1/backup', request).catch(() => undefined);
        expect((await server.ended).signal).toBe('SIGKILL');
      }
      await using server = await place.start(options);
      const wire = new WireClient(server.url);
      expect((await wire.send('POST', '/db/v1/backup', request)).status).toBe(409);
      const asked = await wire.send('POST', '/db/v1/restore', { ...request, restore_mode: 'overwrite' });
      const job = await endOfRestore(sender(server.url), String((asked.body as { job_id: string }).job_id));
      expect(job).toMatchObject({ phase: 'succeeded', published_table_count: 2 });
    },
    timeout,
  );
});

describe('a server killed in the middle of a restore', () => {
  test.each([
    ['restore.after-stage', 'portable'],
    ['restore.after-block', 'portable'],
    ['restore.after-block:4', 'portable'],
    ['restore.after-range:1', 'portable'],
    ['restore.before-publish', 'portable'],
    ['restore.before-publish', 'native'],
    ['catalog.before-commit:3', 'portable'],
    ['catalog.after-commit:3', 'portable'],
    ['restore.after-publish', 'portable'],
    ['restore.before-publish:1', 'portable'],
    ['restore.after-publish:1', 'portable'],
    ['restore.after-image-file', 'native'],
    ['restore.before-image:1', 'native'],
    ['restore.after-image:4', 'native'],
    ['restore.after-publish:1', 'native'],
  ])(
    'goes on after its next start, and shows each table as it was or as it becomes: killed at %s, %s',
    async (failpoint, format) => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      const options = { arguments: ['--config', archive.configuration] };
      const request = { backup_id: 'b', location: archive.location };
      {
        await using server = await place.start(options);
        await fill(server.url, 'base');
        const wire = new WireClient(server.url);
        const made = await wire.send('POST', '/db/v1/backup', { ...request, backup_id: 'base', format });
        expect(made.body).toMatchObject({ status: 'completed' });
        // The chain has these keys twice, as two documents of different numbers.
        for (const table of tables) await wire.send('POST', `/db/v1/tables/${table}/batch`, { deletes: keys.slice(9) });
        await fill(server.url, 'first');
        const increment = await wire.send('POST', '/db/v1/backup', { ...request, base_backup_id: 'base' });
        expect(increment.body).toMatchObject({ status: 'completed' });
        const inserts = Object.fromEntries(keys.map((key) => [key, { generation: 'second' }]));
        for (const table of tables) await wire.send('POST', `/db/v1/tables/${table}/batch`, { inserts });
        await server.stop();
      }
      {
        await using server = await place.start({ ...options, failpoint });
        const body = { ...request, restore_mode: 'overwrite' };
        await new WireClient(server.url).send('POST', '/db/v1/restore', body).catch(() => undefined);
        expect((await server.ended).signal).toBe('SIGKILL');
      }
      await using server = await place.start(options);
      for (const table of tables) {
        const { count, of } = await generations(server.url, table);
        expect([count, of.length]).toEqual([keys.length, 1]);
      }
      const wire = new WireClient(server.url);
      const { jobs } = (await wire.send('GET', '/db/v1/restore/jobs')).body as { jobs: { job_id: string }[] };
      const [{ job_id: id } = { job_id: '' }, ...others] = jobs;
      // A kill in front of the job's own commit leaves no job.
      if (jobs.length === 0) return;
      expect(others).toEqual([]);
      const job = await endOfRestore(sender(server.url), id);
      expect(job).toMatchObject({ phase: 'succeeded', published_table_count: 2, result: { status: 'completed' } });
      for (const table of tables) {
        expect(await generations(server.url, table)).toEqual({ count: keys.length, of: ['first'] });
      }
      const listed = (await wire.send('GET', '/db/v1/tables')).body as { name: string }[];
      expect(listed.map(({ name }) => name)).toEqual(tables);
      await server.stop();
      expect(place.files('/ranges/').filter((name) => name.endsWith('documents.db'))).toHaveLength(6);
    },
    timeout,
  );

  test.each(['restore.before-links', 'restore.before-links:1'])(
    'has all vectors after its next start, where they waited for links: killed at %s',
    async (failpoint) => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      cpSync(join(import.meta.dir, '../fixtures/backups/format-3'), archive.path, { recursive: true });
      const options = { arguments: ['--config', archive.configuration] };
      {
        await using server = await place.start({ ...options, failpoint });
        const body = { backup_id: 'golden-more', location: archive.location };
        await new WireClient(server.url).send('POST', '/db/v1/restore', body).catch(() => undefined);
        expect((await server.ended).signal).toBe('SIGKILL');
      }
      await using server = await place.start(options);
      const wire = new WireClient(server.url);
      const { jobs } = (await wire.send('GET', '/db/v1/restore/jobs')).body as { jobs: { job_id: string }[] };
      const job = await endOfRestore(sender(server.url), String(jobs[0]?.job_id));
      expect(job).toMatchObject({ phase: 'succeeded', published_table_count: 1 });
      for (const [vector, key] of [
        [[1, 2, 3], 'z'],
        [[3, 2, 1], 'a'],
        [[3, 2, 2], 'b'],
        [[9, 1, 1], 'n'],
      ] as const) {
        const near = { table: 'books', embeddings: { v: vector }, indexes: ['v'], limit: 1 };
        const { body } = await wire.send('POST', '/db/v1/query', near);
        expect(JSON.stringify(body)).toContain(`"_id":"${key}"`);
      }
      expect(place.files('/links-')).toEqual([]);
      await server.stop();
    },
    timeout,
  );

  test(
    'loads a table again where another restore was first: killed when it is staged again',
    async () => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      const options = { arguments: ['--config', archive.configuration] };
      const { location } = archive;
      const more = Array.from({ length: 10_000 }, (_, n) => `more-${n}`);
      {
        // Ended when both restores have staged the table, the one of the large backup first.
        await using server = await place.start({ ...options, failpoint: 'restore.after-stage:1' });
        await fill(server.url, 'first');
        const wire = new WireClient(server.url);
        const inserts = Object.fromEntries(more.map((key) => [key, {}]));
        await wire.send('POST', '/db/v1/tables/left/batch', { inserts });
        await wire.send('POST', '/db/v1/backup', { backup_id: 'large', location });
        await wire.send('POST', '/db/v1/tables/left/batch', { deletes: more });
        await wire.send('POST', '/db/v1/backup', { backup_id: 'small', location });
        for (const backup_id of ['large', 'small']) {
          const request = { backup_id, location, restore_mode: 'overwrite', table_names: ['left'] };
          await wire.send('POST', '/db/v1/restore', request).catch(() => undefined);
        }
        expect((await server.ended).signal).toBe('SIGKILL');
      }
      {
        // The one that is overtaken stages the table once more: that of the large backup, but on a busy machine it may
        // come first.
        await using server = await place.start({ ...options, failpoint: 'restore.after-stage:2' });
        const ends = ['1', '2'].map((id) => endOfRestore(sender(server.url), id));
        await Promise.race([server.ended, Promise.allSettled(ends)]);
      }
      await using server = await place.start(options);
      const jobs: RestoreJobBody[] = [];
      for (const id of ['1', '2']) jobs.push(await endOfRestore(sender(server.url), id));
      expect(jobs.map(({ phase }) => phase)).toEqual(['succeeded', 'succeeded']);
      const [large = 0, small = 0] = jobs.map(({ updated_at_ms }) => updated_at_ms);
      const last = (await new WireClient(server.url).lookup('left', 'more-9999'))?.document;
      expect(last).toEqual(large > small ? {} : undefined);
      expect(await generations(server.url, 'left')).toEqual({ count: keys.length, of: ['first'] });
    },
    timeout,
  );

  test(
    'takes no line twice: killed in the middle of a block in which a key is deleted and comes back',
    async () => {
      using archive = new BackupPlace();
      using place = new FaultPlace();
      const options = { arguments: ['--config', archive.configuration] };
      const request = { backup_id: 'b', location: archive.location };
      const made = Array.from({ length: 3_000 }, (_, n) => `{"id":${n + 3},"key":"m${n}","version":1,"document":{}}`);
      const texts = [
        '{"id":1,"key":"a","version":1,"document":{"n":1}}',
        '{"id":1,"deleted":true}',
        '{"id":2,"key":"a","version":1,"document":{"n":2}}',
        ...made,
      ];
      {
        await using server = await place.start({ ...options, failpoint: 'restore.before-entry:1' });
        const wire = new WireClient(server.url);
        await wire.send('POST', '/db/v1/tables/t');
        await wire.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { n: 1 } } });
        await wire.send('POST', '/db/v1/backup', request);
        forge(archive, ofPayload(archive, lines(...texts), size(...texts), made.length + 1));
        await wire.send('POST', '/db/v1/restore', { ...request, restore_mode: 'overwrite' }).catch(() => undefined);
        expect((await server.ended).signal).toBe('SIGKILL');
      }
      await using server = await place.start(options);
      expect(await endOfRestore(sender(server.url), '1')).toMatchObject({ phase: 'succeeded' });
      const wire = new WireClient(server.url);
      expect((await wire.lookup('t', 'a'))?.document).toMatchObject({ n: 2 });
      expect((await wire.lookup('t', 'm2999'))?.document).toEqual({});
    },
    timeout,
  );
});
