import { afterEach, describe, expect, mock, spyOn, test } from 'bun:test';
import { JobRunner } from '../../../src/jobs/job-runner.ts';
import { TableService } from '../../../src/tables/table-service.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { until } from '../../support/fault/until.ts';
import { endOfRestore, restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

const indexes = { v: { type: 'embeddings', external: true, dimension: 3 } };

function documents(generation: string): Record<string, unknown> {
  return Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [
      `${'05mz'.charAt(n % 4)}${n}`,
      { text: `word${n} ${generation}`, generation, _embeddings: { v: [n + 1, 1, 2] } },
    ]),
  );
}

async function fill(server: TestServer, table: string, generation: string): Promise<void> {
  await server.send('POST', `/db/v1/tables/${table}`, { num_shards: 3, indexes });
  const inserts = documents(generation);
  const { status } = await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level: 'full_index' });
  expect(status).toBe(201);
}

async function backUp(server: TestServer, place: BackupPlace, id: string, more: object = {}): Promise<void> {
  const made = await server.send('POST', '/db/v1/backup', { backup_id: id, location: place.location, ...more });
  expect(made.body).toMatchObject({ status: 'completed' });
}

interface Scanned {
  _id: string;
  generation?: string;
}

async function scan(server: TestServer, table: string): Promise<Map<string, Scanned>> {
  const answer = await server.send<string>('POST', `/db/v1/tables/${table}/documents`, { fields: ['*'] });
  const lines = String(answer.body).trim().split('\n');
  return new Map(
    lines.filter((line) => line !== '').map((line) => [(JSON.parse(line) as Scanned)._id, JSON.parse(line) as Scanned]),
  );
}

afterEach(() => mock.restore());

