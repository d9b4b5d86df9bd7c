import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { table as grant, startGuardedServer } from '../../support/access.ts';
import { Postgres } from '../../support/elsewhere/postgres.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { type Answer, startTestServer, type TestServer } from '../../support/test-server.ts';

setDefaultTimeout(120_000);

/** As it may be: some of it would end a password in an address. */
const readerPassword = 'reader-canary-7c1f/?#%@:';
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

/** More rows than one statement asks for. */
const many = `CREATE TABLE many (id integer PRIMARY KEY, word text)`;
const manyRows = 'SELECT n, CAST(n * 37 % 1000 AS text) FROM numbers';

/** Keys beyond 2^53, and others that look like numbers. */
const ledger = `
  CREATE TABLE rates (id double precision PRIMARY KEY, note text);
  INSERT INTO rates VALUES (2, 'two'), (0.25, 'a quarter'), (1e30, 'many');
  CREATE TABLE ledger (id bigint PRIMARY KEY, ref bigint, note text);
  INSERT INTO ledger VALUES
    (7, 1, 'seven'), (1234567890123456, 2, 'sixteen digits'), (1234567890123456789, 987654321987654321, 'nineteen');`;

function configuration(more = ''): string {
  return `
connections:
  crm:
    kind: database
    database:
      provider: postgres
      dsn: "postgres://reader:\${secret:crm}@127.0.0.1:${postgres.port}/postgres"
      tables: [people, many, odd, ledger, rates, sales.orders, slow, missing]
      statement_timeout_ms: 1000
  file:
    kind: database
    database: {provider: sqlite, file: "${sqliteFile}", tables: [people, many, ledger, rates, dirty]}
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
    many,
    `WITH numbers AS (SELECT generate_series(1, 1000) AS n) INSERT INTO many ${manyRows}`,
    ledger,
    `CREATE TABLE odd (id real PRIMARY KEY, ints int[], reals real[], at timestamp, code char(3))`,
    `INSERT INTO odd VALUES (0.1, '{1,2}', '{0.1}', 'infinity', 'x')`,
    `INSERT INTO odd (id) VALUES (16777216), (1e30)`,
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
  sqlite.run(ledger);
  sqlite.run(many);
  const numbers = 'numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)';
  sqlite.run(`WITH RECURSIVE ${numbers} INSERT INTO many ${manyRows}`);
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

  test('with more rows than one statement asks for is read whole', async () => {
    const on = { left_field: 'at', right_field: 'word' };
    const answer = await ask({ on, join_type: 'right' }, { connection, table: 'many' }, { limit: 2_000 });
    const found = rows(answer).map(([, source]) => source);
    const numbers = Array.from({ length: 1_000 }, (_, at) => at + 1);
    const expected = numbers.map((id) => ({ 'p._id': `${id}`, 'p.id': id, 'p.word': `${(id * 37) % 1_000}` }));
    expect(found).toEqual(expected.sort((left, right) => (left['p._id'] < right['p._id'] ? -1 : 1)));
  });

  test('is joined by integers beyond 2^53, which are texts', async () => {
    await server.send('POST', '/db/v1/tables/entries');
    const inserts = {
      a: { of: '1234567890123456789', ref: '987654321987654321' },
      b: { of: 1234567890123456 },
      c: { of: '7' },
      d: { of: '007' },
      e: { of: '99999999999999999999999' },
    };
    await server.send('POST', '/db/v1/tables/entries/batch', { inserts, sync_level: 'full_index' });
    for (const strategy_hint of ['broadcast', 'index_lookup']) {
      const by = async (left_field: string, right_field: string) => {
        const join = { on: { left_field, right_field }, strategy_hint };
        const found = rows(await ask(join, { connection, table: 'ledger' }, { table: 'entries' }));
        return found.map(([key, source]) => [key, source['p.note']]);
      };
      expect(await by('of', '_id')).toEqual([
        ['a', 'nineteen'],
        ['b', 'sixteen digits'],
        ['c', 'seven'],
      ]);
      expect(await by('ref', 'ref')).toEqual([['a', 'nineteen']]);
    }
    const notes = async (filter_query: object) => {
      const join = {
        join_type: 'right',
        on: { left_field: '_id', right_field: 'note' },
        right_filters: { filter_query },
      };
      return rows(await ask(join, { connection, table: 'ledger' })).map(([, source]) => source['p.note']);
    };
    expect(await notes({ ids: ['1234567890123456789', '007', 'x'] })).toEqual(['nineteen']);
    expect(await notes({ term: { ref: '987654321987654321' } })).toEqual(['nineteen']);
    expect(await notes({ range: { id: { gte: '1234567890123456789' } } })).toEqual(['nineteen']);
    expect(await notes({ range: { id: { lt: '1234567890123456789' } } })).toEqual(['sixteen digits', 'seven']);
  });

  test.each(['broadcast', 'index_lookup'])('is joined by keys that are no integers: %s', async (strategy_hint) => {
    await server.send('POST', '/db/v1/tables/changes');
    const inserts = { a: { by: 0.25 }, b: { by: 2 }, c: { by: 1e30 }, d: { by: '2.0' }, e: { by: 'x' } };
    await server.send('POST', '/db/v1/tables/changes/batch', { inserts, sync_level: 'full_index' });
    const join = { on: { left_field: 'by', right_field: '_id' }, strategy_hint };
    const found = rows(await ask(join, { connection, table: 'rates' }, { table: 'changes' }));
    expect(found.map(([key, source]) => [key, source['p.note']])).toEqual([
      ['a', 'a quarter'],
      ['b', 'two'],
      ['c', 'many'],
    ]);
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

describe.each(['crm', 'file'])('a query of a foreign table of the connection %s', (connection) => {
  const query = (more: object, source: object = {}) =>
    server.send('POST', '/db/v1/query', {
      table: 'p',
      foreign_sources: { p: { connection, table: 'people', ...source } },
      ...more,
    });
  const page = async (more: object, source: object = {}) => {
    const { status, body } = await query(more, source);
    expect(status, JSON.stringify(body)).toBe(200);
    const [{ hits }] = body.responses as [
      {
        hits: { total: { value: number; relation: string }; hits: { _id: string; _score: number; _source: Source }[] };
      },
    ];
    expect(hits.total.relation).toBe('exact');
    return { total: hits.total.value, keys: hits.hits.map(({ _id }) => _id), rows: hits.hits };
  };

  test('answers rows by their keys, with the members that are asked for', async () => {
    const { total, keys, rows: found } = await page({});
    expect({ total, keys }).toEqual({ total: 3, keys: ['1', '2', '3'] });
    expect(found[0]).toMatchObject({ _score: 1, _source: { id: 1, name: 'Ada', age: 36, balance: 10.5 } });
    expect((await page({ fields: ['name'], limit: 1 })).rows).toEqual([
      { _id: '1', _score: 1, _source: { name: 'Ada' } },
    ]);
    expect((await page({ limit: 1 }, { columns: ['age'] })).rows[0]?._source).toEqual({ age: 36 });
  });

  test.each([
    [{ filter_query: { range: { age: { gte: 40 } } } }, 1, ['3']],
    [{ exclusion_query: { range: { age: { gte: 40 } } } }, 2, ['1', '2']],
    [{ filter_query: { exists: { field: 'age' } }, exclusion_query: { term: { name: 'Ada' } } }, 1, ['3']],
    [{ filter_query: { term: { name: "'; DROP TABLE people; --" } } }, 0, []],
    [{ filter_prefix: '2' }, 1, ['2']],
    [{ filter_query: { terms: { _id: [1, '3'] } } }, 2, ['1', '3']],
    [{ limit: 2 }, 3, ['1', '2']],
    [{ limit: 2, offset: 2 }, 3, ['3']],
    [{ limit: 2, offset: 7 }, 3, []],
    [{ limit: 0 }, 3, []],
    [{ count: true, filter_query: { ids: ['1', '3'] } }, 2, []],
    [{ order_by: [{ field: 'age', desc: true }] }, 3, ['3', '1', '2']],
    [{ order_by: [{ field: 'age' }] }, 3, ['1', '3', '2']],
    [
      {
        order_by: [
          { field: 'active', desc: true },
          { field: '_id', desc: true },
        ],
        limit: 2,
      },
      3,
      ['3', '1'],
    ],
  ])('has the database find, order and count: %j', async (more, total, keys) => {
    expect(await page(more)).toMatchObject({ total, keys });
  });

  test('is refused for what only an index answers, by name', async () => {
    for (const more of [
      { full_text_search: { match: { name: 'Ada' } } },
      { aggregations: { names: { type: 'terms', field: 'name' } } },
      { join: { right_table: 'visits', on: { left_field: 'id', right_field: 'person' } } },
      { search_after: ['1', 'x'], order_by: [{ field: '_id' }] },
      { profile: true },
    ]) {
      const { status, body } = await query(more);
      expect([status, body.code]).toEqual([400, 'invalid_query']);
      expect(body.error).toContain(`"${Object.keys(more)[0]}" cannot be asked of a foreign table`);
    }
    for (const more of [
      { filter_query: { match: { name: 'Ada' } } },
      { order_by: [{ field: 'name"; --' }] },
      { order_by: [{ field: '_score' }] },
    ])
      expect((await query(more)).body).toMatchObject({ code: 'invalid_query' });
    expect((await query({}, { key: 'active' })).body).toMatchObject({ code: 'invalid_query' });
  });
});

test('a foreign table is asked by the table of the body alone: an address names a table of the database', async () => {
  const foreign_sources = { p: { connection: 'file', table: 'people' } };
  expect((await server.send('POST', '/db/v1/tables/p/query', { foreign_sources })).status).toBe(404);
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

test.each(['broadcast', 'index_lookup'])(
  'arrays, short numbers, endless times, padded texts: %s',
  async (strategy_hint) => {
    await server.send('POST', '/db/v1/tables/readings');
    const inserts = { a: { of: 0.1, code: 'x  ' }, b: { of: 16_777_216 }, c: { of: 1e30 }, d: { of: 0.3 } };
    await server.send('POST', '/db/v1/tables/readings/batch', { inserts, sync_level: 'full_index' });
    for (const right_field of ['id', '_id']) {
      const join = { on: { left_field: 'of', right_field }, strategy_hint };
      const found = rows(await ask(join, { table: 'odd' }, { table: 'readings' }));
      const keys = ['0.1', '16777216', '1e+30'];
      expect([right_field, found.map(([, each]) => each['p._id'])]).toEqual([right_field, keys]);
      expect(found[0]?.[1]).toMatchObject({
        'p.id': 0.1,
        'p.code': 'x  ',
        'p.ints': [1, 2],
        'p.reals': [0.1],
        'p.at': 'Infinity',
      });
    }
    const byCode = { on: { left_field: 'code', right_field: 'code' }, strategy_hint };
    expect(rows(await ask(byCode, { table: 'odd' }, { table: 'readings' })).map(([key]) => key)).toEqual(['a']);
    const of = async (filter_query: object) => {
      const on = { left_field: '_id', right_field: 'id' };
      const found = rows(await ask({ on, join_type: 'right', right_filters: { filter_query } }, { table: 'odd' }));
      return found.map(([, each]) => each['p._id']);
    };
    expect(await of({ term: { id: 0.1 } })).toEqual(['0.1']);
    expect(await of({ range: { id: { gte: 0.1, lt: 1e300 } } })).toHaveLength(3);
    expect(await of({ range: { id: { lt: 0.1 } } })).toEqual([]);
    expect(await of({ ids: ['0.1', 'x'] })).toEqual(['0.1']);
  },
);

test('a text in a column of numbers, which SQLite keeps, is found as it is in the whole table', async () => {
  const sqlite = new Database(sqliteFile);
  sqlite.run("CREATE TABLE dirty (id INT UNIQUE); INSERT INTO dirty VALUES (7), ('N/A')");
  sqlite.close();
  await server.send('POST', '/db/v1/tables/gaps');
  const inserts = { a: { of: 'N/A' }, b: { of: 7 } };
  await server.send('POST', '/db/v1/tables/gaps/batch', { inserts, sync_level: 'full_index' });
  for (const right_field of ['id', '_id']) {
    for (const strategy_hint of ['broadcast', 'index_lookup']) {
      const join = { on: { left_field: 'of', right_field }, strategy_hint };
      const found = rows(await ask(join, { connection: 'file', table: 'dirty' }, { table: 'gaps' }));
      expect(found.map(([, each]) => each['p.id'])).toEqual(['N/A', 7]);
    }
  }
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
  const alone = { table: 'p', foreign_sources: query.foreign_sources };
  expect((await guarded.as(without, 'POST', '/db/v1/query', alone)).body).toMatchObject({ code: 'forbidden' });
  const granted = await guarded.user('granted', [grant('visits', 'read'), grant('crm/people', 'read')]);
  expect((await guarded.as(granted, 'POST', '/db/v1/query', query)).status).toBe(200);
  expect((await guarded.as(granted, 'POST', '/db/v1/query', alone)).status).toBe(200);
  await guarded.asAdmin('PUT', '/auth/v1/users/granted/row-filters/*', { match_all: {} });
  expect((await guarded.as(granted, 'POST', '/db/v1/query', query)).body).toMatchObject({ code: 'forbidden' });
  expect((await guarded.as(granted, 'POST', '/db/v1/query', alone)).body).toMatchObject({ code: 'forbidden' });
});

test('the list of connections tells whether each database answers and has its tables', async () => {
  const { body } = await server.send('GET', '/db/v1/connections?types=database&include=status');
  const told = (body.connections as { id: string; status: string; error: string | null }[]).map(
    ({ id, status, error }) => [id, status, error],
  );
  expect(told).toEqual([
    ['crm', 'error', 'the database has no table "missing", or its user may not read it'],
    ['file', 'connected', null],
    ['silent', 'error', 'the database "silent" cannot be reached, or refuses the login'],
  ]);
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
      tables: ['people', 'many', 'odd', 'ledger', 'rates', 'sales.orders', 'slow', 'missing'],
      statement_timeout_ms: 1_000,
    },
  });
  expect(JSON.stringify(body)).not.toContain('reader');
});
