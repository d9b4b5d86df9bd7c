import { describe, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BackupPlace, documentsOf } from '../../support/backup-place.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import type { TestServer } from '../../support/test-server.ts';

const inserts = { a: { title: 'one', n: 1.5 }, m: { title: 'two' }, z: { title: 'three' } };

async function fill(server: TestServer, table: string, body: unknown = { num_shards: 3 }) {
  await server.send('POST', `/db/v1/tables/${table}`, body);
  await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level: 'full_text' });
}

describe('a backup', () => {
  test('has every document of every table, and is listed', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    await fill(server, 'empty', {});
    await server.send('POST', '/db/v1/tables/empty/batch', { deletes: Object.keys(inserts) });
    const made = await server.send('POST', '/db/v1/backup', { backup_id: 'first', location: place.location });
    expect(made.body).toMatchObject({
      backup_id: 'first',
      status: 'completed',
      tables: [
        { name: 'books', status: 'completed', backup_id: 'first' },
        { name: 'empty', status: 'completed', backup_id: 'first' },
      ],
    });
    expect(made.status).toBe(200);
    expect(documentsOf(place.lines('first'))).toEqual(new Map(Object.entries(inserts)));
    const query = `location=${encodeURIComponent(place.location)}&connection=archive`;
    const listed = await server.send('GET', `/db/v1/backups?${query}`);
    expect(listed.body).toEqual({
      backups: [
        {
          backup_id: 'first',
          timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
          tables: ['books', 'empty'],
          location: place.location,
          service_version: expect.any(String),
          format: 'portable',
        },
      ],
      next_cursor: '',
    });
  });

  test('keeps line breaks of a stored document out of its line', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/t');
    const text = '{"inserts":{"k":{\n  "a": "x\\ny",\n  "n": 1.0\n}}}';
    await server.send('POST', '/db/v1/tables/t/batch', text, { 'content-type': 'application/json' });
    await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
    expect(place.lines('b')).toMatchObject([{ key: 'k', document: { a: 'x\ny', n: 1 } }]);
  });

  test('of one id is made once, and the first is left as it is', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    const request = { backup_id: 'once', location: place.location };
    await server.send('POST', '/db/v1/backup', request);
    const before = place.files('once');
    for (const path of ['/db/v1/backup', '/db/v1/tables/books/backup']) {
      const again = await server.send('POST', path, request);
      expect([again.status, again.body]).toMatchObject([409, { code: 'backup_already_exists', retryable: false }]);
    }
    expect(place.files('once')).toEqual(before);
  });

  test('of two requests with one id at the same time is one of them', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    const request = { backup_id: 'race', location: place.location };
    const answers = await Promise.all([1, 2, 3].map(() => server.send('POST', '/db/v1/backup', request)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect(place.manifests).toHaveLength(1);
    // Those that came too late have taken their files away.
    expect(new Set(place.files('race').map((file) => dirname(file))).size).toBe(1);
  });

  test('without a table is refused, and nothing is written', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    for (const more of [{}, { table_names: [] }]) {
      const answer = await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location, ...more });
      expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid_request' }]);
    }
    expect(readdirSync(place.path)).toEqual([]);
  });

  test('with a table that is not there says so table by table, and is no backup', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    const request = { backup_id: 'half', location: place.location, table_names: ['books', 'none'] };
    const answer = await server.send('POST', '/db/v1/backup', request);
    expect([answer.status, answer.body]).toMatchObject([
      200,
      {
        status: 'partial',
        tables: [
          { name: 'books', status: 'completed' },
          { name: 'none', status: 'failed', code: 'table_not_found', retryable: false, error: expect.any(String) },
        ],
      },
    ]);
    expect(place.manifests).toEqual([]);
    expect(place.files('half')).toEqual([]);
    const again = await server.send('POST', '/db/v1/backup', { ...request, table_names: ['books'] });
    expect(again.body).toMatchObject({ status: 'completed' });
  });

  test('of one table is a backup like any other', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    const made = await server.send('POST', '/db/v1/tables/books/backup', { backup_id: 'b', location: place.location });
    expect([made.status, made.body]).toEqual([201, { backup: 'successful' }]);
    expect(place.manifests).toEqual(['b-cluster-metadata.json']);
    const none = await server.send('POST', '/db/v1/tables/none/backup', { backup_id: 'c', location: place.location });
    expect([none.status, none.body]).toMatchObject([404, { code: 'table_not_found' }]);
  });

  test('is refused for an id, a format or a member that cannot be', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    const request = { backup_id: 'b', location: place.location };
    const wrong = [
      { backup_id: '' },
      { backup_id: 'a b' },
      { backup_id: '../x' },
      { backup_id: '.x' },
      { backup_id: 'x'.repeat(200) },
      { format: 'tar' },
      { table_names: ['books', 'books'] },
      { tables: ['books'] },
    ];
    for (const more of wrong) {
      const answer = await server.send('POST', '/db/v1/backup', { ...request, ...more });
      expect([answer.status, more]).toEqual([400, more]);
    }
    expect(readdirSync(place.path)).toEqual([]);
  });

  test('lists are pages in the order of the ids', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    for (const id of ['c', 'a', 'b'])
      await server.send('POST', '/db/v1/backup', { backup_id: id, location: place.location });
    const query = `/db/v1/backups?location=${encodeURIComponent(place.location)}&connection=archive&limit=2`;
    const first = await server.send<{ backups: { backup_id: string }[]; next_cursor: string }>(
      'GET',
      `${query}&cursor=`,
    );
    expect(first.body.backups.map((each) => each.backup_id)).toEqual(['a', 'b']);
    const second = await server.send<typeof first.body>('GET', `${query}&cursor=${first.body.next_cursor}`);
    expect(second.body).toMatchObject({ backups: [{ backup_id: 'c' }], next_cursor: '' });
    for (const bad of ['&limit=0', '&limit=100000'])
      expect((await server.send('GET', `${query}${bad}`)).status).toBe(400);
    const lacking = await server.send('GET', `/db/v1/backups?location=${encodeURIComponent(place.location)}`);
    expect([lacking.status, lacking.body]).toMatchObject([400, { code: 'invalid_request' }]);
  });
});

