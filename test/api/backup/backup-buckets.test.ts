import { describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { BackupBucket } from '../../support/backup-bucket.ts';
import { endOfRestore, restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const timeout = { timeout: 120_000 };

async function fill(server: TestServer): Promise<void> {
  await server.send('POST', '/db/v1/tables/t', { num_shards: 2 });
  const inserts = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${n % 2 ? 'a' : 'z'}${n}`, { n }]));
  await server.send('POST', '/db/v1/tables/t/batch', { inserts });
}

const request = { backup_id: 'b', location: 's3://backups/nightly' };
const isManifest = ({ method, url }: Request) => method === 'PUT' && url.includes('b-cluster-metadata.json');

async function listed(server: TestServer): Promise<string[]> {
  const query = `location=${encodeURIComponent(request.location)}&connection=bucket`;
  const { body } = await server.send<{ backups: { backup_id: string }[] }>('GET', `/db/v1/backups?${query}`);
  return body.backups.map(({ backup_id: id }) => id);
}

describe('an S3-compatible store', () => {
  test(
    'takes backups, lists them, and gives them back',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      const made = await server.send('POST', '/db/v1/backup', request);
      expect(made.body).toMatchObject({ status: 'completed' });
      const more = { ...request, backup_id: 'c', base_backup_id: 'b' };
      await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a1: { n: -1 } }, deletes: ['z0'] });
      expect((await server.send('POST', '/db/v1/backup', more)).body).toMatchObject({ status: 'completed' });
      expect((await server.send('POST', '/db/v1/backup', request)).status).toBe(409);
      expect(await listed(server)).toEqual(['b', 'c']);
      await server.send('DELETE', '/db/v1/tables/t');
      expect(await restore(server, { ...more, base_backup_id: undefined })).toMatchObject({ phase: 'succeeded' });
      expect((await server.send('GET', '/db/v1/tables/t/lookup/a1')).body).toMatchObject({ n: -1 });
      expect((await server.send('GET', '/db/v1/tables/t/lookup/z0')).status).toBe(404);
    },
    timeout,
  );

  test(
    'that answers 500 now and then does not spoil a backup',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      bucket.misbehave = ({ method }, number) =>
        method !== 'POST' && number % 3 === 0 ? new Response('<Error/>', { status: 500 }) : undefined;
      const made = await server.send('POST', '/db/v1/backup', request);
      bucket.misbehave = () => undefined;
      expect(made.body).toMatchObject({ status: 'completed' });
      expect(await restore(server, { ...request, restore_mode: 'overwrite' })).toMatchObject({ phase: 'succeeded' });
    },
    timeout,
  );

  test(
    'that loses the answer to the manifest is asked what it has',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      bucket.misbehave = (each) => (isManifest(each) ? 'lose the answer' : undefined);
      const made = await server.send('POST', '/db/v1/backup', request);
      bucket.misbehave = () => undefined;
      expect(made.body).toMatchObject({ status: 'completed' });
      expect(await listed(server)).toEqual(['b']);
    },
    timeout,
  );

  test(
    'that loses it and cannot be asked leaves an outcome that is said to be unknown',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      let isGone = false;
      bucket.misbehave = (each) => {
        isGone ||= isManifest(each);
        return isGone ? 'lose the answer' : undefined;
      };
      const made = await server.send('POST', '/db/v1/backup', request);
      bucket.misbehave = () => undefined;
      expect([made.status, made.body]).toMatchObject([
        200,
        {
          status: 'failed',
          tables: [{ name: 't', status: 'failed', code: 'backup_outcome_ambiguous', retryable: true }],
        },
      ]);
    },
    timeout,
  );

  test(
    'that gives half of the manifest back leaves it unknown whether there is a backup, and the files of one that is there',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      let isWritten = false;
      bucket.misbehave = async (each, _, pass) => {
        isWritten ||= isManifest(each);
        const isReadBack = each.method === 'GET' && each.url.includes('b-cluster-metadata.json');
        if (!isWritten || !isReadBack) return undefined;
        const bytes = new Uint8Array(await (await pass()).arrayBuffer());
        return new Response(bytes.subarray(0, bytes.byteLength / 2), { status: 206 });
      };
      const made = await server.send('POST', '/db/v1/backup', request);
      bucket.misbehave = () => undefined;
      expect(made.body).toMatchObject({
        status: 'failed',
        tables: [{ name: 't', status: 'failed', code: 'backup_outcome_ambiguous', retryable: true }],
      });
      const job = await restore(server, { ...request, restore_mode: 'overwrite' });
      expect(job).toMatchObject({ phase: 'succeeded' });
    },
    timeout,
  );

  test(
    'that loses the manifest of a table has no backup, which is said, and nothing is left',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      const written = new Set<string>();
      const removed = new Set<string>();
      bucket.misbehave = ({ method, url }) => {
        const { pathname } = new URL(url);
        if (method === 'DELETE') removed.add(pathname);
        if (method === 'PUT') written.add(pathname);
        const isLost = pathname.endsWith('table-0.json') && (method === 'PUT' || method === 'GET');
        return isLost ? 'lose the answer' : undefined;
      };
      const made = await server.send('POST', '/db/v1/backup', request);
      expect(made.body).toMatchObject({
        status: 'failed',
        tables: [{ name: 't', status: 'failed', code: 'location_unavailable', retryable: true }],
      });
      expect([...written].some((each) => each.endsWith('table-0.json'))).toBe(true);
      expect([...removed].sort()).toEqual([...written].sort());
    },
    timeout,
  );

  test(
    'that gives nothing back for a while: a restore is cancelled meanwhile, and its tables stay as they were',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
      await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a1: { n: 'kept' } } });
      const reading = Promise.withResolvers<void>();
      let isHeld = true;
      bucket.misbehave = ({ method, url }) => {
        if (method !== 'GET' || !url.includes('.ndjson.zst')) return undefined;
        reading.resolve();
        return isHeld ? new Response('<Error/>', { status: 500 }) : undefined;
      };
      const body = { ...request, restore_mode: 'overwrite' };
      const asked = await server.send<{ job_id: string }>('POST', '/db/v1/restore', body);
      await reading.promise;
      const path = `/db/v1/restore/jobs/${asked.body.job_id}`;
      expect((await server.send('DELETE', path)).body).toMatchObject({ cancel_requested: true });
      isHeld = false;
      const job = await endOfRestore(server, asked.body.job_id);
      expect(job).toMatchObject({ phase: 'cancelled', published_table_count: 0, cancel_requested: true });
      expect((await server.send('GET', '/db/v1/tables/t/lookup/a1')).body).toMatchObject({ n: 'kept' });
      expect(readdirSync(join(server.directory, 'ranges'))).toHaveLength(2);
    },
    timeout,
  );

  test(
    'that refuses fails the backup, and tells no secret',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server);
      await server.send('PUT', '/db/v1/secrets/s3.key', { value: 'canary-of-this-test' });
      bucket.misbehave = () => new Response('<Error><Code>AccessDenied</Code></Error>', { status: 403 });
      const made = await server.send('POST', '/db/v1/backup', request);
      expect([made.status, made.body]).toMatchObject([502, { code: 'location_unavailable', retryable: true }]);
      expect(JSON.stringify(made.body) + server.logLines.join('')).not.toContain('canary-of-this-test');
    },
    timeout,
  );
});
