import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

describe('lookup', () => {
  test('gives the document as it was stored, with its version, under both spellings', async () => {
    await server.send('POST', '/db/v1/tables/look');
    const stored = '{"title" : "Leek  soup", "price": 1.50, "big":-0, "_timestamp":"2026-01-01T00:00:00Z"}';
    await server.send('POST', '/db/v1/tables/look/batch', `{"inserts":{"a/b:1":${stored}}}`);
    for (const spelling of ['lookup', 'documents']) {
      const answer = await server.send<string>('GET', `/db/v1/tables/look/${spelling}/a%2Fb%3A1`);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('x-service-version')).toMatch(/^[1-9]\d{15}$/);
      expect(answer.headers.get('x-antfly-version')).toBe(answer.headers.get('x-service-version'));
    }
    expect(await (await fetch(`${server.url}/db/v1/tables/look/lookup/a%2Fb%3A1`)).text()).toBe(stored);
  });

  test('has in its headers nothing of the answer before it', async () => {
    const path = '/db/v1/tables/headers';
    await server.send('POST', path);
    await server.send('POST', `${path}/batch`, { inserts: { a: { n: 1 } } });
    await server.send('POST', `${path}/batch`, { inserts: { b: { n: 2 } } });
    const own = { connection: 'close', 'x-request-id': 'first' };
    const first = await server.send('GET', `${path}/lookup/a`, undefined, own);
    const second = await server.send('GET', `${path}/lookup/b`);
    const other = await server.send('GET', path);
    expect([first.headers.get('x-request-id'), first.headers.get('connection')]).toEqual(['first', 'close']);
    expect(second.headers.get('x-request-id')).not.toBe('first');
    expect(Number(second.headers.get('x-service-version'))).toBeGreaterThan(
      Number(first.headers.get('x-service-version')),
    );
    for (const { headers } of [second, other]) expect(headers.get('connection')).not.toBe('close');
    expect(other.headers.has('x-service-version')).toBe(false);
  });

  test('shows the time of the write only where it is asked for, or where the document says it', async () => {
    const path = '/db/v1/tables/stamps';
    await server.send('POST', path);
    const said = '2020-01-01T00:00:00Z';
    const before = new Date(Date.parse(new Date().toISOString()) - 1_000).toISOString();
    const inserts = { plain: { t: 1 }, said: { t: 2, _timestamp: said } };
    await server.send('POST', `${path}/batch`, { inserts, sync_level: 'full_text' });
    const lookup = async (key: string, fields = '') =>
      (await server.send<Record<string, string>>('GET', `${path}/documents/${key}${fields}`)).body;
    expect(await lookup('plain')).toEqual({ t: 1 } as never);
    expect(await lookup('plain', '?fields=*')).toEqual({ t: 1 } as never);
    expect(await lookup('said')).toEqual({ t: 2, _timestamp: said } as never);
    const { _timestamp: written = '' } = await lookup('plain', '?fields=*,_timestamp');
    expect(written > before).toBe(true);
    expect(await lookup('plain', '?fields=_timestamp')).toEqual({ _timestamp: written });
    expect(await lookup('plain', '?fields=_timestamp,-_timestamp')).toEqual({});
    const query = async (request: object) =>
      (
        await server.send<{ responses: { hits: { hits: { _source: object; _sort: unknown[] }[] } }[] }>(
          'POST',
          `${path}/query`,
          { order_by: [{ field: '_timestamp', desc: true }], ...request },
        )
      ).body.responses[0]?.hits.hits ?? [];
    expect((await query({})).map((hit) => hit._source)).toEqual([inserts.plain, inserts.said]);
    // Sort values write no zeros at the end of a fraction.
    const times = (await query({})).map((hit) => Date.parse(String(hit._sort[0])));
    expect(times).toEqual([written, said].map((text) => Date.parse(text)));
    const since = { range: { _timestamp: { gte: before } } };
    expect(await query({ filter_query: since, fields: ['_timestamp'] })).toMatchObject([
      { _source: { _timestamp: written } },
    ]);
    const operations = [{ op: '$inc', path: 't', value: 1 }];
    await server.send('POST', `${path}/batch`, { transforms: [{ key: 'plain', operations }] });
    expect(await lookup('plain', '?fields=*,_timestamp')).toEqual({ t: 2, _timestamp: written } as never);
    const lines = await server.send<string>('POST', `${path}/documents`, { fields: ['t'], filter_query: since });
    expect(JSON.parse(lines.body)).toEqual({ _id: 'plain', key: 'plain', t: 2 });
  });

  test('projects names, paths, wildcards and exclusions', async () => {
    await server.send('POST', '/db/v1/tables/project');
    const inserts = { a: { t: 1, author: { name: 'x', mail: 'y' }, _timestamp: '2026-01-01T00:00:00Z' } };
    await server.send('POST', '/db/v1/tables/project/batch', { inserts });
    const fields = async (list: string) =>
      (await server.send('GET', `/db/v1/tables/project/lookup/a?fields=${list}`)).body;
    expect(await fields('t')).toEqual({ t: 1 });
    expect(await fields('author.name')).toEqual({ author: { name: 'x' } });
    expect(await fields('author.*')).toEqual({ author: { name: 'x', mail: 'y' } });
    expect(await fields('*,-author.mail,-_timestamp')).toEqual({ t: 1, author: { name: 'x' } });
  });

  test('an empty list of fields shows keys alone in queries and scans, and is no list in the address', async () => {
    await server.send('POST', '/db/v1/tables/nothing');
    await server.send('POST', '/db/v1/tables/nothing/batch', { inserts: { a: { t: 1 } }, sync_level: 'full_text' });
    const { body } = await server.send<{ responses: { hits: { hits: object[] } }[] }>(
      'POST',
      '/db/v1/tables/nothing/query',
      { fields: [] },
    );
    expect(body.responses[0]?.hits.hits).toEqual([{ _id: 'a', _score: 1 }]);
    const lines = await server.send<string>('POST', '/db/v1/tables/nothing/documents', { fields: [] });
    expect(JSON.parse(lines.body)).toEqual({ _id: 'a', key: 'a' });
    expect((await server.send('GET', '/db/v1/tables/nothing/documents/a?fields=')).body).toMatchObject({ t: 1 });
  });

  test('a missing document, table or a bad key say so', async () => {
    await server.send('POST', '/db/v1/tables/missing');
    expect((await server.send('GET', '/db/v1/tables/missing/lookup/a')).body).toMatchObject({ code: 'key_not_found' });
    expect((await server.send('GET', '/db/v1/tables/none/lookup/a')).body).toMatchObject({ code: 'table_not_found' });
    expect((await server.send('GET', `/db/v1/tables/missing/lookup/${'x'.repeat(1_025)}`)).body).toMatchObject({
      code: 'invalid_key',
    });
  });
});