describe('a location', () => {
  test('outside of what connections allow is refused before anything is read or written', async () => {
    using place = new BackupPlace();
    using elsewhere = new TemporaryDirectory();
    symlinkSync(elsewhere.path, join(place.path, 'out'));
    mkdirSync(join(place.path, 'in'));
    await using server = await place.server({
      file: `
  readonly: {kind: external_io, capabilities: [restore.read], external_io: {protocol: filesystem, root: "${elsewhere.path}"}}
  bucket: {kind: external_io, capabilities: [backup.write], external_io: {protocol: s3, buckets: [mine], endpoint: "http://127.0.0.1:1"}}
`,
    });
    await fill(server, 'books');
    const status = async (location: string, connection?: string) => {
      const request = { backup_id: 'b', location, ...(connection === undefined ? {} : { connection }) };
      const { status, body } = await server.send('POST', '/db/v1/backup', request);
      const [first] = (body as { tables?: { code?: string }[] }).tables ?? [];
      return status === 200 ? first?.code : status;
    };
    expect(await status('file:///etc')).toBe(403);
    expect(await status('file://host/x')).toBe(400);
    expect(await status(`file://${elsewhere.path}`)).toBe(403);
    expect(await status(`file://${elsewhere.path}`, 'readonly')).toBe(403);
    expect(await status(`${place.location}/../x`)).toBe(400);
    expect(await status('s3://other/x')).toBe(403);
    expect(await status('s3://other/x', 'bucket')).toBe(403);
    expect(await status('s3://mine/x', 'archive')).toBe(403);
    expect(await status('http://169.254.169.254/')).toBe(400);
    expect(await status('gs://mine/x')).toBe(400);
    expect(await status('/etc')).toBe(400);
    expect(await status('')).toBe(400);
    expect(await status(place.location, 'none')).toBe(404);
    expect(await status(`${place.location}/out`)).toBe(403);
    expect(await status(`${place.location}/out/deeper`)).toBe(403);
    expect(readdirSync(elsewhere.path)).toEqual([]);
    // A path that is not of the root is one below it.
    expect(await status('file:///in/sub', 'archive')).toBeUndefined();
    expect(readdirSync(join(place.path, 'in/sub'))).toContain('b-cluster-metadata.json');
  });

  test('that cannot be written fails every table and leaves no backup', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    place.write('file', 'x');
    const request = { backup_id: 'b', location: `${place.location}/file` };
    const answer = await server.send('POST', '/db/v1/backup', request);
    expect(answer.body).toMatchObject({
      status: 'failed',
      tables: [{ name: 'books', status: 'failed', code: 'location_unavailable', retryable: true }],
    });
  });
});
