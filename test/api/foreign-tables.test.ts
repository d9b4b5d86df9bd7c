import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { table as grant, startGuardedServer } from '../support/access.ts';
import { Postgres } from '../support/postgres.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { type Answer, startTestServer, type TestServer } from '../support/test-server.ts';

setDefaultTimeout(120_000);

const readerPassword = 'reader-canary-7c1f';
const directory = new TemporaryDirectory();
const sqliteFile = join(directory.path, 'crm.sqlite');

let postgres: Postgres;
let server: TestServer;

const people = `
  CREATE TABLE people (
    id integer PRIMARY KEY, name text NOT NULL, age smallint, balance numeric(12, 2), active boolean, born date, notes text
  );
  INSERT INTO people VALUES
    (1, 'Ada', 36, 10.50, true, '1985-12-10', 'it''s "quoted"; DROP TABLE people; --'),
    (2, 'Bob', NULL, 0, false, NULL, NULL),
    (3, 'Cleo', 50, 99.99, true, '1970-01-02', 'x');`;

function configuration(more = ''): string {
  return `
connections:
  crm:
    kind: database
    database:
      provider: postgres
      dsn: "postgres://reader:\${secret:crm}@127.0.0.1:${postgres.port}/postgres"
      tables: [people, sales.orders, slow, missing]
      statement_timeout_ms: 1000
  file:
    kind: database
    database: {provider: sqlite, file: "${sqliteFile}", tables: [people]}
  silent:
    kind: database
    database: {provider: postgres, dsn: "postgres://u:p@127.0.0.1:1/d", tables: [people]}
${more}`;
}

const visits = {
  v1: { person: 1, at: 'home' },
  v2: { person: 3, at: 'work' },
  v3: { person: 1, at: 'work' },
  v4: { person: 9, at: 'away' },
  v5: { person: 'x', at: 'away' },
};

