import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sql } from '../../../src/cli/sql.ts';
import { runCommand } from '../../support/command-line.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;

const run = (...words: string[]) => runCommand({ sql: async () => sql }, ['sql', ...words]);

beforeAll(async () => {
  server = await startTestServer();
  const properties = { name: { type: 'string' }, n: { type: 'integer' } };
  const schema = { storage_mode: 'relational', document_schemas: { row: { schema: { type: 'object', properties } } } };
  await server.send('POST', '/db/v1/tables/rows', { schema });
  const inserts = { a: { name: 'one\ttwo', n: 1 }, b: { n: 2 }, c: { name: '3' } };
  expect((await server.send('POST', '/db/v1/tables/rows/batch', { inserts })).status).toBe(201);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('sundew sql', () => {
  test('prints columns with tabs between them, or an object a row', async () => {
    const url = server.url;
    const statement = 'SELECT _id, name, n FROM rows ORDER BY _id';
    expect(await run(statement, '--url', url)).toEqual({
      code: 0,
      printed: '_id\tname\tn\na\tone\\ttwo\t1\nb\t\t2\nc\t3\t\n',
      explained: '',
    });
    const { printed } = await run('SELECT n FROM rows WHERE n = ? OR name = ?', '2', '"3"', '--url', url, '--json');
    expect(printed).toBe('{"n":2}\n{"n":null}\n');
  });

  test('rounds no parameter', async () => {
    const long = await run('SELECT n FROM rows WHERE n < ?', '9007199254740993', '--url', server.url);
    expect([long.code, long.explained]).toEqual([1, expect.stringMatching(/^number_out_of_range: /)]);
  });

  test('says what was refused, and ends with 1', async () => {
    const { code, printed, explained } = await run('DELETE FROM rows', '--url', server.url);
    expect({ code, printed }).toEqual({ code: 1, printed: '' });
    expect(explained).toContain('invalid_query: sql: only SELECT');
    expect((await run()).code).toBe(2);
  });

  test('reads a directory that no server uses as the server did, and leaves one that a server has alone', async () => {
    using directory = new TemporaryDirectory();
    const offline = ['--data-dir', directory.path];
    const schema = {
      storage_mode: 'relational',
      document_schemas: { book: { schema: { type: 'object', properties: { title: { type: 'string' } } } } },
    };
    const statement = 'SELECT _id, title FROM books ORDER BY _id';
    const answer = { code: 0, printed: '_id\ttitle\nb1\tEngines\nz9\tNotes\n', explained: '' };
    {
      await using running = await startTestServer({ directory: directory.path });
      await running.send('POST', '/db/v1/tables/books', { schema, num_shards: 2 });
      const inserts = { z9: { title: 'Notes' }, b1: { title: 'Engines' } };
      expect((await running.send('POST', '/db/v1/tables/books/batch', { inserts })).status).toBe(201);
      expect(await run(statement, '--url', running.url)).toEqual(answer);
      const refused = await run(statement, ...offline);
      expect({ code: refused.code === 0, printed: refused.printed }).toEqual({ code: false, printed: '' });
      expect(refused.explained).toContain(directory.path);
    }
    expect(await run(statement, ...offline)).toEqual(answer);
    const absent = await run('SELECT * FROM nothing', ...offline);
    expect(absent).toMatchObject({ code: 1, printed: '' });
    // A command that keeps the directory would shut the next server out of it.
    await using again = await startTestServer({ directory: directory.path });
    expect(await run(statement, '--url', again.url)).toEqual(answer);
  });
});