describe.each([1, 4])('scan over %d ranges', (num_shards) => {
  const table = `/db/v1/tables/scan-${num_shards}`;
  const keys = ['0', '9', 'a', 'm', 'z', 'é', '\uffee', '😀'];

  beforeAll(async () => {
    await server.send('POST', table, { num_shards });
    const inserts = Object.fromEntries(keys.map((key, n) => [key, { n, even: n % 2 === 0 }]));
    await server.send('POST', `${table}/batch`, { inserts });
  });

  async function scan(request: unknown): Promise<Record<string, unknown>[]> {
    const { body, headers } = await server.send<string>('POST', `${table}/lookup`, request);
    expect(headers.get('content-type')).toBe('application/x-ndjson');
    return body.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  }

  test('without a body gives all keys in bytewise order', async () => {
    expect((await scan(undefined)).map((line) => line.key)).toEqual(keys);
    expect((await scan({})).every((line) => line._id === line.key && Object.keys(line).length === 2)).toBe(true);
  });

  test('from is exclusive and to inclusive, unless told otherwise', async () => {
    const between = async (more: object) => (await scan({ from: '9', to: 'm', ...more })).map((line) => line.key);
    expect(await between({})).toEqual(['a', 'm']);
    expect(await between({ inclusive_from: true, exclusive_to: true })).toEqual(['9', 'a']);
    expect(await between({ limit: 1 })).toEqual(['a']);
  });

  test('shows fields and keeps to a filter', async () => {
    const lines = await scan({ fields: ['n'], filter_query: { query: 'even:true AND n:>=2' } });
    expect(lines).toEqual([
      { _id: 'a', key: 'a', n: 2 },
      { _id: 'z', key: 'z', n: 4 },
      { _id: '\uffee', key: '\uffee', n: 6 },
    ]);
  });

  test('keeps to a filter by what is stored, whether the index shows it yet or not', async () => {
    const filter_query = { query: 'even:true AND n:>=2' };
    const write = (inserts: object, more: object) => server.send('POST', `${table}/batch`, { inserts, ...more });
    const found = async () => (await scan({ filter_query })).map((line) => line.key);
    const documents = { a: { n: 2, even: true }, m: { n: 3, even: false } };
    await write(documents, { sync_level: 'full_text' });
    expect(await found()).toEqual(['a', 'z', '\uffee']);
    await write({ a: { n: 1, even: true }, m: { n: 4, even: true } }, {});
    expect(await found()).toEqual(['m', 'z', '\uffee']);
    await write(documents, { sync_level: 'full_text' });
    expect(await found()).toEqual(['a', 'z', '\uffee']);
  });

  test('is an array for clients that take only JSON', async () => {
    const { body } = await server.send<unknown[]>(
      'POST',
      `${table}/documents`,
      { limit: 2 },
      { accept: 'application/json' },
    );
    expect(body).toEqual([
      { _id: '0', key: '0' },
      { _id: '9', key: '9' },
    ]);
  });
});