beforeAll(async () => {
  postgres = await Postgres.start();
  await postgres.execute(
    people,
    `CREATE SCHEMA sales`,
    `CREATE TABLE sales.orders (code text PRIMARY KEY, person bigint, total double precision)`,
    `INSERT INTO sales.orders VALUES ('b', 1, 2.5), ('a', 1, 1e10), ('c', 3, -1)`,
    `CREATE VIEW slow AS SELECT 1 AS id, pg_sleep(30)::text AS name`,
    `CREATE ROLE reader LOGIN PASSWORD '${readerPassword}'`,
    `GRANT USAGE ON SCHEMA public, sales TO reader`,
    // More than it needs: that nothing is written is not left to the database alone.
    `GRANT ALL ON ALL TABLES IN SCHEMA public, sales TO reader`,
  );
  const sqlite = new Database(sqliteFile);
  sqlite.run(people.replace('numeric(12, 2)', 'numeric'));
  sqlite.close();
  server = await startTestServer({ file: configuration() });
  await server.send('PUT', '/db/v1/secrets/crm', { value: readerPassword });
  await server.send('POST', '/db/v1/tables/visits', { num_shards: 2 });
  await server.send('POST', '/db/v1/tables/visits/batch', { inserts: visits, sync_level: 'full_index' });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await postgres[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

type Source = Record<string, unknown>;

function ask(join: object, source: object = {}, more: object = {}): Promise<Answer<Record<string, unknown>>> {
  return server.send('POST', '/db/v1/query', {
    table: 'visits',
    join: { right_table: 'p', on: { left_field: 'person', right_field: '_id' }, ...join },
    foreign_sources: { p: { connection: 'crm', table: 'people', ...source } },
    order_by: [{ field: '_id' }],
    ...more,
  });
}

function rows({ status, body }: Answer<Record<string, unknown>>): [string, Source][] {
  expect(status, JSON.stringify(body)).toBe(200);
  const [result] = body.responses as [{ hits: { hits: { _id: string; _source: Source }[] } }];
  return result.hits.hits.map(({ _id, _source }) => [_id, _source]);
}

describe.each(['crm', 'file'])('a foreign table of the connection %s', (connection) => {
  test('is joined by its key, with every column as JSON has it', async () => {
    const found = rows(await ask({}, { connection }));
    expect(found.map(([key]) => key)).toEqual(['v1', 'v2', 'v3']);
    const [, ada] = found[0] ?? ['', {}];
    expect(ada).toMatchObject({
      at: 'home',
      'p._id': '1',
      'p.id': 1,
      'p.name': 'Ada',
      'p.age': 36,
      'p.balance': 10.5,
      'p.notes': 'it\'s "quoted"; DROP TABLE people; --',
    });
    expect(String(ada['p.born'])).toStartWith('1985-12-10');
  });

  test.each([
    [{ filter_query: { term: { name: 'Ada' } } }, ['Ada']],
    [{ filter_query: { terms: { name: ["Ada'); DELETE FROM people; --", 'Cleo'] } } }, ['Cleo']],
    [{ filter_query: { range: { age: { gt: 35.5, lte: 36.9 } } } }, ['Ada']],
    [{ filter_query: { range: { balance: { gte: 10.5 } } } }, ['Ada', 'Cleo']],
    [{ filter_query: { bool: { must_not: [{ term: { age: 36 } }] } } }, ['Bob', 'Cleo']],
    [{ filter_query: { bool: { should: [{ term: { age: 50 } }, { exists: { field: 'born' } }] } } }, ['Ada', 'Cleo']],
    [{ filter_query: { ids: ['2', 'x', '99999999999'] } }, ['Bob']],
    [{ filter_query: { term: { name: 1 } } }, []],
    [{ filter_prefix: '3' }, ['Cleo']],
    [{ limit: 2 }, ['Ada', 'Bob']],
    [{ limit: 0 }, []],
  ])('has the database filter: %j', async (right_filters, names) => {
    const on = { left_field: '_id', right_field: 'name' };
    const join = { on, join_type: 'right', right_filters, right_fields: ['name'] };
    const found = rows(await ask(join, { connection }));
    expect(found.map(([, source]) => source['p.name'])).toEqual(names);
  });

  test('is asked for rows by their values, or read whole', async () => {
    const names = async (join: object) => {
      const answer = await ask(join, { connection }, { profile: true });
      const [{ profile }] = answer.body.responses as [{ profile: { join: Source } }];
      return [
        profile.join.strategy_used,
        profile.join.access,
        rows(answer).map(([key, source]) => [key, source['p.name']]),
      ];
    };
    const expected = [
      ['v1', 'Ada'],
      ['v2', 'Cleo'],
      ['v3', 'Ada'],
    ];
    expect(await names({})).toEqual(['index_lookup', 'key', expected]);
    expect(await names({ on: { left_field: 'person', right_field: 'id' } })).toEqual([
      'index_lookup',
      'index',
      expected,
    ]);
    expect(await names({ strategy_hint: 'broadcast' })).toEqual(['broadcast', 'hash', expected]);
    const compared = { left_field: 'person', right_field: 'age', operator: 'gt' };
    expect(await names({ on: compared })).toEqual(['broadcast', 'comparison', []]);
  });

  test('that is named wrongly is refused with what to do', async () => {
    const codes = async (join: object, source: object) => (await ask(join, { connection, ...source })).body;
    expect(await codes({}, { table: 'secrets' })).toMatchObject({ code: 'forbidden' });
    expect(await codes({}, { connection: 'nowhere' })).toMatchObject({ code: 'connection_not_found' });
    expect(await codes({}, { key: 'nothing' })).toMatchObject({ code: 'invalid_query' });
    expect(await codes({ strategy_hint: 'broadcast' }, { key: 'active' })).toMatchObject({ code: 'invalid_query' });
    expect(await codes({}, { columns: ['no"such'] })).toMatchObject({ code: 'invalid_query' });
    expect(await codes({}, { dsn: 'postgres://u:p@127.0.0.1/d' })).toMatchObject({ code: 'invalid_query' });
    const unknown = { right_filters: { filter_query: { term: { 'x"; DROP TABLE people; --': 1 } } } };
    expect(await codes(unknown, {})).toMatchObject({ code: 'invalid_query' });
    const words = { right_filters: { filter_query: { match: { name: 'Ada' } } } };
    expect(await codes(words, {})).toMatchObject({ code: 'invalid_query' });
  });
});

test('a table of a schema, with keys of text, large numbers and columns that are chosen', async () => {
  const source = { table: 'sales.orders', key: 'code', columns: ['total'] };
  const found = rows(
    await ask({ on: { left_field: 'person', right_field: 'person' } }, { ...source, columns: undefined }),
  );
  expect(found.map(([key, each]) => [key, each['p._id'], each['p.total']])).toEqual([
    ['v1', 'a', 1e10],
    ['v1', 'b', 2.5],
    ['v2', 'c', -1],
    ['v3', 'a', 1e10],
    ['v3', 'b', 2.5],
  ]);
  const right = await ask({ join_type: 'right', on: { left_field: 'at', right_field: '_id' } }, source);
  expect(rows(right).map(([, each]) => each)).toEqual([
    { 'p._id': 'a', 'p.total': 1e10 },
    { 'p._id': 'b', 'p.total': 2.5 },
    { 'p._id': 'c', 'p.total': -1 },
  ]);
});

test('a join goes on from a foreign table to one of ours', async () => {
  await server.send('POST', '/db/v1/tables/teams');
  const inserts = { t1: { lead: 'Ada' } };
  await server.send('POST', '/db/v1/tables/teams/batch', { inserts, sync_level: 'full_index' });
  const nested_join = { right_table: 'teams', on: { left_field: 'p.name', right_field: 'lead' } };
  const found = rows(await ask({ nested_join }, {}, { fields: ['p.name', 'teams._id'] }));
  expect(found).toEqual([
    ['v1', { 'p.name': 'Ada', 'teams._id': 't1' }],
    ['v3', { 'p.name': 'Ada', 'teams._id': 't1' }],
  ]);
});

test('a statement that takes too long is cancelled, and the next one is answered', async () => {
  const slow = await ask({ strategy_hint: 'broadcast' }, { table: 'slow' });
  expect(slow).toMatchObject({ status: 502, body: { code: 'foreign_source_unavailable', retryable: true } });
  expect(rows(await ask({}))).toHaveLength(3);
});

test('a database that is away, refuses the login or lacks the table says so without its address', async () => {
  const silent = await ask({}, { connection: 'silent' });
  expect(silent).toMatchObject({ status: 502, body: { code: 'foreign_source_unavailable' } });
  const missing = await ask({}, { table: 'missing' });
  expect(missing).toMatchObject({ status: 502, body: { code: 'foreign_source_refused' } });
  await server.send('PUT', '/db/v1/secrets/crm', { value: 'wrong-canary-1' });
  const refused = await ask({});
  expect(refused).toMatchObject({ status: 502, body: { code: 'foreign_source_unavailable' } });
  await server.send('PUT', '/db/v1/secrets/crm', { value: readerPassword });
  expect(rows(await ask({}))).toHaveLength(3);
  const texts = [JSON.stringify([silent.body, missing.body, refused.body]), server.logLines.join('\n')];
  for (const text of texts) for (const secret of [readerPassword, 'wrong-canary-1']) expect(text).not.toContain(secret);
  expect(texts[0]).not.toContain('127.0.0.1');
});

test('nothing is written, whatever the user of the connection may do', async () => {
  const [{ people: count }] = (await postgres.execute('SELECT count(*)::int AS people FROM people')) as [
    { people: number },
  ];
  expect(count).toBe(3);
  await postgres.execute(
    `CREATE FUNCTION sneak() RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO people VALUES (7, 'x'); RETURN 'x'; END $$`,
    `CREATE OR REPLACE VIEW slow AS SELECT 1 AS id, sneak() AS name`,
  );
  const answer = await ask({ strategy_hint: 'broadcast' }, { table: 'slow' });
  expect(answer).toMatchObject({ status: 502, body: { code: 'foreign_source_refused' } });
  expect(JSON.stringify(answer.body)).toContain('read-only');
});

test('a foreign table needs a grant of its own, and no row filter', async () => {
  await using guarded = await startGuardedServer({ file: configuration() });
  await guarded.asAdmin('PUT', '/db/v1/secrets/crm', { value: readerPassword });
  await guarded.asAdmin('POST', '/db/v1/tables/visits');
  await guarded.asAdmin('POST', '/db/v1/tables/visits/batch', { inserts: visits, sync_level: 'full_index' });
  const query = {
    table: 'visits',
    join: { right_table: 'p', on: { left_field: 'person', right_field: '_id' } },
    foreign_sources: { p: { connection: 'crm', table: 'people' } },
  };
  const without = await guarded.user('without', [grant('visits', 'read')]);
  expect((await guarded.as(without, 'POST', '/db/v1/query', query)).body).toMatchObject({ code: 'forbidden' });
  const granted = await guarded.user('granted', [grant('visits', 'read'), grant('crm/people', 'read')]);
  expect((await guarded.as(granted, 'POST', '/db/v1/query', query)).status).toBe(200);
  await guarded.asAdmin('PUT', '/auth/v1/users/granted/row-filters/*', { match_all: {} });
  expect((await guarded.as(granted, 'POST', '/db/v1/query', query)).body).toMatchObject({ code: 'forbidden' });
});

test('the list of connections names the tables and no credential', async () => {
  const { body } = await server.send('GET', '/db/v1/connections?types=database');
  const connections = body.connections as { id: string }[];
  expect(connections.find(({ id }) => id === 'crm')).toMatchObject({
    provider: 'postgres',
    kind: 'database',
    capabilities: ['database.read'],
    database: {
      provider: 'postgres',
      tables: ['people', 'sales.orders', 'slow', 'missing'],
      statement_timeout_ms: 1_000,
    },
  });
  expect(JSON.stringify(body)).not.toContain('reader');
});
