import { afterEach, describe, expect, mock, spyOn, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RestoreJobBody } from '../../../src/protocol/database/restores.ts';
import { TableService } from '../../../src/tables/table-service.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { endOfRestore, restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const text = { type: 'string' };
const naming = (table: string) => ({ ...text, references: { table } });
const schemaOf = (properties: object) => ({
  storage_mode: 'relational',
  document_schemas: { row: { schema: { type: 'object', properties } } },
});

async function create(server: TestServer, name: string, properties: object): Promise<void> {
  const body = { num_shards: 2, schema: schemaOf(properties) };
  expect((await server.send('POST', `/db/v1/tables/${name}`, body)).status).toBe(200);
}

async function write(server: TestServer, table: string, body: object): Promise<void> {
  const { status } = await server.send('POST', `/db/v1/tables/${table}/batch`, body);
  expect([table, status]).toEqual([table, 201]);
}

const statusOf = async (server: TestServer, path: string) => (await server.send('GET', `/db/v1/tables/${path}`)).status;

/** Chapters name books, books name writers: by their names each comes before what it names. */
async function library(server: TestServer, place: BackupPlace): Promise<void> {
  await create(server, 'writers', { name: text });
  await create(server, 'books', { writer: naming('writers'), sequel: naming('books') });
  await create(server, 'a_chapters', { book: naming('books') });
  await write(server, 'writers', { inserts: { ada: { name: 'Ada' }, zoe: { name: 'Zoe' } } });
  await write(server, 'books', { inserts: { b: { writer: 'ada' }, z: { writer: 'zoe', sequel: 'b' } } });
  await write(server, 'a_chapters', { inserts: { one: { book: 'z' } } });
  const request = { backup_id: 'b', location: place.location };
  expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
}

/** Waits until a restore has heard that it is to be cancelled. */
async function cancelHeard(server: TestServer, job: string): Promise<void> {
  for (;;) {
    const { body } = await server.send<RestoreJobBody>('GET', `/db/v1/restore/jobs/${job}`);
    if (body.cancel_requested) return;
  }
}

afterEach(() => mock.restore());

