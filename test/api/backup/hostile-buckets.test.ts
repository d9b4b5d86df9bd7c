import { describe, expect, test } from 'bun:test';
import { BackupBucket } from '../../support/backup-bucket.ts';
import { restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const timeout = { timeout: 120_000 };
const request = { backup_id: 'b', location: 's3://backups/nightly' };
const over = { ...request, restore_mode: 'overwrite' };

async function fill(server: TestServer, generation: string): Promise<void> {
  await server.send('POST', '/db/v1/tables/t', { num_shards: 2 });
  const inserts = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [`${n % 2 ? 'a' : 'z'}${n}`, { generation }]),
  );
  expect((await server.send('POST', '/db/v1/tables/t/batch', { inserts })).status).toBe(201);
}

const generation = async (server: TestServer) =>
  (await server.send<{ generation: string }>('GET', '/db/v1/tables/t/lookup/a1')).body.generation;
const completed = async (server: TestServer, more: object = {}) =>
  expect((await server.send('POST', '/db/v1/backup', { ...request, ...more })).body).toMatchObject({
    status: 'completed',
  });
const isPayload = ({ url }: Request) => url.includes('.zst');
const isTableManifest = ({ url }: Request) => url.includes('/table-0.json');
const isList = ({ method, url }: Request) => method === 'GET' && url.includes('list-type=2');

async function listed(server: TestServer): Promise<string[]> {
  const query = `location=${encodeURIComponent(request.location)}&connection=bucket`;
  const { body } = await server.send<{ backups: { backup_id: string }[] }>('GET', `/db/v1/backups?${query}`);
  return body.backups.map(({ backup_id: id }) => id);
}

describe.each(['portable', 'native'])('B04: a store that misbehaves with a backup of the format "%s"', (format) => {
  test(
    'by giving back half of an object fails the restore, and the table stays as it was',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server, 'first');
      await completed(server, { format });
      await fill(server, 'second');
      bucket.misbehave = async (each, _, pass) => {
        if (each.method !== 'GET' || !isPayload(each)) return undefined;
        const bytes = new Uint8Array(await (await pass()).arrayBuffer());
        return new Response(bytes.subarray(0, bytes.byteLength / 2), { status: 206 });
      };
      const job = await restore(server, over);
      expect(job).toMatchObject({ phase: 'failed', error: expect.stringContaining('backup_corrupted') });
      expect(await generation(server)).toBe('second');
      bucket.misbehave = () => undefined;
      expect(await restore(server, over)).toMatchObject({ phase: 'succeeded' });
      expect(await generation(server)).toBe('first');
    },
    timeout,
  );

  test(
    'by breaking off in the middle of an object now and then is asked again',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server, 'first');
      await completed(server, { format });
      await fill(server, 'second');
      const cut = new Set<string>();
      bucket.misbehave = async (each, _, pass) => {
        const { pathname } = new URL(each.url);
        if (each.method !== 'GET' || !isPayload(each) || cut.has(pathname)) return undefined;
        cut.add(pathname);
        const answer = await pass();
        const length = String((await answer.arrayBuffer()).byteLength);
        // More is announced than comes.
        const body = new ReadableStream({ pull: (controller) => controller.error() });
        return new Response(body, { status: answer.status, headers: { 'content-length': length } });
      };
      expect(await restore(server, over)).toMatchObject({ phase: 'succeeded' });
      expect(cut.size).toBeGreaterThan(0);
      expect(await generation(server)).toBe('first');
    },
    timeout,
  );

  test.each([
    ['payloads', isPayload],
    ['manifests of tables', isTableManifest],
  ])(
    'by keeping half of %s makes no backup',
    async (_, isMeant) => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server, 'first');
      bucket.misbehave = (each, _number, pass) => {
        if (each.method !== 'PUT' || !isMeant(each)) return undefined;
        const sent = Number(each.headers.get('content-length'));
        return pass(new Uint8Array(Math.floor(sent / 2)));
      };
      const made = await server.send('POST', '/db/v1/backup', { ...request, format });
      const failed = { status: 'failed', code: 'location_unavailable', retryable: true };
      expect(made.body).toMatchObject({ status: 'failed', tables: [failed] });
      bucket.misbehave = () => undefined;
      expect(await listed(server)).toEqual([]);
      await completed(server, { format });
    },
    timeout,
  );
});

describe('B04: a store whose lists are stale', () => {
  test(
    'hides no id that is taken, keeps no backup from being restored, and shows none that is gone',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await bucket.server();
      await fill(server, 'first');
      await completed(server, { backup_id: 'a' });
      let stale = '';
      const replay: typeof bucket.misbehave = async (each, _, pass) => {
        if (!isList(each)) return undefined;
        const text = await (await pass()).text();
        stale ||= text;
        return new Response(stale, { headers: { 'content-type': 'application/xml' } });
      };
      bucket.misbehave = replay;
      expect(await listed(server)).toEqual(['a']);
      await completed(server);
      // The list does not know it yet; the store does.
      expect(await listed(server)).toEqual(['a']);
      expect((await server.send('POST', '/db/v1/backup', request)).status).toBe(409);
      await fill(server, 'second');
      expect(await restore(server, over)).toMatchObject({ phase: 'succeeded' });
      expect(await generation(server)).toBe('first');
      // A list that still has what was removed: its manifest is asked for, and is not there.
      bucket.misbehave = (each, number, pass) => {
        const isRemoved = each.method === 'GET' && each.url.includes('a-cluster-metadata.json');
        return isRemoved
          ? new Response('<Error><Code>NoSuchKey</Code></Error>', { status: 404 })
          : replay(each, number, pass);
      };
      expect(await listed(server)).toEqual([]);
    },
    timeout,
  );
});
