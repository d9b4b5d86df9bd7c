import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';
import { threadMs } from '../../support/thread-time.ts';

let server: TestServer;
const text = { type: 'string', 'x-service-types': ['keyword'] };
const table = (properties: object) => ({
  num_shards: 3,
  schema: { storage_mode: 'relational', document_schemas: { row: { schema: { type: 'object', properties } } } },
});

const sql = (statement: string, more: object = {}) =>
  server.send<Record<string, unknown>>('POST', '/db/v1/sql', { sql: statement, ...more });
const rows = async (statement: string, parameters?: unknown[]) => (await sql(statement, { parameters })).body.rows;

beforeAll(async () => {
  server = await startTestServer();
  const email = { ...text, unique: true };
  await server.send('POST', '/db/v1/tables/authors', table({ name: text, email, born: { type: 'integer' } }));
  const author = { ...text, references: { table: 'authors', on_delete: 'cascade' } };
  const books = table({ title: text, author, price: { type: 'number' }, sold: { type: 'boolean' } });
  await server.send('POST', '/db/v1/tables/books', books);
  await server.send('POST', '/db/v1/tables/plain', {});
  const authors = {
    '1a': { name: 'Ada', email: 'ada@x', born: 1815 },
    m: { name: 'Max', born: 9007199254740992 },
    z: { name: "O'Zoe", email: 'zoe@x' },
  };
  const inserts = {
    '0': { title: 'Engines', author: '1a', price: 0.1, sold: true },
    n: { title: 'Notes', author: '1a', price: 0.2, sold: false },
    '~': { title: 'None' },
  };
  const tables = { authors: { inserts: authors }, books: { inserts } };
  expect((await server.send('POST', '/db/v1/batch', { tables })).status).toBe(201);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('SQL over relational tables', () => {
  test('sees every row of every range with its typed columns, as it was committed', async () => {
    const { body } = await sql('SELECT _id, name, born, email FROM authors ORDER BY _id');
    expect(body).toEqual({
      columns: ['_id', 'name', 'born', 'email'],
      rows: [
        ['1a', 'Ada', 1815, 'ada@x'],
        ['m', 'Max', 9007199254740992, null],
        ['z', "O'Zoe", null, 'zoe@x'],
      ],
    });
  });

  test('joins, groups, and takes parameters', async () => {
    const statement =
      'SELECT a.name, count(b._id) AS books, sum(b.price) AS price FROM authors a LEFT JOIN books b ON b.author = a._id ' +
      'WHERE a.name <> ? GROUP BY a.name ORDER BY books DESC, a.name';
    expect(await rows(statement, ['Max'])).toEqual([
      ['Ada', 2, 0.1 + 0.2],
      ["O'Zoe", 0, null],
    ]);
    expect(await rows("SELECT ';' || name AS n FROM authors WHERE name = 'Max'; -- all; of it")).toEqual([[';Max']]);
    expect(await rows('WITH s AS (SELECT * FROM books WHERE sold = ?) SELECT title FROM s', [true])).toEqual([
      ['Engines'],
    ]);
  });

  test('shows integers that JSON would round as text', async () => {
    expect(await rows('SELECT born + 10 AS more FROM authors WHERE name = ?', ['Max'])).toEqual([['9007199254741002']]);
  });

  test('shows what is beyond the range of doubles as text, not as null', async () => {
    const statement =
      'SELECT sum(born) * 1e308 AS more, -1e308 * 10 AS less, max(price) AS none FROM authors, books WHERE 1';
    expect(await rows(statement)).toEqual([['Infinity', '-Infinity', 0.2]]);
  });

  test.each([1, 12])('has numbers of their columns, however a row has written them, over %p ranges', async (ranges) => {
    const name = `numbers${ranges}`;
    const properties = { i: { type: 'integer' }, n: { type: 'number' }, u: { type: 'integer', unique: true } };
    await server.send('POST', `/db/v1/tables/${name}`, { ...table(properties), num_shards: ranges });
    const inserts =
      '{"a": {"i": 7, "n": 7, "u": 1}, "b": {"i": 7.0, "n": 7.0}, "c": {"i": 70e-1, "n": 7.5}, "d": {"i": 1e22, "n": 1e22}, "e": {}}';
    const batch = `{"inserts": ${inserts}}`;
    expect((await server.send('POST', `/db/v1/tables/${name}/batch`, batch)).status).toBe(201);
    expect(await rows(`SELECT _id, i / 2 AS i, n / 2 AS n, typeof(i) AS t FROM ${name} ORDER BY _id`)).toEqual([
      ['a', 3, 3.5, 'integer'],
      ['b', 3, 3.5, 'integer'],
      ['c', 3, 3.75, 'integer'],
      ['d', 5e21, 5e21, 'real'],
      ['e', null, null, 'null'],
    ]);
    expect(await rows(`SELECT _id FROM ${name} WHERE u = 1 AND n = 7`)).toEqual([['a']]);
    expect(await rows(`SELECT _id FROM ${name} WHERE n = ? OR i = ? OR u = ?`, ['7', '7', '1'])).toEqual([]);
  });

  test('finds unique values and references by their indexes', async () => {
    const plan = JSON.stringify(await rows("EXPLAIN QUERY PLAN SELECT name FROM authors WHERE email = 'ada@x'"));
    expect(plan).toContain('USING INDEX column_email');
  });

  test.each([
    'DELETE FROM books',
    "INSERT INTO books VALUES ('x')",
    'WITH a AS (SELECT 1) DELETE FROM books',
    'PRAGMA database_list',
    "ATTACH '/etc/passwd' AS p",
    "SELECT 1; ATTACH '/etc/passwd' AS p; SELECT 2",
    'SELECT * FROM pragma_database_list',
    'SELECT * FROM sqlite_schema, authors',
    'SELECT * FROM temp.sqlite_master',
    "SELECT load_extension('x')",
    'SELECT * FROM request_answers, authors',
    'SELECT * FROM documents, authors',
    'SELECT * FROM sundew_range_1.documents, authors',
    'SELECT * FROM plain',
    'SELECT nothing FROM authors',
    'SELECT "nothing" FROM authors',
    'SELECT _id FROM authors WHERE "bron" = 1815',
    `SELECT _id FROM authors WHERE "a""b" = 'a"b'`,
    'SELECT 1 AS a, 2 AS a',
    'SELECT name FROM authors WHERE born = ?',
    'SELECT 1; SELECT 2',
    'SELECT _id FROM authors \0 WHERE born = 1815',
    'SELEC',
    '',
  ])('refuses %j and changes nothing', async (statement) => {
    const { status, body } = await sql(statement);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'invalid_query' });
    expect(JSON.stringify(body)).not.toContain(server.directory);
    expect(await rows('SELECT count(*) AS n FROM books')).toEqual([[3]]);
  });

  test.each([
    ['comments before what is no statement', `${'/**/'.repeat(40)}SELEC`],
    ['brackets that nothing closes', `SELECT ${'['.repeat(150_000)}`],
  ])('reads %s without holding others up', async (_, statement) => {
    const startedMs = threadMs();
    expect((await sql(statement)).body).toMatchObject({ code: 'invalid_query' });
    // By trying every way to read them it would be seconds.
    expect(threadMs() - startedMs).toBeLessThan(1_500);
  });

  test('may have comments before and in it', async () => {
    expect(await rows('-- one\n/* two; */ /**/ SELECT 1 -- three; four')).toEqual([[1]]);
  });

  test('has a bound for rows, and says so rather than answer less', async () => {
    const endless = 'WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n';
    expect((await sql(endless)).body).toMatchObject({ code: 'limit_exceeded' });
    expect(((await sql(`${endless} LIMIT 10000`)).body.rows as unknown[]).length).toBe(10_000);
  });

  test.each([
    ['a value that the process may not hold', 'SELECT length(randomblob(900000000)) AS n'],
    ['a value that is made of less', 'SELECT length(hex(zeroblob(250000000))) AS n'],
    ['a value that is longer than an answer', 'SELECT zeroblob(17000000) AS n'],
    ['a value that is longer than memory', 'SELECT zeroblob(900000000) AS n'],
  ])('has a bound for memory: %s', async (_, statement) => {
    expect((await sql(statement)).body).toMatchObject({ code: 'limit_exceeded' });
    expect(await rows('SELECT 1 AS n')).toEqual([[1]]);
  });

  test('reads of two tables whose names differ in case the one that is spelled', async () => {
    for (const [name, inserts] of Object.entries({ Odd: { big: { name: 'B' } }, odd: { small: { name: 's' } } })) {
      expect((await server.send('POST', `/db/v1/tables/${name}`, table({ name: text }))).status).toBe(200);
      expect((await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts })).status).toBe(201);
    }
    expect(await rows('SELECT _id, name FROM Odd')).toEqual([['big', 'B']]);
    expect(await rows('SELECT _id, name FROM "odd"')).toEqual([['small', 's']]);
    // Neither a part of another name, nor a text, nor a comment spells a table.
    expect(await rows("SELECT _id, 'odd' AS oddly /* odd */ FROM Odd -- odd")).toEqual([['big', 'odd']]);
    const both = 'SQL does not tell the tables "Odd" and "odd" apart';
    for (const statement of ['SELECT * FROM ODD', 'SELECT * FROM Odd, odd']) {
      expect((await sql(statement)).body).toMatchObject({
        code: 'invalid_query',
        error: expect.stringContaining(both),
      });
    }
  });

  test('reads tables beside one another that are copied, whatever they and their columns are called', async () => {
    const broad = (properties: object) => ({ ...table(properties), num_shards: 12 });
    const unique = { ...text, unique: true };
    await server.send('POST', '/db/v1/tables/broad', broad({ b_c: unique }));
    await server.send('POST', '/db/v1/tables/broad_b', broad({ c: unique }));
    await server.send('POST', '/db/v1/tables/column_broad_b_c', table({ c: text }));
    for (const name of ['broad', 'broad_b', 'column_broad_b_c']) {
      await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts: { [name]: {} } });
    }
    const statement = 'SELECT a._id AS a, b._id AS b, c._id AS c FROM broad a, "broad_b" b, column_broad_b_c AS "c"';
    expect(await rows(statement)).toEqual([['broad', 'broad_b', 'column_broad_b_c']]);
  });

  test('takes a word of its grammar for no table', async () => {
    for (const [name, inserts] of Object.entries({ Case: { big: { name: 'B' } }, case: { small: { name: 's' } } })) {
      expect((await server.send('POST', `/db/v1/tables/${name}`, table({ name: text }))).status).toBe(200);
      expect((await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts })).status).toBe(201);
    }
    const when = "case when name = 'B' then 1 else 0 end";
    expect(await rows(`SELECT ${when} AS n FROM "Case"`)).toEqual([[1]]);
    expect(await rows(`SELECT ${when.toUpperCase()} AS n FROM authors ORDER BY _id`)).toEqual([[0], [0], [0]]);
    for (const from of ['`case`', '[case]']) expect(await rows(`SELECT _id FROM ${from}`)).toEqual([['small']]);
    expect((await sql('SELECT 1 AS n FROM "CASE"')).body.error).toContain('does not tell the tables');
  });

  test('ends a statement that takes too long, and goes on with the next one', async () => {
    const slow = 'WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) AS m FROM n';
    const { status, body } = await sql(slow, { timeout_ms: 200 });
    expect({ status, code: body.code }).toEqual({ status: 504, code: 'query_timeout' });
    expect(await rows('SELECT count(*) AS n FROM authors')).toEqual([[3]]);
  });

  test('sees a write that was acknowledged before', async () => {
    for (let at = 0; at < 5; at += 1) {
      await server.send('POST', '/db/v1/tables/books/batch', { inserts: { [`w${at}`]: { title: `${at}` } } });
      expect(await rows('SELECT title FROM books WHERE _id = ?', [`w${at}`])).toEqual([[`${at}`]]);
    }
    await server.send('POST', '/db/v1/tables/books/batch', { deletes: [0, 1, 2, 3, 4].map((at) => `w${at}`) });
  });

  test('reads more ranges than can be open at a time, with their indexes', async () => {
    await server.send('POST', '/db/v1/tables/wide', {
      ...table({ n: { type: 'integer', unique: true }, b: { type: 'boolean' } }),
      num_shards: 20,
    });
    const keys = Array.from({ length: 600 }, (_, at) => `${'0123456789abcdefghijklmnopqrstuvwxyz'[at % 36]}${at}`);
    const inserts = Object.fromEntries(keys.map((key, n) => [key, { n, b: n % 2 === 0 }]));
    expect((await server.send('POST', '/db/v1/tables/wide/batch', { inserts })).status).toBe(201);
    await server.send('POST', '/db/v1/tables/wide/batch', { deletes: keys.slice(0, 10) });
    expect(await rows('SELECT count(*) AS c, min(n) AS l, max(n) AS g, sum(b) AS s FROM wide')).toEqual([
      [590, 10, 599, 295],
    ]);
    expect(
      await rows('SELECT w.n AS n, a.name AS name FROM wide w JOIN authors a ON a._id = ? WHERE w.n = 77', ['m']),
    ).toEqual([[77, 'Max']]);
    expect(JSON.stringify(await rows('EXPLAIN QUERY PLAN SELECT b FROM wide WHERE n = 5'))).toContain('n of wide');
    expect((await sql('SELECT * FROM documents, wide')).body).toMatchObject({ code: 'invalid_query' });
    expect((await sql('DELETE FROM wide')).body).toMatchObject({ code: 'invalid_query' });
  });

  test.each([3, 20])('reads all of %d ranges as of one instant, while rows move between them', async (num_shards) => {
    const name = `purses${num_shards}`;
    await server.send('POST', `/db/v1/tables/${name}`, { ...table({ coins: { type: 'integer' } }), num_shards });
    const keys = Array.from('0369bcehkmoqsuwz~');
    const purses = Object.fromEntries(keys.map((key) => [key, { coins: 10 }]));
    expect((await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts: purses })).status).toBe(201);
    let isOver = false;
    const move = async () => {
      for (let at = 0; !isOver; at += 1) {
        const [from, to] = [keys[at % keys.length], keys[(at * 7 + 3) % keys.length]];
        if (from === to) continue;
        const step = (key: string | undefined, value: number) => ({
          key,
          operations: [{ op: '$inc', path: 'coins', value }],
        });
        await server.send('POST', `/db/v1/tables/${name}/batch`, { transforms: [step(from, -1), step(to, 1)] });
      }
    };
    const moving = move();
    for (let turn = 0; turn < 25; turn += 1) {
      expect(await rows(`SELECT sum(coins) AS all_coins, count(*) AS c FROM ${name}`)).toEqual([[170, 17]]);
    }
    isOver = true;
    await moving;
  });
});
