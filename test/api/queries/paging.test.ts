import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Hit {
  _id: string;
  _sort: unknown[];
  _source: Record<string, unknown>;
}
interface Result {
  hits: { total: { value: number; relation: string }; hits: Hit[] };
  partial?: boolean;
}

const documentCount = 250;
let server: TestServer;

/** Few distinct years, so that most documents tie; some have none. */
function documentAt(at: number): Record<string, unknown> {
  const tags = ['winter', 'green', 'hot'];
  return {
    title: at % 2 === 0 ? 'Leek soup' : 'Beef stew',
    ...(at % 7 ? { year: 2000 + (at % 5) } : {}),
    tag: tags[at % 3],
  };
}

function keyAt(at: number): string {
  return `${'09akluvz'[at % 8]}d${String((at * 7919) % 100_003).padStart(6, '0')}`;
}

async function insert(table: string, inserts: Record<string, unknown>): Promise<void> {
  const answer = await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level: 'full_text' });
  expect(answer.status).toBe(201);
}

async function ask(table: string, request: object): Promise<Result> {
  const answer = await server.send<{ responses: Result[] }>('POST', `/db/v1/tables/${table}/query`, request);
  expect(answer).toMatchObject({ status: 200 });
  const [result] = answer.body.responses;
  if (!result) throw new Error('no result');
  return result;
}

async function refusal(table: string, request: object): Promise<string> {
  const answer = await server.send<{ code: string; error: string }>('POST', `/db/v1/tables/${table}/query`, request);
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
  return answer.body.error;
}

beforeAll(async () => {
  server = await startTestServer();
  const documents = Object.fromEntries(Array.from({ length: documentCount }, (_, at) => [keyAt(at), documentAt(at)]));
  for (const [name, shards] of [
    ['one', 1],
    ['four', 4],
  ] as const) {
    expect((await server.send('POST', `/db/v1/tables/${name}`, { num_shards: shards })).status).toBeLessThan(300);
    await insert(name, documents);
  }
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const orders = [
  [{ field: 'year' }],
  [{ field: 'year', desc: true }, { field: 'tag' }],
  [{ field: 'tag' }, { field: '_id', desc: true }],
  [{ field: '_score', desc: true }],
];

describe('pages by cursor', () => {
  for (const table of ['one', 'four']) {
    for (const order_by of orders) {
      test(`go forwards and back over all of table ${table} by ${JSON.stringify(order_by)}`, async () => {
        const request = { full_text_search: { query: 'soup OR stew' }, order_by, fields: ['year'] };
        const whole = (await ask(table, { ...request, limit: 1000 })).hits.hits.map((hit) => hit._id);
        expect(whole).toHaveLength(documentCount);
        const forwards: Hit[] = [];
        let cursor: object = {};
        for (;;) {
          const { hits } = await ask(table, { ...request, ...cursor, limit: 40 });
          expect(hits.total).toEqual({ value: documentCount, relation: 'exact' });
          const last = hits.hits.at(-1);
          if (!last) break;
          forwards.push(...hits.hits);
          cursor = { search_after: last._sort };
        }
        expect(forwards.map((hit) => hit._id)).toEqual(whole);
        const middle = forwards[100];
        const before = await ask(table, { ...request, search_before: middle?._sort, limit: 30 });
        expect(before.hits.hits.map((hit) => hit._id)).toEqual(whole.slice(70, 100));
        const atStart = await ask(table, { ...request, search_before: forwards[5]?._sort, limit: 30 });
        expect(atStart.hits.hits.map((hit) => hit._id)).toEqual(whole.slice(0, 5));
      });
    }
  }

  test('show typed values, and one string that seals them', async () => {
    const { hits } = await ask('one', { order_by: [{ field: 'year' }, { field: 'tag' }], limit: 1 });
    expect(hits.hits[0]?._sort).toEqual([2000, 'green', expect.any(String)]);
    const last = await ask('one', { order_by: [{ field: 'year' }], limit: 1, offset: documentCount - 1 });
    expect(last.hits.hits[0]?._sort).toEqual([null, expect.any(String)]);
  });

  test('refuse what was not sealed for this order and table', async () => {
    const order_by = [{ field: 'year' }];
    const [hit] = (await ask('one', { order_by, limit: 1 })).hits.hits;
    const [year, sealed] = (hit?._sort ?? []) as [number, string];
    const flipped = `${sealed.slice(0, -1)}${sealed.endsWith('A') ? 'B' : 'A'}`;
    const asked = (request: object) => refusal('one', { order_by, ...request });
    expect(await asked({ search_after: [year + 1, sealed] })).toContain('search_after');
    expect(await asked({ search_after: [year, `A${sealed}`] })).toContain('search_after');
    expect(await asked({ search_after: [year, flipped.slice(0, 20)] })).toContain('search_after');
    expect(await asked({ search_after: [year, ''] })).toContain('search_after');
    expect(await asked({ search_before: [year] })).toContain('search_before');
    expect(await asked({ search_before: 'x' })).toContain('search_before');
    expect(await asked({ search_after: [year, sealed], order_by: [{ field: 'year', desc: true }] })).toContain('_sort');
    expect(await asked({ search_after: [year, sealed], order_by: [{ field: 'tag' }] })).toContain('_sort');
    expect(await refusal('four', { order_by, search_after: [year, sealed] })).toContain('_sort');
    expect(await asked({ search_after: [year, sealed], search_before: [year, sealed] })).toContain('not both');
    expect(await asked({ search_after: [year, sealed], offset: 1 })).toContain('offset');
    expect(await refusal('one', { search_after: [year, sealed] })).toContain('order_by');
  });

  test('skip and repeat no document that is not written meanwhile', async () => {
    const order_by = [{ field: 'year' }];
    const untouched = (ids: string[]) => ids.filter((id) => /^.d\d{6}$/.test(id));
    const whole = untouched((await ask('four', { order_by, limit: 1000 })).hits.hits.map((hit) => hit._id));
    const seen: string[] = [];
    let cursor: object = {};
    for (let round = 0; ; round += 1) {
      const { hits } = await ask('four', { order_by, limit: 25, ...cursor });
      const last = hits.hits.at(-1);
      if (!last) break;
      seen.push(...hits.hits.map((hit) => hit._id));
      cursor = { search_after: last._sort };
      await insert('four', { [`a${round}`]: { year: 1990 }, [`z${round}`]: { year: 2002.5 } });
    }
    expect(untouched(seen)).toEqual(whole);
    expect(new Set(seen).size).toBe(seen.length);
  });
});

test('the key of cursors lasts as long as the directory, and only its owner reads it', async () => {
  const file = join(server.directory, 'secrets.json');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ cursor_key: expect.any(String) });
  using temporary = new TemporaryDirectory();
  const directory = temporary.path;
  const request = { order_by: [{ field: 'n' }], limit: 1 };
  const open = async (asked: object) => {
    await using again = await startTestServer({ directory });
    await again.send('POST', '/db/v1/tables/t', {});
    await again.send('POST', '/db/v1/tables/t/batch', {
      inserts: { a: { n: 1 }, b: { n: 2 } },
      sync_level: 'full_text',
    });
    return await again.send<{ responses: Result[] }>('POST', '/db/v1/tables/t/query', asked);
  };
  const sort = (await open(request)).body.responses[0]?.hits.hits[0]?._sort;
  const next = await open({ ...request, search_after: sort });
  expect(next.body.responses[0]?.hits.hits.map((hit) => hit._id)).toEqual(['b']);
  writeFileSync(
    join(directory, 'secrets.json'),
    JSON.stringify({ cursor_key: Buffer.alloc(32, 7).toString('base64') }),
  );
  expect(await open({ ...request, search_after: sort })).toMatchObject({
    status: 400,
    body: { code: 'invalid_query' },
  });
});

