import { describe, expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { locksOn } from '../../support/file-locks.ts';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { restore } from '../../support/restore-jobs.ts';
import { hitKeys, type TestServer } from '../../support/test-server.ts';

const indexes = {
  v: { type: 'embeddings', external: true, dimension: 3 },
  s: { type: 'embeddings', external: true, sparse: true },
};
const keyOf = (n: number) => `${'05mz'.charAt(n % 4)}${n}`;

function documents(count: number, generation: string): Record<string, unknown> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, n) => [
      keyOf(n),
      {
        text: `word${n} ${generation}`,
        generation,
        _embeddings: { v: [n + 1, 1, 2], s: { indices: [n], values: [1] } },
      },
    ]),
  );
}

async function fill(server: TestServer, table: string): Promise<void> {
  expect((await server.send('POST', `/db/v1/tables/${table}`, { num_shards: 3, indexes })).status).toBe(200);
  const body = { inserts: documents(200, 'first'), sync_level: 'full_index' };
  expect((await server.send('POST', `/db/v1/tables/${table}/batch`, body)).status).toBe(201);
}

async function backUp(server: TestServer, place: BackupPlace, id: string, more: object = {}): Promise<void> {
  const request = { backup_id: id, location: place.location, format: 'native', ...more };
  expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
}

async function scan(server: TestServer, table: string): Promise<Map<string, unknown>> {
  const answer = await server.send<string>('POST', `/db/v1/tables/${table}/documents`, { fields: ['*'] });
  const lines = String(answer.body)
    .split('\n')
    .filter((line) => line !== '');
  return new Map(lines.map((line) => [(JSON.parse(line) as { _id: string })._id, JSON.parse(line)]));
}

async function answers(server: TestServer, table: string): Promise<unknown[]> {
  const queries = [
    { full_text_search: { query: 'text:word7' } },
    { embeddings: { v: [13, 1, 2] }, indexes: ['v'], limit: 3 },
    { embeddings: { s: { indices: [42], values: [1] } }, indexes: ['s'], limit: 3 },
    { full_text_search: { query: 'generation:second' }, limit: 50 },
  ];
  const found: unknown[] = [];
  for (const query of queries) found.push(hitKeys(await server.send('POST', '/db/v1/query', { table, ...query })));
  return found;
}

