import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

let tables = 0;
async function newTable(body: unknown = {}): Promise<string> {
  tables += 1;
  const path = `/db/v1/tables/writes-${tables}`;
  expect((await server.send('POST', path, body)).status).toBe(200);
  return path;
}

async function read(path: string, key: string): Promise<Record<string, unknown> | undefined> {
  const { status, body } = await server.send('GET', `${path}/lookup/${encodeURIComponent(key)}`);
  if (status === 404) return undefined;
  return body;
}

describe.each([1, 3])('batches over %d ranges', (num_shards) => {
  test('insert, delete and transform in one request', async () => {
    const path = await newTable({ num_shards });
    await server.send('POST', `${path}/batch`, { inserts: { alpha: { n: 1 }, zeta: { n: 2 } } });
    const answer = await server.send('POST', `${path}/batch`, {
      inserts: { beta: { n: 3 } },
      deletes: ['alpha', 'never-there', 'alpha'],
      transforms: [{ key: 'zeta', operations: [{ op: '$inc', path: '$.n', value: 5 }] }],
    });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({ status: 'committed', inserted: 1, deleted: 1, transformed: 1 });
    expect(await read(path, 'alpha')).toBeUndefined();
    expect(await read(path, 'beta')).toEqual({ n: 3 });
    expect(await read(path, 'zeta')).toEqual({ n: 7 });
  });

  test('a transform that fits nothing it finds has failed, and changes neither the document nor its version', async () => {
    const path = await newTable({ num_shards });
    await server.send('POST', `${path}/batch`, { inserts: { a: { s: 'x', n: 1 }, z: { s: 'x' } } });
    const version = async () => (await server.send('GET', `${path}/lookup/a`)).headers.get('x-service-version');
    const before = await version();
    const inc = (field: string) => ({ op: '$inc', path: field, value: 1 });
    const answer = await server.send('POST', `${path}/batch`, {
      transforms: [
        { key: 'a', operations: [inc('s'), { op: '$push', path: 'n', value: 1 }] },
        { key: 'z', operations: [inc('s'), inc('n')] },
        { key: 'never-there', operations: [inc('n')] },
      ],
    });
    expect(answer.body).toEqual({ status: 'committed', inserted: 0, deleted: 0, transformed: 1, failed: 1 });
    expect([await read(path, 'a'), await version()]).toEqual([{ s: 'x', n: 1 }, before]);
    expect(await read(path, 'z')).toEqual({ s: 'x', n: 1 });
  });

  test('a refused document refuses the whole batch', async () => {
    const path = await newTable({ num_shards });
    const answer = await server.send('POST', `${path}/batch`, '{"inserts":{"a":{"n":1},"z":{"n":1e400}}}');
    expect(answer.body).toMatchObject({ code: 'number_out_of_range' });
    expect(await read(path, 'a')).toBeUndefined();
  });

  test('a commit aborts when what was read has changed, and names it', async () => {
    const path = await newTable({ num_shards });
    const table = path.split('/').at(-1) ?? '';
    await server.send('POST', `${path}/batch`, { inserts: { m: { n: 1 } } });
    const { headers } = await server.send('GET', `${path}/lookup/m`);
    const version = headers.get('x-service-version') ?? '';
    const commit = (read_set: unknown) =>
      server.send('POST', '/db/v1/transactions/commit', {
        read_set,
        tables: { [table]: { inserts: { m: { n: 2 }, a: { n: 2 }, z: { n: 2 } } } },
      });
    const first = await commit([
      { table, key: 'm', version },
      { table, key: 'a', version: '0' },
    ]);
    expect(first.status).toBe(200);
    expect(first.body).toEqual({
      status: 'committed',
      tables: { [table]: { inserted: 3, deleted: 0, transformed: 0 } },
    });
    const second = await commit([{ table, key: 'm', version }]);
    expect(second.status).toBe(409);
    expect(second.body).toMatchObject({ status: 'aborted', conflict: { table, key: 'm' } });
  });

  test('a commit without writes asks whether what was read still stands', async () => {
    const path = await newTable({ num_shards });
    const table = path.split('/').at(-1) ?? '';
    const commit = () => {
      const body = { read_set: [{ table, key: 'm', version: '0' }], tables: {} };
      return server.send('POST', '/db/v1/transactions/commit', body);
    };
    expect(await commit()).toMatchObject({ status: 200, body: { status: 'committed', tables: {} } });
    await server.send('POST', `${path}/batch`, { inserts: { m: { n: 1 } } });
    expect(await commit()).toMatchObject({ status: 409, body: { status: 'aborted' } });
    const empty = await server.send('POST', '/db/v1/transactions/commit', { read_set: [], tables: {} });
    expect(empty.body).toMatchObject({ code: 'invalid_request' });
  });

  test('a merge makes the interval equal to the page, and a dry run only says so', async () => {
    const path = await newTable({ num_shards });
    await server.send('POST', `${path}/batch`, {
      inserts: { a: { n: 1 }, d: { n: 1 }, p: { n: 1 }, z: { n: 1 } },
    });
    const page = { records: { a: { n: 1 }, b: { n: 2 }, p: { n: 9 } }, last_merged_id: '' };
    const dry = await server.send('POST', `${path}/merge`, { ...page, dry_run: true });
    expect(dry.body).toMatchObject({ status: 'success', upserted: 0, skipped: 1, deleted: 1, deleted_ids: ['d'] });
    const zipped = gzipSync(JSON.stringify(page));
    const response = await fetch(`${server.url}${path}/merge`, {
      method: 'POST',
      headers: { 'content-encoding': 'gzip' },
      body: zipped,
    });
    expect(await response.json()).toMatchObject({ upserted: 2, skipped: 1, deleted: 1, next_cursor: 'p' });
    expect(await read(path, 'd')).toBeUndefined();
    expect(await read(path, 'p')).toEqual({ n: 9 });
    expect(await read(path, 'z')).toEqual({ n: 1 });
    const behind = await server.send('POST', `${path}/merge`, { records: { a: {} }, last_merged_id: 'b' });
    expect(behind.body).toMatchObject({ code: 'invalid_request' });
  });

  test('the last page of a merge is empty: every key after it goes', async () => {
    const path = await newTable({ num_shards });
    await server.send('POST', `${path}/batch`, { inserts: { a: {}, c: {}, p: {}, z: {}, '\u{10ffff}': {} } });
    const merge = (body: object) => server.send('POST', `${path}/merge`, body);
    for (const body of [{}, { records: {} }, { records: {}, last_merged_id: '' }, { last_merged_id: 'a' }]) {
      expect((await merge(body)).body).toMatchObject({ code: 'invalid_request' });
    }
    const last = { records: {}, last_merged_id: 'c' };
    const dry = await merge({ ...last, dry_run: true });
    expect(dry.body).toMatchObject({ upserted: 0, deleted: 3, deleted_ids: ['p', 'z', '\u{10ffff}'] });
    expect((await merge(last)).body).toMatchObject({
      status: 'success',
      deleted: 3,
      next_cursor: 'c',
      key_range: { from: 'c', to: '' },
    });
    const { body } = await server.send<string>('POST', `${path}/documents`);
    expect(
      body
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)._id),
    ).toEqual(['a', 'c']);
  });
});