test.each([
  ['misspelled/lookup/a?field=n', 'fields'],
  ['misspelled/documents/a?feilds=n', 'fields'],
  ['?prefx=x', 'prefix'],
])('a parameter of the address /tables/%s that is nearly %s is refused', async (address, meant) => {
  await server.send('POST', '/db/v1/tables/misspelled');
  await server.send('POST', '/db/v1/tables/misspelled/batch', { inserts: { a: { n: 1, secret: 2 } } });
  const answer = await server.send('GET', `/db/v1/tables${address.startsWith('?') ? '' : '/'}${address}`);
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  expect(answer.body.message).toContain(`Did you mean "${meant}"?`);
  expect(await server.send('GET', '/db/v1/tables/misspelled/lookup/a?fields=n&trace=1')).toMatchObject({
    status: 200,
    body: { n: 1 },
  });
});

test.each([
  ['filter_prefix', 'a'],
  ['exclusion_query', { match_all: {} }],
  ['order_by', [{ field: 'n', desc: true }]],
  ['offset', 5],
  ['search_after', ['a']],
])('a scan refuses the member %s of a query, which it would not obey', async (name, value) => {
  await server.send('POST', '/db/v1/tables/scanned-as-asked');
  const answer = await server.send('POST', '/db/v1/tables/scanned-as-asked/documents', { [name]: value });
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  expect(answer.body.message).toContain(`"${name}"`);
});

test('a scan is paged: it gives every document once, whatever their number', async () => {
  await server.send('POST', '/db/v1/tables/many');
  const inserts = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, n) => [`k${String(n).padStart(5, '0')}`, { n }]),
  );
  await server.send('POST', '/db/v1/tables/many/batch', { inserts });
  const { body } = await server.send<string>('POST', '/db/v1/tables/many/lookup', { fields: ['n'] });
  const numbers = body
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { n: number }).n);
  expect(numbers).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
});

test('pretty-printed documents stay one line each', async () => {
  await server.send('POST', '/db/v1/tables/pretty');
  const written = { inserts: { a: { n: [1, 2] } }, sync_level: 'full_text' };
  await server.send('POST', '/db/v1/tables/pretty/batch', JSON.stringify(written, null, 2));
  const linesOf = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
  const { body } = await server.send<string>('POST', '/db/v1/tables/pretty/lookup', { fields: ['n'] });
  expect(linesOf(body)).toEqual([{ _id: 'a', key: 'a', n: [1, 2] }]);
  const query = { table: 'pretty' };
  const accept = 'application/x-ndjson';
  const answer = await server.send('POST', '/db/v1/query', [query, query], { accept });
  const result = { hits: { hits: [{ _source: { n: [1, 2] } }] } };
  expect(linesOf(answer.body as unknown as string)).toMatchObject([result, result]);
});

test('a scan leaves a member named key to the document that has one', async () => {
  await server.send('POST', '/db/v1/tables/own-key');
  await server.send('POST', '/db/v1/tables/own-key/batch', { inserts: { a: { key: 'mine' }, b: { n: { key: 1 } } } });
  const { body } = await server.send<string>('POST', '/db/v1/tables/own-key/lookup', { fields: ['key', 'n'] });
  expect(body).toBe('{"_id":"a","key":"mine"}\n{"_id":"b","key":"b","n":{"key":1}}\n');
});

test('a scan names the key alone `_id`, whatever members a document has', async () => {
  await server.send('POST', '/db/v1/tables/own-id');
  const inserts = '{"a":{ "n":1.50, "_id":"b", "é":"\\n" },"b":{"_id":"a"},"c":{"n":{"_id":1}}}';
  await server.send('POST', '/db/v1/tables/own-id/batch', `{"inserts":${inserts}}`);
  const { body } = await server.send<string>('POST', '/db/v1/tables/own-id/lookup', { fields: ['*'] });
  expect(body.split('\n')).toEqual([
    '{"_id":"a","key":"a","n":1.50,"é":"\\n"}',
    '{"_id":"b","key":"b"}',
    '{"_id":"c","key":"c","n":{"_id":1}}',
    '',
  ]);
  const own = await server.send('GET', '/db/v1/tables/own-id/lookup/b');
  expect(own.body).toEqual({ _id: 'a' });
});
