import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import { type GuardedServer, startGuardedServer, table } from '../../support/access.ts';

async function withTables(guarded: GuardedServer): Promise<void> {
  for (const name of ['books', 'plates']) {
    expect((await guarded.asAdmin('POST', `/db/v1/tables/${name}`, {})).status).toBe(200);
    const inserts = { a: { team: 'red', n: 1 }, b: { team: 'blue', n: 2 }, c: { team: 'red', n: 3 } };
    const batch = { inserts, sync_level: 'full_index' };
    expect((await guarded.asAdmin('POST', `/db/v1/tables/${name}/batch`, batch)).status).toBe(201);
  }
}

describe('a reader of one table', () => {
  test('sees nothing of another one, in lists, topology, status or bodies', async () => {
    await using guarded = await startGuardedServer();
    await withTables(guarded);
    const reader = await guarded.user('reader', [table('books', 'read')]);
    const get = (path: string) => guarded.as(reader, 'GET', path);
    expect(((await get('/db/v1/tables')).body as unknown as { name: string }[]).map(({ name }) => name)).toEqual([
      'books',
    ]);
    for (const path of ['/db/v1/cluster', '/db/v1/status', '/db/v1/tables', '/auth/v1/users']) {
      expect(JSON.stringify((await get(path)).body)).not.toContain('plates');
    }
    expect((await guarded.as(reader, 'POST', '/db/v1/query', { table: 'plates' })).body.code).toBe('table_not_found');
    expect((await guarded.as(reader, 'POST', '/db/v1/query', { table: 'books' })).status).toBe(200);
    const write = { inserts: { d: { n: 4 } } };
    const both = await guarded.as(reader, 'POST', '/db/v1/batch', { tables: { books: write } });
    expect([both.status, both.body.code]).toEqual([403, 'forbidden']);
    const hidden = await guarded.as(reader, 'POST', '/db/v1/batch', { tables: { plates: write } });
    const missing = await guarded.as(reader, 'POST', '/db/v1/batch', { tables: { nothing: write } });
    const sentence = (text: unknown) => String(text).replaceAll(/plates|nothing/g, 'x');
    expect([hidden.status, sentence(hidden.body.message)]).toEqual([404, sentence(missing.body.message)]);
  });
});

describe('a row filter of a subject', () => {
  test('with a value of the caller holds in lookups, scans, queries and counts, and takes writes', async () => {
    await using guarded = await startGuardedServer();
    await withTables(guarded);
    const red = await guarded.user('red', [table('books', 'admin')], { team: 'red' });
    const none = await guarded.user('none', [table('books', 'read')]);
    for (const user of ['red', 'none']) {
      await guarded.asAdmin('POST', `/auth/v1/users/${user}/roles`, { role: 'teams' });
    }
    const filter = { term: { team: { $auth: 'metadata.team' } } };
    await guarded.asAdmin('PUT', '/auth/v1/subjects/role:teams/row-filters/books', filter);
    const keysOf = async (credential: string) => {
      const { body } = await guarded.as(credential, 'POST', '/db/v1/tables/books/query', { limit: 10 });
      const [result] = body.responses as { hits: { total: { value: number }; hits: { _id: string }[] } }[];
      return [result?.hits.total.value, result?.hits.hits.map(({ _id }) => _id).sort()];
    };
    expect(await keysOf(red)).toEqual([2, ['a', 'c']]);
    expect(await keysOf(none)).toEqual([0, []]);
    const statusOf = async (credential: string, key: string) =>
      (await guarded.as(credential, 'GET', `/db/v1/tables/books/lookup/${key}`)).status;
    expect([await statusOf(red, 'a'), await statusOf(red, 'b'), await statusOf(none, 'a')]).toEqual([200, 404, 404]);
    const scanned = await guarded.as<string>(red, 'POST', '/db/v1/tables/books/lookup', {});
    expect(JSON.stringify(scanned.body)).not.toContain('blue');
    const write = await guarded.as(red, 'POST', '/db/v1/tables/books/batch', { inserts: { d: {} } });
    expect([write.status, write.body.code]).toEqual([403, 'forbidden']);
  });

  test('of a key holds beside those of its user', async () => {
    await using guarded = await startGuardedServer();
    await withTables(guarded);
    await guarded.user('red', [table('books', 'read')]);
    await guarded.asAdmin('PUT', '/auth/v1/users/red/row-filters/books', { term: { team: 'red' } });
    const { credential } = await guarded.key('red', { row_filter: { '*': { term: { n: 3 } } } });
    const statuses = await Promise.all(
      ['a', 'b', 'c'].map(
        async (key) => (await guarded.as(credential, 'GET', `/db/v1/tables/books/lookup/${key}`)).status,
      ),
    );
    expect(statuses).toEqual([404, 404, 200]);
  });
});

describe('a client of the OpenAI interface', () => {
  test('works with a key of ours, and is refused without one or with a key for tables alone', async () => {
    await using guarded = await startGuardedServer();
    await guarded.user('app', [{ resource: '*', resource_type: 'inference', type: 'read' }]);
    await guarded.user('reader', [table('books', 'read')]);
    const keyOf = async (user: string) => (await guarded.key(user)).credential.slice('Bearer '.length);
    const list = async (apiKey: string) =>
      (await new OpenAI({ apiKey, baseURL: `${guarded.server.url}/ai/v1`, maxRetries: 0 }).models.list()).data;
    expect(await list(await keyOf('app'))).toBeInstanceOf(Array);
    await expect(list('wrong')).rejects.toMatchObject({ status: 401 });
    await expect(list(await keyOf('reader'))).rejects.toMatchObject({ status: 403 });
  });
});