describe('references of relational tables', () => {
  test('hold after a cancellation between two tables: both come, or neither', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await library(server, place);
    // The writers of the backup are older than the book that names this one.
    await write(server, 'writers', { inserts: { new: { name: 'New' } } });
    await write(server, 'books', { inserts: { n: { writer: 'new' } } });
    const publish = TableService.prototype.publish;
    let cancelled: Promise<unknown> | undefined;
    spyOn(TableService.prototype, 'publish').mockImplementation(async function (this: TableService, ...asked) {
      const isPublished = await publish.apply(this, asked);
      // The answer comes when this table is noted as published.
      cancelled ??= server.send('DELETE', `/db/v1/restore/jobs/${id}`);
      await cancelHeard(server, id);
      return isPublished;
    });
    const body = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const { job_id: id } = (await server.send<{ job_id: string }>('POST', '/db/v1/restore', body)).body;
    const ended = await endOfRestore(server, id);
    expect(ended).toMatchObject({ phase: 'succeeded', cancel_requested: true, published_table_count: 3 });
    expect(await cancelled).toMatchObject({ status: 200 });
    expect(await statusOf(server, 'books/documents/n')).toBe(404);
    expect(await statusOf(server, 'writers/documents/new')).toBe(404);
  });

  test('hold where one of two tables cannot be restored: the other stays too', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await library(server, place);
    await write(server, 'writers', { inserts: { new: { name: 'New' } } });
    await write(server, 'books', { inserts: { n: { writer: 'new' } } });
    const damaged = readdirSync(place.path, { recursive: true }) as string[];
    const manifests = damaged.filter((name) => /table-\d+\.json$/.test(name));
    const ofBooks = manifests.find((name) => readFileSync(join(place.path, name), 'utf8').includes('"name":"books"'));
    const payload = damaged.find((name) => name.startsWith((ofBooks ?? '').replace(/\.json$/, '-range-0')));
    writeFileSync(join(place.path, payload ?? ''), 'x');
    const body = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const ended = await restore(server, body);
    expect(ended).toMatchObject({ phase: 'failed' });
    expect(await statusOf(server, 'books/documents/n')).toBe(200);
    expect(await statusOf(server, 'writers/documents/new')).toBe(200);
  });

  test('hold in tables that are restored together, in any sequence of their names', async () => {
    using place = new BackupPlace();
    {
      await using server = await place.server();
      await library(server, place);
    }
    await using server = await place.server();
    const request = { backup_id: 'b', location: place.location };
    const both = { ...request, table_names: ['a_chapters', 'books', 'writers'] };
    expect(await restore(server, both)).toMatchObject({ phase: 'succeeded', published_table_count: 3 });
    expect(await statusOf(server, 'a_chapters/documents/one')).toBe(200);
    expect(await restore(server, { ...request, restore_mode: 'overwrite' })).toMatchObject({ phase: 'succeeded' });
  });

  test('hold in tables that name each other in a circle', async () => {
    using place = new BackupPlace();
    {
      await using server = await place.server();
      await create(server, 'teams', { name: text });
      await create(server, 'people', { team: naming('teams') });
      const schema = schemaOf({ name: text, lead: naming('people') });
      expect((await server.send('PUT', '/db/v1/tables/teams/schema', schema)).status).toBe(200);
      const tables = { teams: { inserts: { t: { lead: 'p' } } }, people: { inserts: { p: { team: 't' } } } };
      expect((await server.send('POST', '/db/v1/batch', { tables })).status).toBe(201);
      const request = { backup_id: 'b', location: place.location };
      expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
    }
    await using server = await place.server();
    const request = { backup_id: 'b', location: place.location };
    const alone = await restore(server, { ...request, table_names: ['people'] });
    expect(alone).toMatchObject({ phase: 'failed', error: expect.stringContaining('constraint_violation') });
    expect(await restore(server, request)).toMatchObject({ phase: 'succeeded', published_table_count: 2 });
    const again = await restore(server, { ...request, table_names: ['people'], restore_mode: 'overwrite' });
    expect(again).toMatchObject({ phase: 'succeeded' });
    await write(server, 'teams', { inserts: { u: { lead: 'p' } } });
  });

  test('keep a table from being restored without the one that it names', async () => {
    using place = new BackupPlace();
    {
      await using server = await place.server();
      await library(server, place);
    }
    await using server = await place.server();
    const request = { backup_id: 'b', location: place.location };
    const alone = await restore(server, { ...request, table_names: ['a_chapters', 'books'] });
    expect(alone).toMatchObject({ phase: 'failed', result: { failed_table_count: 2, committed_table_count: 0 } });
    expect(alone.error).toContain('constraint_violation');
    expect(alone.error).toContain('"writer" of "books" names rows of "writers", which is not a relational table here');
    expect([await statusOf(server, 'books'), await statusOf(server, 'a_chapters')]).toEqual([404, 404]);
    await create(server, 'writers', { name: text });
    await write(server, 'writers', { inserts: { ada: { name: 'Ada' } } });
    const lacking = await restore(server, { ...request, table_names: ['books'] });
    expect(lacking.error).toContain('"writer" of the row "z" of "books" names a row that "writers" does not have');
    expect(await statusOf(server, 'books')).toBe(404);
    await write(server, 'writers', { inserts: { zoe: { name: 'Zoe' } } });
    expect(await restore(server, { ...request, table_names: ['books'] })).toMatchObject({ phase: 'succeeded' });
  });

  test('keep a table from being replaced by an older one whose rows are named by now', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await library(server, place);
    await write(server, 'writers', { inserts: { eve: { name: 'Eve' } } });
    await write(server, 'books', { inserts: { e: { writer: 'eve' } } });
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const refused = await restore(server, { ...request, table_names: ['writers'] });
    expect(refused.error).toContain('"writer" of the row "e" of "books" names a row that "writers" does not have');
    expect(await statusOf(server, 'writers/documents/eve')).toBe(200);
    await write(server, 'writers', { inserts: { max: { name: 'Max' } } });
    await write(server, 'books', { deletes: ['e'] });
    expect(await restore(server, { ...request, table_names: ['writers'] })).toMatchObject({ phase: 'succeeded' });
    expect(await statusOf(server, 'writers/documents/max')).toBe(404);
    await write(server, 'books', { inserts: { f: { writer: 'zoe' } } });
  });
});
