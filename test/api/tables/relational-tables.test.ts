import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;

const columns = (properties: object, required: string[] = []) => ({
  storage_mode: 'relational',
  document_schemas: { row: { schema: { type: 'object', properties, required } } },
});
const text = { type: 'string', 'x-service-types': ['keyword'] };
const naming = (table: string, on_delete?: string) => ({ ...text, references: { table, on_delete } });

const create = (name: string, schema: object, more: object = {}) =>
  server.send('POST', `/db/v1/tables/${name}`, { num_shards: 3, schema, ...more });
const write = (table: string, body: object) => server.send('POST', `/db/v1/tables/${table}/batch`, body);
const row = async (table: string, key: string) => {
  const { status, body } = await server.send<Record<string, unknown>>('GET', `/db/v1/tables/${table}/documents/${key}`);
  if (status === 404) return undefined;
  const { _timestamp, ...document } = body;
  return document;
};

beforeAll(async () => {
  server = await startTestServer();
  const authors = columns({ email: { ...text, unique: true }, name: text, born: { type: 'integer' } }, ['name']);
  expect((await create('authors', authors)).body).toMatchObject({ name: 'authors' });
  const books = columns({ title: text, author: naming('authors', 'cascade'), editor: naming('authors', 'set_null') });
  expect((await create('books', books)).status).toBe(200);
  expect((await create('loans', columns({ book: naming('books') }, ['book']))).status).toBe(200);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('relational tables', () => {
  test.each([
    ['a wrong type', { name: 'A', born: 'x' }],
    ['a required column that is absent', { email: 'a@b' }],
    ['a required column that is null', { name: null }],
    ['a column that is not declared', { name: 'A', other: 1 }],
  ])('refuse %s', async (_, document) => {
    const answer = await write('authors', { inserts: { bad: document } });
    expect(answer.body).toMatchObject({ code: 'validation_failed' });
    expect(await row('authors', 'bad')).toBeUndefined();
  });

  test('keep unique values unique over all ranges, also when a value moves within one write', async () => {
    const inserts = { '1': { name: 'Ada', email: 'ada@x' }, z: { name: 'Zoe', email: 'zoe@x' } };
    expect((await write('authors', { inserts })).status).toBe(201);
    const taken = await write('authors', { inserts: { m: { name: 'Max', email: 'ada@x' } } });
    expect(taken.status).toBe(409);
    expect(taken.body).toMatchObject({
      code: 'constraint_violation',
      error: 'the row "m" of "authors" is refused: "email" is unique and another row has the same',
    });
    const swapped = { '1': { name: 'Ada', email: 'zoe@x' }, z: { name: 'Zoe', email: 'ada@x' } };
    expect((await write('authors', { inserts: swapped })).status).toBe(201);
    const twice = { n: { name: 'N' }, o: { name: 'O' } };
    expect((await write('authors', { inserts: twice })).status).toBe(201);
  });

  test('let rows name only rows that are there, written by the same request too', async () => {
    const missing = await write('books', { inserts: { b: { title: 'B', author: 'nobody' } } });
    expect(missing.body).toMatchObject({
      code: 'constraint_violation',
      error: 'the row "b" of "books" is refused: "author" names a row that "authors" does not have',
    });
    const both = {
      tables: {
        authors: { inserts: { new: { name: 'New' } } },
        books: { inserts: { b: { title: 'B', author: 'new' } } },
      },
    };
    expect((await server.send('POST', '/db/v1/batch', both)).status).toBe(201);
  });

  test('delete, change or keep the rows that name a row which is deleted', async () => {
    const authors = { gone: { name: 'Gone' }, stays: { name: 'Stays' } };
    await write('authors', { inserts: authors });
    const books = {
      '0': { title: 'by', author: 'gone' },
      m: { title: 'edited by', author: 'stays', editor: 'gone' },
      '~': { title: 'by too', author: 'gone', editor: 'gone' },
    };
    await write('books', { inserts: books });
    await write('loans', { inserts: { l: { book: '~' } } });
    const kept = await write('authors', { deletes: ['gone'] });
    expect(kept.body).toMatchObject({
      code: 'constraint_violation',
      error: 'the row "~" of "books" is refused: rows of "loans" name it in "book"',
    });
    expect(await row('books', '0')).toEqual({ title: 'by', author: 'gone' });
    await write('loans', { deletes: ['l'] });
    const deleted = await write('authors', { deletes: ['gone'], sync_level: 'full_index' });
    expect(deleted.body).toMatchObject({ status: 'committed', deleted: 1 });
    expect([await row('books', '0'), await row('books', '~')]).toEqual([undefined, undefined]);
    expect(await row('books', 'm')).toEqual({ title: 'edited by', author: 'stays' });
  });

  test('are found by queries as other tables are', async () => {
    await write('authors', { inserts: { q: { name: 'Quine', email: 'q@x', born: 1908 } }, sync_level: 'full_index' });
    const query = { filter_query: { range: { born: { gte: 1900 } } }, fields: ['name'] };
    const { body } = await server.send<{ responses: [{ hits: { hits: { _id: string }[] } }] }>(
      'POST',
      '/db/v1/tables/authors/query',
      query,
    );
    expect(body.responses[0].hits.hits.map(({ _id }) => _id)).toEqual(['q']);
  });

  test('take transforms, and check what they leave as they check a row', async () => {
    const person = {
      name: text,
      age: { type: 'integer', minimum: 0 },
      boss: naming('people'),
      email: { ...text, unique: true },
    };
    await create('people', columns(person, ['name']));
    await write('people', { inserts: { a: { name: 'A', age: 1 }, z: { name: 'Z', email: 'z@x' } } });
    const transform = (key: string, op: string, path: string, value?: unknown, upsert = false) =>
      write('people', { transforms: [{ key, operations: [{ op, path, value }], upsert }] });
    expect((await transform('a', '$inc', 'age', 4)).body).toMatchObject({ transformed: 1 });
    expect((await transform('a', '$set', 'boss', 'z')).body).toMatchObject({ transformed: 1 });
    const before = { name: 'A', age: 5, boss: 'z' };
    expect(await row('people', 'a')).toEqual(before);
    const codes = [
      (await transform('a', '$set', 'age', 'old')).body,
      (await transform('a', '$inc', 'age', -6)).body,
      (await transform('a', '$unset', 'name')).body,
      (await transform('a', '$set', 'other', 1)).body,
      (await transform('n', '$set', 'age', 1, true)).body,
      (await transform('a', '$set', 'boss', 'nobody')).body,
      (await transform('a', '$set', 'email', 'z@x')).body,
    ].map((body) => (body as { code?: string }).code);
    expect(codes).toEqual([...Array(5).fill('validation_failed'), 'constraint_violation', 'constraint_violation']);
    expect(await row('people', 'a')).toEqual(before);
    expect(await row('people', 'n')).toBeUndefined();
  });

  test('lose no transform of many at a time', async () => {
    await write('people', { inserts: { c: { name: 'C', age: 0 } } });
    const increment = { transforms: [{ key: 'c', operations: [{ op: '$inc', path: 'age', value: 1 }] }] };
    const answers = await Promise.all(Array.from({ length: 40 }, () => write('people', increment)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(await row('people', 'c')).toEqual({ name: 'C', age: 40 });
  });

  describe('whose columns change', () => {
    const change = (properties: object, required: string[] = []) =>
      server.send<{ code?: string; error?: string }>(
        'PUT',
        '/db/v1/tables/notes/schema',
        columns(properties, required),
      );

    beforeAll(async () => {
      await create('notes', columns({ title: text, tag: text, writer: text }));
      const inserts = { '0': { title: 'one', tag: 'x', writer: 'people-a' }, '~': { title: 'two', tag: 'x' } };
      expect((await write('notes', { inserts })).status).toBe(201);
    });

    test.each([
      ['one that rows have goes', { title: text, tag: text }, [], 'writer'],
      ['one becomes required that a row lacks', { title: text, tag: text, writer: text }, ['writer'], 'writer'],
      ['one becomes another type', { title: { type: 'integer' }, tag: text, writer: text }, [], 'title'],
      [
        'one becomes unique that two rows share',
        { title: text, tag: { ...text, unique: true }, writer: text },
        [],
        'unique',
      ],
      ['one names rows that are not there', { title: text, tag: text, writer: naming('people') }, [], 'does not have'],
    ])('are refused when %s', async (_, properties, required, word) => {
      const { status, body } = await change(properties, required);
      expect({ status, code: body.code }).toEqual({ status: 409, code: 'constraint_violation' });
      expect(body.error).toContain(word);
      expect((await write('notes', { inserts: { still: { title: 'x', writer: 'w' } } })).status).toBe(201);
      await write('notes', { deletes: ['still'] });
    });

    test('hold for every row from then on', async () => {
      const unset = { key: '0', operations: [{ op: '$unset', path: 'writer' }] };
      await write('people', { inserts: { p: { name: 'P' } } });
      await write('notes', { transforms: [unset] });
      const title = { ...text, unique: true };
      const stars = { type: 'integer' };
      const { status } = await change({ title, tag: text, stars, by: naming('people', 'cascade') }, ['title']);
      expect(status).toBe(200);
      expect((await write('notes', { inserts: { a: { title: 'three', stars: 5, by: 'p' } } })).status).toBe(201);
      const refused = [{ title: 'one' }, { tag: 'x' }, { title: 'four', by: 'q' }, { title: 'five', writer: 'w' }];
      for (const document of refused) {
        expect((await write('notes', { inserts: { b: document } })).status).toBeGreaterThanOrEqual(400);
      }
      const { body } = await server.send<{ rows: unknown[] }>('POST', '/db/v1/sql', {
        sql: 'SELECT _id, title, stars FROM notes ORDER BY _id',
      });
      expect(body.rows).toEqual([
        ['0', 'one', null],
        ['a', 'three', 5],
        ['~', 'two', null],
      ]);
      await write('people', { deletes: ['p'] });
      expect(await row('notes', 'a')).toBeUndefined();
    });

    test('let no write in between that the new ones would refuse', async () => {
      await create('races', columns({ n: { type: 'integer' } }));
      const unique = columns({ n: { type: 'integer', unique: true } });
      const writes = Array.from({ length: 30 }, (_, at) => write('races', { inserts: { [`k${at}`]: { n: at % 29 } } }));
      const changed = await server.send('PUT', '/db/v1/tables/races/schema', unique);
      const written = (await Promise.all(writes)).filter(({ status }) => status === 201).length;
      // Either the change saw both rows of a value, or the second of them was refused.
      expect([changed.status, written]).toEqual(changed.status === 200 ? [200, 29] : [409, 30]);
    });

    test('cannot become documents without columns', async () => {
      const { body } = await server.send('PUT', '/db/v1/tables/notes/schema', {});
      expect(body).toMatchObject({ code: 'invalid_schema' });
    });
  });

  test('refuse what they cannot check yet, by name', async () => {
    const graph = await server.send('POST', '/db/v1/tables/authors/indexes/g', { type: 'graph' });
    expect(graph.body).toMatchObject({ code: 'invalid_request' });
  });

  test('are not dropped while others name their rows', async () => {
    expect((await server.send('DELETE', '/db/v1/tables/authors')).body).toMatchObject({ code: 'constraint_violation' });
  });

  test.each([0, 1, 2, 3])('are not dropped while a table that names their rows is made (%i)', async (turns) => {
    const [named, other] = [`named${turns}`, `other${turns}`];
    await create(named, columns({ a: text }));
    const made = create(other, columns({ a: naming(named) }));
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const dropped = server.send('DELETE', `/db/v1/tables/${named}`);
    const isMade = (await made).status === 200;
    expect((await dropped).body?.code).toBe(isMade ? 'constraint_violation' : undefined);
  });

  test.each([
    [columns({}), 'columns'],
    [columns({ a: { type: 'object' } }), 'type'],
    [columns({ 'a b': text }), 'letters'],
    [columns({ a: text, A: text }), 'case'],
    [columns({ a: { type: 'number', unique: true } }), 'unique'],
    [columns({ a: { type: 'integer', references: { table: 'authors' } } }), 'must be a string'],
    [columns({ a: naming('authors', 'set_null') }, ['a']), 'set to null'],
    [columns({ a: naming('authors', 'drop') }), 'on_delete'],
    [{ ...columns({ a: text }), ttl: { duration: '1h' } }, 'ttl'],
    [{ ...columns({ a: text }), enforce_types: false }, 'enforce_types'],
  ])('refuse the schema %j', async (schema, word) => {
    const { body } = await create('refused', schema);
    expect(body).toMatchObject({ code: 'invalid_schema', error: expect.stringContaining(word) });
  });

  test('name only relational tables that are there', async () => {
    expect((await create('refused', columns({ a: naming('nowhere') }))).body).toMatchObject({
      code: 'table_not_found',
    });
    await server.send('POST', '/db/v1/tables/plain');
    expect((await create('refused', columns({ a: naming('plain') }))).body).toMatchObject({ code: 'invalid_schema' });
  });
});