describe('a backup of the format "native"', () => {
  test('leaves the locks on the files, by which other programs know that they are in use', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    const files = [...new Bun.Glob('ranges/*/*/documents.db').scanSync({ cwd: server.directory, absolute: true })];
    expect(files.map(locksOn)).toEqual([1, 1, 1]);
    await backUp(server, place, 'b');
    expect(files.map(locksOn)).toEqual([1, 1, 1]);
  });

  test('brings documents, vectors and words to another server, with the indexes as they were', async () => {
    using place = new BackupPlace();
    let expected: unknown[];
    let rows: Map<string, unknown>;
    {
      await using server = await place.server();
      await fill(server, 'books');
      const change = { inserts: { [keyOf(3)]: { text: 'changed', generation: 'second' } }, deletes: [keyOf(8)] };
      await server.send('POST', '/db/v1/tables/books/batch', { ...change, sync_level: 'full_index' });
      await backUp(server, place, 'b');
      expected = await answers(server, 'books');
      rows = await scan(server, 'books');
      const query = `location=${encodeURIComponent(place.location)}&connection=archive`;
      const listed = await server.send('GET', `/db/v1/backups?${query}`);
      expect(listed.body).toMatchObject({ backups: [{ backup_id: 'b', format: 'native' }] });
    }
    const paths = place.imagePaths('b');
    // Of every range the documents, and a checkpoint of each of the three indexes.
    expect(paths.filter((path) => path === 'documents.db')).toHaveLength(3);
    expect(paths.filter((path) => path.endsWith('/checkpoint.json'))).toHaveLength(9);
    await using server = await place.server();
    expect(await restore(server, { backup_id: 'b', location: place.location })).toMatchObject({ phase: 'succeeded' });
    expect(await scan(server, 'books')).toEqual(rows);
    expect(await answers(server, 'books')).toEqual(expected);
    expect(expected).toEqual([[keyOf(7)], expect.any(Array), [keyOf(42)], [keyOf(3)]]);
    const later = { inserts: { [keyOf(7)]: { text: 'later' }, new: { text: 'word7' } }, sync_level: 'full_index' };
    expect((await server.send('POST', '/db/v1/tables/books/batch', later)).status).toBe(201);
    expect((await answers(server, 'books'))[0]).toEqual(['new']);
  });

  test('has what is written while it is made, and later writes are above every version', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    const version = async (key: string) =>
      Number((await server.send('GET', `/db/v1/tables/books/lookup/${key}`)).headers.get('x-service-version'));
    const stop = new AbortController();
    const written: string[] = [];
    const writer = (async () => {
      for (let n = 0; !stop.signal.aborted; n += 1) {
        const inserts = { [keyOf(n % 200)]: { text: `round${n}`, generation: 'second' } };
        const { status } = await server.send('POST', '/db/v1/tables/books/batch', { inserts });
        if (status === 201) written.push(keyOf(n % 200));
      }
    })();
    await backUp(server, place, 'b');
    stop.abort();
    await writer;
    const last = await version(String(written.at(-1)));
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
    expect((await scan(server, 'books')).size).toBe(200);
    await server.send('POST', '/db/v1/tables/books/batch', { inserts: { [keyOf(1)]: { text: 'above' } } });
    expect(await version(keyOf(1))).toBeGreaterThan(last);
  });

  test('is the base of increments, also where it was restored itself', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server, 'books');
    await backUp(server, place, 'full');
    const change = async (body: object) =>
      server.send('POST', '/db/v1/tables/books/batch', { ...body, sync_level: 'full_index' });
    await change({ deletes: [keyOf(8), keyOf(9)], inserts: { [keyOf(4)]: { text: 'x', generation: 'second' } } });
    await backUp(server, place, 'more', { base_backup_id: 'full' });
    expect(place.files('more').filter((name) => name.includes('-image-'))).toEqual([]);
    const expected = await scan(server, 'books');
    const request = { location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, { ...request, backup_id: 'more' })).toMatchObject({ phase: 'succeeded' });
    expect(await scan(server, 'books')).toEqual(expected);
    expect((await answers(server, 'books'))[3]).toEqual([keyOf(4)]);
    // A restored range is not the one that the base was made of: everything is copied.
    await change({ inserts: { [keyOf(5)]: { text: 'y', generation: 'third' } } });
    await backUp(server, place, 'again', { base_backup_id: 'more' });
    expect(place.files('again').filter((name) => name.includes('-image-')).length).toBeGreaterThan(0);
    const newest = await scan(server, 'books');
    expect(await restore(server, { ...request, backup_id: 'again' })).toMatchObject({ phase: 'succeeded' });
    expect(await scan(server, 'books')).toEqual(newest);
  });

  test('keeps edges to deleted documents dead, and lets later ones live', async () => {
    using place = new BackupPlace();
    await using server = await place.server({ clock: new FakeClock() });
    const table = await GraphTable.create(server, 't', { shards: 3 });
    await table.link({ a: ['m', 'z'], m: ['a'], z: ['m'] });
    await table.batch({ deletes: ['m'] });
    await backUp(server, place, 'b');
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
    await table.batch({ inserts: { m: { again: true } }, sync_level: 'full_index' });
    expect(await table.arrows('m', '&direction=both')).toEqual([]);
    expect(await table.arrows('a')).toEqual(['a>z']);
    await table.link({ z: ['m'] });
    expect(await table.arrows('m', '&direction=in')).toEqual(['z>m']);
  });
});
