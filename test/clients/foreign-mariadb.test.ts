import { expect, setDefaultTimeout, test } from 'bun:test';
import { startTestServer } from '../support/test-server.ts';
import { MariaDb } from './mariadb.ts';

setDefaultTimeout(300_000);

interface Answer {
  responses: { hits: { hits: { _id: string; _source: Record<string, unknown> }[] } }[];
}

const long = 'k'.repeat(2_800);

test('foreign tables of MariaDB: joins, filters, and a statement that takes too long', async () => {
  await using database = await MariaDb.start();
  await database.execute(
    'CREATE TABLE people (id int PRIMARY KEY, name varchar(50), age smallint, balance decimal(12, 2), `odd ``name` text)',
    "INSERT INTO people VALUES (1, 'Ada', 36, 10.50, 'x'), (2, 'Bob', NULL, 0, NULL), (3, 'Cleo', 50, 99.99, 'y')",
    'CREATE TABLE big (id bigint unsigned PRIMARY KEY, more bigint, exact decimal(30, 10), name varchar(2900))',
    `INSERT INTO big VALUES (18446744073709551615, 9007199254740993, 12345678901234567890.5, '${long}')`,
    `INSERT INTO big VALUES (9007199254740992, 9007199254740992, 0.5, '${long}x')`,
    'CREATE TABLE floats (id float PRIMARY KEY)',
    'INSERT INTO floats VALUES (0.1), (16777216)',
    'CREATE TABLE many (id int PRIMARY KEY, word varchar(9))',
    'INSERT INTO many SELECT seq, seq * 37 % 1000 FROM seq_1_to_1000',
    'CREATE VIEW slow AS SELECT 1 AS id, SLEEP(20) AS name',
  );
  const file = `
connections:
  crm:
    kind: database
    database: {provider: mysql, dsn: "${database.url}", tables: [people, floats, many, slow, big], statement_timeout_ms: 1000}
`;
  await using server = await startTestServer({ file });
  await server.send('POST', '/db/v1/tables/visits');
  const inserts = { a: { person: 3 }, b: { person: 1 }, c: { person: 7 } };
  await server.send('POST', '/db/v1/tables/visits/batch', { inserts, sync_level: 'full_index' });
  const ask = (join: object, source: object = {}, more: object = {}) =>
    server.send('POST', '/db/v1/query', {
      table: 'visits',
      join: { right_table: 'p', on: { left_field: 'person', right_field: '_id' }, ...join },
      foreign_sources: { p: { connection: 'crm', table: 'people', ...source } },
      order_by: [{ field: '_id' }],
      ...more,
    });
  const rows = async (join: object) => {
    const { status, body } = await ask(join);
    expect(status, JSON.stringify(body)).toBe(200);
    return (body as unknown as Answer).responses[0]?.hits.hits.map(({ _id, _source }) => [_id, _source['p.name']]);
  };
  const both = [
    ['a', 'Cleo'],
    ['b', 'Ada'],
  ];
  expect(await rows({})).toEqual(both);
  expect(await rows({ on: { left_field: 'person', right_field: 'id' } })).toEqual(both);
  expect(await rows({ strategy_hint: 'broadcast' })).toEqual(both);
  const many = await ask(
    { join_type: 'right', right_filters: { limit: 900 } },
    { table: 'many', columns: ['id'] },
    { count: true },
  );
  expect(many.body).toMatchObject({ responses: [{ hits: { total: { value: 900, relation: 'exact' } } }] });
  await server.send('POST', '/db/v1/tables/readings');
  const readings = { a: { of: 0.1 }, b: { of: 16_777_216 } };
  await server.send('POST', '/db/v1/tables/readings/batch', { inserts: readings, sync_level: 'full_index' });
  for (const strategy_hint of ['broadcast', 'index_lookup']) {
    const on = { left_field: 'of', right_field: 'id' };
    const { body } = await ask({ on, strategy_hint }, { table: 'floats' }, { table: 'readings' });
    const found = [{ _source: { 'p._id': '0.1', 'p.id': 0.1 } }, { _source: { 'p.id': 16_777_216 } }];
    expect(body).toMatchObject({ responses: [{ hits: { hits: found } }] });
  }
  const values = ['18446744073709551615', '9007199254740993', '12345678901234567890.5000000000', long];
  const wanted = { w: { values } };
  await server.send('POST', '/db/v1/tables/wants', {});
  await server.send('POST', '/db/v1/tables/wants/batch', { inserts: wanted, sync_level: 'full_index' });
  for (const right_field of ['_id', 'id', 'more', 'exact', 'name']) {
    for (const strategy_hint of ['broadcast', 'index_lookup']) {
      const { body } = await server.send('POST', '/db/v1/query', {
        table: 'wants',
        join: { right_table: 'p', on: { left_field: 'values', right_field }, strategy_hint },
        foreign_sources: { p: { connection: 'crm', table: 'big' } },
        fields: ['p._id'],
      });
      const found = [{ _source: { 'p._id': '18446744073709551615' } }];
      expect([right_field, body]).toMatchObject([right_field, { responses: [{ hits: { hits: found } }] }]);
    }
  }
  const filtered = (filter_query: object) => rows({ right_filters: { filter_query } });
  expect(await filtered({ range: { age: { gt: 35.5, lt: 40 } } })).toEqual([['b', 'Ada']]);
  expect(await filtered({ bool: { must_not: [{ term: { age: 36 } }] } })).toEqual([['a', 'Cleo']]);
  expect(await filtered({ term: { 'odd `name': 'x' } })).toEqual([['b', 'Ada']]);
  expect(await filtered({ term: { name: "x' OR 1=1; -- " } })).toEqual([]);
  expect(await rows({ right_filters: { filter_prefix: '3' } })).toEqual([['a', 'Cleo']]);
  const alone = await server.send('POST', '/db/v1/query', {
    table: 'p',
    foreign_sources: { p: { connection: 'crm', table: 'people' } },
    exclusion_query: { term: { name: 'Cleo' } },
    order_by: [{ field: 'age', desc: true }],
    limit: 1,
  });
  expect(alone.body).toMatchObject({ responses: [{ hits: { total: { value: 2 }, hits: [{ _id: '1' }] } }] });
  const slow = await ask({ strategy_hint: 'broadcast' }, { table: 'slow' });
  expect(slow.body).toMatchObject({ code: 'foreign_source_unavailable' });
  expect(await rows({})).toEqual(both);
});
