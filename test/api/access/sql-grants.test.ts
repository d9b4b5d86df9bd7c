import { expect, test } from 'bun:test';
import { startGuardedServer, table } from '../../support/access.ts';

const rows = {
  schema: {
    storage_mode: 'relational',
    document_schemas: { row: { schema: { type: 'object', properties: { n: { type: 'integer' } } } } },
  },
};

test('a statement reads only tables and rows that its caller may read, and does not tell of others', async () => {
  await using guarded = await startGuardedServer();
  for (const name of ['open', 'closed', 'partly']) {
    await guarded.asAdmin('POST', `/db/v1/tables/${name}`, rows);
    await guarded.asAdmin('POST', `/db/v1/tables/${name}/batch`, { inserts: { a: { n: 1 }, b: { n: 6 }, c: {} } });
  }
  const user = await guarded.user('reader', [table('open', 'read'), table('partly', 'read')]);
  const filter = { range: { n: { gt: 5 } } };
  const set = await guarded.asAdmin('PUT', '/auth/v1/subjects/reader/row-filters/partly', filter);
  expect(set.status).toBeLessThan(300);
  const ask = (sql: string) => guarded.as(user, 'POST', '/db/v1/sql', { sql });
  expect((await ask('SELECT n FROM open')).body).toEqual({ columns: ['n'], rows: [[1], [6], [null]] });
  const hidden = await ask('SELECT n FROM closed');
  expect(hidden.body).toMatchObject({ code: 'invalid_query', error: 'sql: no such table: closed' });
  expect((await ask('SELECT n FROM nowhere')).body).toMatchObject({ error: 'sql: no such table: nowhere' });
  expect((await ask('SELECT _id, n FROM partly')).body).toMatchObject({ rows: [['b', 6]] });
  const both = await ask('SELECT count(*) AS n FROM open o LEFT JOIN partly p ON p._id = o._id WHERE p._id IS NULL');
  expect(both.body).toMatchObject({ rows: [[2]] });
  const filtered = await ask("SELECT n FROM partly WHERE _id = 'a' OR n < 5");
  expect(filtered.body).toMatchObject({ rows: [] });
  await guarded.asAdmin('POST', '/db/v1/tables/partly/batch', { inserts: { a: { n: 7 } }, deletes: ['b'] });
  expect((await ask('SELECT _id, n FROM partly')).body).toMatchObject({ rows: [['a', 7]] });
  const whole = await guarded.asAdmin('POST', '/db/v1/sql', { sql: 'SELECT count(*) AS n FROM partly' });
  expect(whole.body).toMatchObject({ rows: [[2]] });
  expect((await guarded.as(undefined, 'POST', '/db/v1/sql', { sql: 'SELECT 1' })).status).toBe(401);
});

test('a table that its caller may only write stands in the way of no statement but one that reads it', async () => {
  await using guarded = await startGuardedServer();
  for (const name of ['n', 'open']) {
    await guarded.asAdmin('POST', `/db/v1/tables/${name}`, rows);
    await guarded.asAdmin('POST', `/db/v1/tables/${name}/batch`, { inserts: { a: { n: 1 } } });
  }
  const user = await guarded.user('writer', [table('open', 'read'), table('n', 'write')]);
  const ask = (sql: string) => guarded.as(user, 'POST', '/db/v1/sql', { sql });
  expect((await ask('SELECT n FROM open')).body).toMatchObject({ rows: [[1]] });
  expect((await ask("SELECT n AS answer, 'n' AS note FROM open")).body).toMatchObject({ rows: [[1, 'n']] });
  expect((await ask('WITH n AS (VALUES (7)) SELECT column1 AS c FROM n')).body).toMatchObject({ rows: [[7]] });
  for (const read of [
    'SELECT * FROM n',
    'SELECT open.n FROM open JOIN main."N" AS other',
    'SELECT (SELECT n FROM n) AS x',
  ]) {
    expect(await ask(read)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  }
});

test('a row filter over artifacts holds in statements, too', async () => {
  await using guarded = await startGuardedServer();
  const columns = { kind: { type: 'string' }, n: { type: 'integer' } };
  const schema = {
    storage_mode: 'relational',
    document_schemas: { row: { schema: { type: 'object', properties: columns } } },
  };
  await guarded.asAdmin('POST', '/db/v1/tables/labelled', { schema });
  const label = { kind: 'chunk', field: 'kind', chunk_size: 16, full_text_index: true };
  const made = await guarded.asAdmin('PUT', '/db/v1/tables/labelled/artifacts/label/enrichment', label);
  expect(made.status).toBe(200);
  const inserts = { a: { kind: 'secret', n: 1 }, b: { kind: 'open', n: 2 }, c: { n: 3 } };
  await guarded.asAdmin('POST', '/db/v1/tables/labelled/batch', { inserts, sync_level: 'full_index' });
  const user = await guarded.user('reader', [table('labelled', 'read')]);
  const ask = async (filter: object) => {
    await guarded.asAdmin('PUT', '/auth/v1/subjects/reader/row-filters/labelled', filter);
    const { body } = await guarded.as(user, 'POST', '/db/v1/sql', { sql: 'SELECT _id FROM labelled ORDER BY n' });
    return (body as { rows: string[][] }).rows.flat();
  };
  expect(await ask({ query: '_artifacts.label:open' })).toEqual(['b']);
  const hidden = { bool: { must_not: [{ query: '_artifacts.label:secret' }], must: [{ match_all: {} }] } };
  expect(await ask(hidden)).toEqual(['b', 'c']);
});