describe('a restore', () => {
  test('brings documents, words and vectors to another server', async () => {
    using place = new BackupPlace();
    {
      await using server = await place.server();
      await fill(server, 'books', 'first');
      await backUp(server, place, 'b');
    }
    await using server = await place.server();
    const job = await restore(server, { backup_id: 'b', location: place.location });
    expect(job).toMatchObject({
      scope: 'cluster',
      backup_id: 'b',
      phase: 'succeeded',
      cancel_requested: false,
      published_table_count: 1,
      completed_table_count: 1,
      total_table_count: 1,
      durability_pending_table_count: 0,
      result: {
        restore: 'triggered',
        durability: 'committed',
        status: 'completed',
        triggered_table_count: 1,
        committed_table_count: 1,
        skipped_table_count: 0,
        failed_table_count: 0,
        failure_details: [],
        failure_details_truncated: false,
      },
    });
    expect((await scan(server, 'books')).size).toBe(40);
    const words = await server.send('POST', '/db/v1/query', {
      table: 'books',
      full_text_search: { query: 'text:word7' },
    });
    expect(hitKeys(words)).toEqual(['z7']);
    expect(words.body).toMatchObject({ responses: [{ hits: { total: { value: 1, relation: 'exact' } } }] });
    const near = await server.send('POST', '/db/v1/query', {
      table: 'books',
      embeddings: { v: [13, 1, 2] },
      indexes: ['v'],
      limit: 1,
    });
    expect(hitKeys(near)).toEqual(['012']);
    const listed = await server.send<{ name: string }[]>('GET', '/db/v1/tables');
    expect(listed.body.map(({ name }) => name)).toEqual(['books']);
    const written = await server.send('POST', '/db/v1/tables/books/batch', { inserts: { new: { text: 'later' } } });
    expect(written.status).toBe(201);
  });

  test('over a table gives back what was there, with versions above all earlier ones', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books', 'first');
    await backUp(server, place, 'b');
    await server.send('POST', '/db/v1/tables/books/batch', { inserts: { extra: { text: 'extra' } }, deletes: ['00'] });
    await fill(server, 'books', 'second');
    const version = async () =>
      Number((await server.send('GET', '/db/v1/tables/books/lookup/z7')).headers.get('x-service-version'));
    const before = await version();
    expect(before).toBeGreaterThan(0);
    const job = await restore(server, { backup_id: 'b', location: place.location, restore_mode: 'overwrite' });
    expect(job.phase).toBe('succeeded');
    const found = await scan(server, 'books');
    expect([...found.keys()].sort()).toEqual(Object.keys(documents('first')).sort());
    expect(new Set([...found.values()].map(({ generation }) => generation))).toEqual(new Set(['first']));
    expect(await version()).toBeGreaterThan(before);
  });

  test('of a chain of backups ends with the last, whatever was deleted in between', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books', 'first');
    await backUp(server, place, 'full');
    const change = (body: object) =>
      server.send('POST', '/db/v1/tables/books/batch', { ...body, sync_level: 'full_index' });
    await change({ deletes: ['00', '51'], inserts: { '04': { text: 'changed', generation: 'second' } } });
    await backUp(server, place, 'second', { base_backup_id: 'full' });
    await change({ deletes: ['04'], inserts: { '00': { text: 'again', generation: 'third' } } });
    await change({ inserts: { m2: { text: 'no vector', _embeddings: { v: null } } } });
    await backUp(server, place, 'third', { base_backup_id: 'second' });
    expect(place.lines('third').length).toBeLessThan(20);
    const expected = await scan(server, 'books');
    const job = await restore(server, { backup_id: 'third', location: place.location, restore_mode: 'overwrite' });
    expect(job).toMatchObject({ phase: 'succeeded' });
    expect(await scan(server, 'books')).toEqual(expected);
    expect(expected.has('04')).toBe(false);
  });

  test('of an increment has no document whose deletion the feed has forgotten since the base', async () => {
    using place = new BackupPlace();
    await using server = await place.server({ file: 'indexing: {checkpoint_interval: 1s}\n' });
    await fill(server, 'books', 'first');
    await backUp(server, place, 'full');
    const change = (body: object) =>
      server.send('POST', '/db/v1/tables/books/batch', { ...body, sync_level: 'full_index' });
    await change({ deletes: ['00', '51', 'm2'] });
    let made = 0;
    // A checkpoint lets the deletions go once something else was written to their ranges.
    await until(async () => {
      made += 1;
      for (const key of ['04', '55', 'm6']) await change({ inserts: { [key]: { text: 'changed', n: made } } });
      await backUp(server, place, `more${made}`, { base_backup_id: 'full' });
      return place.lines(`more${made}`).some(({ live }) => live !== undefined);
    });
    const expected = await scan(server, 'books');
    const job = await restore(server, {
      backup_id: `more${made}`,
      location: place.location,
      restore_mode: 'overwrite',
    });
    expect(job).toMatchObject({ phase: 'succeeded' });
    expect(await scan(server, 'books')).toEqual(expected);
    expect(expected.has('00')).toBe(false);
  });

  test('beside another one of the same table comes behind it', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books', 'first');
    await backUp(server, place, 'b');
    const body = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const ask = async () => (await server.send<{ job_id: string }>('POST', '/db/v1/restore', body)).body.job_id;
    const expected = await scan(server, 'books');
    // Both are built before the first of them is published.
    const both = Promise.withResolvers<void>();
    let arrived = 0;
    const publish = TableService.prototype.publish;
    spyOn(TableService.prototype, 'publish').mockImplementation(async function (this: TableService, ...asked) {
      arrived += 1;
      if (arrived === 2) both.resolve();
      await both.promise;
      return publish.apply(this, asked);
    });
    for (const id of await Promise.all([ask(), ask()])) {
      expect(await endOfRestore(server, id)).toMatchObject({ phase: 'succeeded', published_table_count: 1 });
    }
    expect(await scan(server, 'books')).toEqual(expected);
  });

  test('has three ways with tables that exist', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'a', 'first');
    await fill(server, 'b', 'first');
    await backUp(server, place, 'both');
    await server.send('DELETE', '/db/v1/tables/b');
    await fill(server, 'a', 'second');
    const request = { backup_id: 'both', location: place.location };
    const refused = await restore(server, request);
    const failure = { table_name: 'a', error: expect.stringContaining('already_exists'), table_name_truncated: false };
    expect(refused).toMatchObject({
      phase: 'failed',
      error: expect.stringContaining('already_exists'),
      total_table_count: 2,
      result: {
        status: 'failed',
        durability: 'none',
        triggered_table_count: 0,
        failed_table_count: 1,
        failure_details: [failure],
      },
    });
    expect((await server.send('GET', '/db/v1/tables/b')).status).toBe(404);
    const skipped = await restore(server, { ...request, restore_mode: 'skip_if_exists' });
    expect(skipped).toMatchObject({ phase: 'succeeded', result: { skipped_table_count: 1, committed_table_count: 1 } });
    expect((await scan(server, 'a')).get('z7')?.generation).toBe('second');
    expect((await scan(server, 'b')).get('z7')?.generation).toBe('first');
    const one = await server.send<{ job_id: string }>('POST', '/db/v1/tables/a/restore', {
      ...request,
      restore_mode: 'overwrite',
    });
    expect([one.status, one.body]).toMatchObject([202, { scope: 'table', table_name: 'a' }]);
    expect(await endOfRestore(server, one.body.job_id)).toMatchObject({ phase: 'succeeded' });
    expect((await scan(server, 'a')).get('z7')?.generation).toBe('first');
    expect((await server.send('POST', '/db/v1/restore', { ...request, restore_mode: 'merge' })).status).toBe(400);
  });

  test('names what is missing: a backup, a table, a base', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'a', 'first');
    await backUp(server, place, 'full');
    await backUp(server, place, 'more', { base_backup_id: 'full' });
    const request = { location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, { ...request, backup_id: 'none' })).toMatchObject({
      phase: 'failed',
      error: expect.stringContaining('backup_not_found'),
    });
    const partly = await restore(server, { ...request, backup_id: 'full', table_names: ['a', 'zz'] });
    expect(partly).toMatchObject({
      phase: 'failed',
      result: { status: 'partial', committed_table_count: 1, failure_details: [{ table_name: 'zz' }] },
    });
    place.remove('full-cluster-metadata.json');
    const broken = await restore(server, { ...request, backup_id: 'more' });
    expect(broken).toMatchObject({ phase: 'failed', error: expect.stringContaining('"full"') });
  });

  test('asked for twice under one key is one job', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'a', 'first');
    await backUp(server, place, 'b');
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const key = { 'idempotency-key': 'k' };
    const first = await server.send<{ job_id: string }>('POST', '/db/v1/restore', request, key);
    expect(first.status).toBe(202);
    await endOfRestore(server, first.body.job_id);
    const again = await server.send<{ job_id: string }>('POST', '/db/v1/restore', request, key);
    expect([again.status, again.body.job_id]).toEqual([200, first.body.job_id]);
    const other = await server.send('POST', '/db/v1/restore', { ...request, table_names: ['a'] }, key);
    expect([other.status, other.body]).toMatchObject([409, { code: 'idempotency_conflict' }]);
    const ofTable = await server.send('POST', '/db/v1/tables/a/restore', request, key);
    expect(ofTable.status).toBe(202);
    const plain = await server.send('POST', '/db/v1/restore', request);
    expect(plain.status).toBe(202);
  });

  test('jobs are listed newest first, in pages, by phase and scope', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'a', 'first');
    await backUp(server, place, 'b');
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const ids: string[] = [];
    for (let n = 0; n < 3; n += 1) ids.unshift((await restore(server, request)).job_id);
    const failed = await restore(server, { ...request, restore_mode: 'fail_if_exists' });
    type List = { jobs: { job_id: string }[]; next_cursor: string };
    const list = async (query: string) => (await server.send<List>('GET', `/db/v1/restore/jobs${query}`)).body;
    const first = await list('?limit=2&cursor=&phase=&scope=');
    expect(first.jobs.map(({ job_id }) => job_id)).toEqual([failed.job_id, String(ids[0])]);
    const second = await list(`?limit=2&cursor=${first.next_cursor}`);
    expect(second.jobs.map(({ job_id }) => job_id)).toEqual(ids.slice(1));
    expect(second.next_cursor).toBe('');
    expect((await list('?phase=failed')).jobs).toHaveLength(1);
    expect((await list('?scope=table')).jobs).toEqual([]);
    for (const bad of ['?phase=done', '?scope=all', '?limit=0', '?cursor=x']) {
      expect((await server.send('GET', `/db/v1/restore/jobs${bad}`)).status).toBe(400);
    }
    const none = await server.send('GET', '/db/v1/restore/jobs/77');
    expect([none.status, none.body]).toMatchObject([404, { code: 'job_not_found' }]);
    for (const bad of ['x', '-1', '0', '1'.repeat(17)]) {
      const answer = await server.send('GET', `/db/v1/restore/jobs/${bad}`);
      expect([bad, answer.status, answer.body]).toMatchObject([bad, 400, { code: 'invalid_request' }]);
    }
  });

  test('that a process without its connection finds is left to one that has it, or cancelled', async () => {
    using place = new BackupPlace();
    using directory = new TemporaryDirectory();
    const at = { directory: directory.path };
    const body = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const jobs: string[] = [];
    {
      await using server = await place.server(at);
      await fill(server, 'a', 'first');
      await backUp(server, place, 'b');
    }
    // A killed server leaves jobs that have not ended.
    spyOn(JobRunner.prototype, 'run').mockResolvedValue();
    {
      await using server = await place.server(at);
      for (let n = 0; n < 2; n += 1) {
        jobs.push((await server.send<{ job_id: string }>('POST', '/db/v1/restore', body)).body.job_id);
      }
      mock.restore();
    }
    {
      await using server = await startTestServer(at);
      const waits = (id: string) =>
        server.logLines.some((line) => line.includes(`"job_id":${id}`) && line.includes('waits for its connection'));
      await until(() => Promise.resolve(jobs.every(waits)));
      await server.send('DELETE', `/db/v1/restore/jobs/${jobs[1]}`);
      expect(await endOfRestore(server, jobs[1] ?? '')).toMatchObject({ phase: 'cancelled' });
    }
    await using server = await place.server(at);
    expect(await endOfRestore(server, jobs[0] ?? '')).toMatchObject({ phase: 'succeeded' });
  });

  test('is kept after its end for as long as is configured', async () => {
    using place = new BackupPlace();
    await using server = await place.server({ file: 'jobs: {retention: 2h}\n' });
    const job = await restore(server, { backup_id: 'none', location: place.location });
    // A count that is not known is one of none.
    expect(job).toMatchObject({ phase: 'failed', total_table_count: 0, completed_table_count: 0 });
    expect(Number(job.expires_at_ms) - Number(job.updated_at_ms)).toBe(2 * 3_600_000);
  });

  test('that has ended notes a cancellation only where it has succeeded', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'a', 'first');
    await backUp(server, place, 'b');
    const request = { backup_id: 'b', location: place.location };
    const done = await restore(server, { ...request, restore_mode: 'overwrite' });
    const failed = await restore(server, request);
    const cancel = async (id: string) => (await server.send('DELETE', `/db/v1/restore/jobs/${id}`)).body;
    expect(await cancel(done.job_id)).toMatchObject({ phase: 'succeeded', cancel_requested: true });
    expect(await cancel(failed.job_id)).toMatchObject({ phase: 'failed', cancel_requested: false });
  });
});
