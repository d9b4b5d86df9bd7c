import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { limits } from '../../../src/config/limits.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

describe('tables', () => {
  test('an empty body creates a table that is usable at once', async () => {
    const created = await server.send('POST', '/db/v1/tables/empty-body');
    expect(created.status).toBe(200);
    expect(created.body).toMatchObject({
      name: 'empty-body',
      shards: { [Object.keys(created.body.shards as object)[0] ?? '']: { byte_range: ['', ''] } },
      storage_status: { empty: true },
    });
    expect(Object.keys(created.body.indexes as object)).toEqual(['full_text_index_v0']);
  });

  test('a second creation of a name is refused', async () => {
    await server.send('POST', '/db/v1/tables/twice', {});
    const again = await server.send('POST', '/db/v1/tables/twice', {});
    expect(again.status).toBe(409);
    expect(again.body).toMatchObject({ code: 'already_exists', retryable: false, error: expect.any(String) });
  });

  test('two creations of one name at the same time make one table', async () => {
    const answers = await Promise.all([1, 2, 3].map(() => server.send('POST', '/db/v1/tables/race', {})));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409, 409]);
  });

  test('creations at one moment do not pass the bound on tables', async () => {
    const bounds: { tablesMax: number } = limits;
    const { tablesMax } = bounds;
    const { body } = await server.send<unknown[]>('GET', '/db/v1/tables');
    bounds.tablesMax = body.length + 2;
    try {
      const names = [1, 2, 3, 4].map((at) => `at-once-${at}`);
      const answers = await Promise.all(names.map((name) => server.send('POST', `/db/v1/tables/${name}`, {})));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 400, 400]);
    } finally {
      bounds.tablesMax = tablesMax;
    }
  });

  test('num_shards cuts the key space without gaps', async () => {
    const { body } = await server.send<{ shards: Record<string, { byte_range: [string, string] }> }>(
      'POST',
      '/db/v1/tables/cut',
      { num_shards: 4 },
    );
    const decoded = (bound: string) => Buffer.from(bound, 'base64').toString();
    const ranges = Object.values(body.shards).map((shard) => shard.byte_range.map(decoded));
    expect(Object.values(body.shards)[1]?.byte_range[0]).toBe(Buffer.from(ranges[1]?.[0] ?? '').toString('base64'));
    expect(ranges[1]?.[0]).not.toBe('');
    expect(ranges).toHaveLength(4);
    expect(ranges[0]?.[0]).toBe('');
    expect(ranges[3]?.[1]).toBe('');
    for (const [index, range] of ranges.entries()) if (index > 0) expect(range[0]).toBe(ranges[index - 1]?.[1] ?? '');
  });

  test('lists by prefix and by pattern, sorted', async () => {
    for (const name of ['list-b', 'list-a', 'other-a']) await server.send('POST', `/db/v1/tables/${name}`);
    const names = async (query: string) =>
      ((await server.send<{ name: string }[]>('GET', `/db/v1/tables?${query}`)).body ?? []).map((table) => table.name);
    expect(await names('prefix=list-')).toEqual(['list-a', 'list-b']);
    expect(await names('prefix=list-&pattern=a$')).toEqual(['list-a']);
    expect((await server.send('GET', '/db/v1/tables?pattern=(')).body).toMatchObject({ code: 'invalid_request' });
  });

  test('a dropped table is gone with its documents, and its name can be used again', async () => {
    await server.send('POST', '/db/v1/tables/again');
    await server.send('POST', '/db/v1/tables/again/batch', { inserts: { a: { n: 1 } } });
    const before = await server.send('GET', '/db/v1/tables/again/lookup/a');
    expect((await server.send('DELETE', '/db/v1/tables/again')).status).toBe(204);
    expect((await server.send('GET', '/db/v1/tables/again')).body).toMatchObject({ code: 'table_not_found' });
    await server.send('POST', '/db/v1/tables/again');
    expect((await server.send('GET', '/db/v1/tables/again/lookup/a')).status).toBe(404);
    await server.send('POST', '/db/v1/tables/again/batch', { inserts: { a: { n: 1 } } });
    const after = await server.send('GET', '/db/v1/tables/again/lookup/a');
    // A version of the dropped table must never be taken for one of the new table.
    expect(Number(after.headers.get('x-service-version'))).toBeGreaterThan(
      Number(before.headers.get('x-service-version')),
    );
  });

  test.each([
    ['..%2Fx', 400],
    ['a%2Fb', 400],
    ['_hidden', 400],
    ['x'.repeat(300), 400],
  ])('refuses the name %p', async (name, status) => {
    const answer = await server.send('POST', `/db/v1/tables/${name}`);
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ code: 'invalid_name' });
  });

  test.each([
    [{ schema: { default_type: 'missing', document_schemas: {} } }, 'invalid_schema'],
    [{ schema: { ttl: { duration: 'soon' } } }, 'invalid_schema'],
    [{ num_shards: 0 }, 'invalid_request'],
    [{ num_shards: 1_000 }, 'limit_exceeded'],
    [{ description: 'x'.repeat(501) }, 'limit_exceeded'],
    [{ indexes: { v: { type: 'algebraic', derive_from_schema: false } } }, 'invalid_request'],
    [{ schema: { storage_mode: 'relational' } }, 'invalid_schema'],
    [{ indexes: { v: { type: 'full_text', memonly: true } } }, 'invalid_request'],
  ])('refuses the creation %j with %s and creates nothing', async (body, code) => {
    const answer = await server.send('POST', '/db/v1/tables/refused', body);
    expect(answer.body).toMatchObject({ code });
    expect((await server.send('GET', '/db/v1/tables/refused')).status).toBe(404);
  });
});