describe('several tables', () => {
  test('are written together or not at all', async () => {
    const [left, right] = [await newTable(), await newTable()];
    const names = [left, right].map((path) => path.split('/').at(-1) ?? '');
    const [a = '', b = ''] = names;
    const good = await server.send('POST', '/db/v1/batch', {
      tables: { [a]: { inserts: { x: { n: 1 } } }, [b]: { inserts: { x: { n: 1 } } } },
    });
    expect(good.status).toBe(201);
    expect(good.body).toMatchObject({ tables: { [a]: { inserted: 1 }, [b]: { inserted: 1 } } });
    const bad = await server.send('POST', '/db/v1/batch', {
      tables: { [a]: { inserts: { y: { n: 1 } } }, 'no-such-table': { inserts: { y: { n: 1 } } } },
    });
    expect(bad.body).toMatchObject({ code: 'table_not_found' });
    expect(await read(left, 'y')).toBeUndefined();
  });
});

describe('sync levels', () => {
  test.each(['propose', 'write', 'full_text', 'enrichments', 'full_index', 'aknn'])('%s is accepted', async (level) => {
    const path = await newTable();
    const answer = await server.send('POST', `${path}/batch`, { inserts: { a: { n: 1 } }, sync_level: level });
    expect(answer.status).toBe(201);
  });

  test('full_text makes the write visible to search before it answers', async () => {
    const path = await newTable();
    for (let round = 0; round < 20; round += 1) {
      await server.send('POST', `${path}/batch`, { inserts: { [`k${round}`]: { t: 'dew' } }, sync_level: 'full_text' });
      const { body } = await server.send('POST', `${path}/query`, {
        full_text_search: { query: 't:dew' },
        count: true,
      });
      expect(body).toMatchObject({ responses: [{ hits: { total: { value: round + 1, relation: 'exact' } } }] });
    }
  });

  test('an unknown level is refused', async () => {
    const path = await newTable();
    const answer = await server.send('POST', `${path}/batch`, { inserts: { a: {} }, sync_level: 'soonish' });
    expect(answer.body).toMatchObject({ code: 'invalid_request' });
  });
});