describe('timeout_ms', () => {
  test('is an integer, and leaves an answer in time whole', async () => {
    const result = await ask('one', { timeout_ms: 10_000 });
    expect(result.partial).toBeUndefined();
    for (const timeout_ms of [-1, 1.5, '5']) expect(await refusal('one', { timeout_ms })).toContain('timeout_ms');
  });

  test('beyond the bound of the server is the bound, and 0 leaves no time at all', async () => {
    expect((await ask('one', { timeout_ms: 1e9 })).partial).toBeUndefined();
    const answer = await server.send('POST', '/db/v1/tables/one/query', { timeout_ms: 0 });
    expect(answer).toMatchObject({ status: 504, body: { code: 'query_timeout', retryable: true } });
    const unknown = await server.send('POST', '/db/v1/tables/one/query', { timeout_ms: 0, limits: 1 });
    expect(unknown).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
  });
});

test('whole strings sort by their path and by its keyword, those that are searched by words alone too', async () => {
  const properties = { words: { type: 'string', 'x-service-types': ['text'] } };
  await server.send('POST', '/db/v1/tables/sorts', {
    schema: { document_schemas: { d: { schema: { type: 'object', properties } } } },
  });
  await insert('sorts', { a: { name: 'pear', words: 'x' }, b: { name: 'apple', words: 'y' }, c: { name: 'fig' } });
  for (const field of ['name', 'name.keyword']) {
    const { hits } = await ask('sorts', { order_by: [{ field }] });
    expect(hits.hits.map((hit) => [hit._id, hit._sort[0]])).toEqual([
      ['b', 'apple'],
      ['c', 'fig'],
      ['a', 'pear'],
    ]);
  }
  const { hits } = await ask('sorts', { order_by: [{ field: 'words', desc: true }] });
  expect(hits.hits.map((hit) => [hit._id, hit._sort[0]])).toEqual([
    ['b', 'y'],
    ['a', 'x'],
    ['c', null],
  ]);
});