describe('what a batch refuses', () => {
  test.each([
    ['{}', 'invalid_request'],
    ['{"inserts":{"a":{}},"deletes":["a"]}', 'conflicting_operations'],
    ['{"inserts":{"":{}}}', 'invalid_key'],
    ['{"inserts":{"a":{"_embeddings":{"v":[1]}}}}', 'invalid_embedding'],
    ['{"transforms":[{"key":"a","operations":[{"op":"$unset","path":"_embeddings.v"}]}]}', 'invalid_request'],
    ['{"inserts":{"a":{"_edges":{"g":{}}}}}', 'invalid_edge'],
    ['{"inserts":{"a":{"n":1,"n":2}}}', 'invalid_json'],
    ['{"inserts":{"a":{"n":9007199254740993}}}', 'number_out_of_range'],
    ['{"inserts":{"a":{"s":"\\ud800"}}}', 'invalid_json'],
    ['{"inserts":[]}', 'invalid_request'],
    ['{"inserts":{"a":{"n":1', 'invalid_json'],
    ['{"transforms":[{"key":"a","operations":[{"op":"$grow","path":"n"}]}]}', 'invalid_request'],
  ])('%s is %s', async (body, code) => {
    const path = await newTable();
    expect((await server.send('POST', `${path}/batch`, body)).body).toMatchObject({ code });
    const { body: status } = await server.send('GET', path);
    expect(status).toMatchObject({ storage_status: { empty: true } });
  });

  test('a member named __proto__ is a member like any other', async () => {
    const path = await newTable();
    await server.send('POST', `${path}/batch`, '{"inserts":{"a":{"__proto__":{"admin":true},"constructor":1}}}');
    await server.send('POST', `${path}/batch`, {
      transforms: [{ key: 'a', operations: [{ op: '$set', path: 'n', value: 1 }] }],
    });
    const response = await fetch(`${server.url}${path}/lookup/a`);
    expect(await response.text()).toStartWith('{"__proto__":{"admin":true},"constructor":1,');
  });

  test('a key that begins with a byte order mark keeps it, over several ranges too', async () => {
    const path = await newTable({ num_shards: 3 });
    await server.send('POST', `${path}/batch`, { inserts: { '\ufeffa': { n: 1 }, a: { n: 2 } } });
    expect(await read(path, '\ufeffa')).toEqual({ n: 1 });
    expect(await read(path, 'a')).toEqual({ n: 2 });
  });
});

describe('a write that waits until it can be seen', () => {
  const write = (at: TestServer) =>
    at.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { n: 1 } }, sync_level: 'full_index' });

  test('keeps its range open while others need its place', async () => {
    await using crowded = await startTestServer({ environment: { SUNDEW__STORAGE__OPEN_RANGES: '1' } });
    for (const name of ['t', 'others']) await crowded.send('POST', `/db/v1/tables/${name}`, {});
    const { waitForIndexes } = IndexedRange.prototype;
    using _spied = spyOn(IndexedRange.prototype, 'waitForIndexes').mockImplementationOnce(async function (
      this: IndexedRange,
      ...asked
    ) {
      await crowded.send('POST', '/db/v1/tables/others/query', { limit: 1 });
      await Bun.sleep(200);
      // Fails where the range was closed.
      expect(this.stored.documents.get('a')?.key).toBe('a');
      await waitForIndexes.apply(this, asked);
    });
    expect((await write(crowded)).body).toMatchObject({ status: 'committed' });
  });

  test('holds up no drop of its table', async () => {
    await using waiting = await startTestServer();
    await waiting.send('POST', '/db/v1/tables/t', {});
    const waits = Promise.withResolvers<void>();
    using _spied = spyOn(IndexedRange.prototype, 'waitForIndexes').mockImplementationOnce(
      (_names, _sequence, signal) => {
        waits.resolve();
        return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('given up'))));
      },
    );
    const written = write(waiting);
    await waits.promise;
    expect((await waiting.send('DELETE', '/db/v1/tables/t')).status).toBe(204);
    expect((await written).body).toMatchObject({ status: 'committed_repair_required' });
  });
});
