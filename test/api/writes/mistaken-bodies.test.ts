import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.send('POST', '/db/v1/tables/docs', {
    schema: { document_schemas: { doc: { schema: { properties: { title: { type: 'string' } } } } } },
    indexes: { taste: { type: 'embeddings', external: true, dimension: 2 } },
  });
  await server.send('POST', '/db/v1/tables/docs/batch', { inserts: { a: { title: 'one' } }, sync_level: 'full_text' });
});
afterAll(() => server[Symbol.asyncDispose]());

async function refusal(method: string, path: string, body: unknown): Promise<string> {
  const answer = await server.send(method, `/db/v1${path}`, body);
  return `${answer.status} ${answer.body.code} ${answer.body.message}`;
}

const batch = '/tables/docs/batch';

describe('a member that was meant to do something is not passed over', () => {
  const cases: [method: string, path: string, body: unknown, told: RegExp][] = [
    ['PUT', '/tables/docs/schema', { schema: { document_schemas: {} } }, /no member "schema": give the schema itself/],
    ['PUT', '/tables/docs/schema', { document_schema: {}, enforce_types: true }, /mean "document_schemas"/],
    ['PUT', '/tables/docs/schema', { ttl: { durations: '5m' } }, /"ttl" .*mean "duration"/],
    ['POST', '/tables/new', { shards: 4 }, /mean "num_shards"/],
    ['POST', '/tables/new', { index: {} }, /mean "indexes"/],
    ['POST', '/tables/new', { schema: { schema: {} } }, /no member "schema"/],
    ['POST', batch, { inserts: { b: {} }, delete: ['a'] }, /mean "deletes"/],
    ['POST', batch, { inserts: { b: {} }, sync: 'full_text' }, /mean "sync_level"/],
    ['POST', '/batch', { tables: { docs: { inserts: { b: {} }, delete: ['a'] } } }, /mean "deletes"/],
    ['POST', '/transactions/commit', { tables: {}, read_set: [], readset: [] }, /mean "read_set"/],
    ['POST', '/tables/docs/merge', { records: { b: {} }, dryrun: true }, /mean "dry_run"/],
    ['POST', '/tables/docs/lookup', { filter: { term: 'x', field: 'title' } }, /mean "filter_query"/],
  ];
  test.each(cases)('%s %s %j', async (method, path, body, told) => {
    expect(await refusal(method, path, body)).toMatch(new RegExp(`^400 invalid_request .*${told.source}`));
  });

  test('nothing was changed; members that resemble none are ignored', async () => {
    const { schema } = (await server.send('GET', '/db/v1/tables/docs')).body as { schema: Record<string, object> };
    expect(schema.document_schemas).toHaveProperty('doc.schema.properties.title');
    expect((await server.send('GET', '/db/v1/tables/docs/lookup/b')).status).toBe(404);
    expect((await server.send('GET', '/db/v1/tables/new')).status).toBe(404);
    const body = { inserts: { a: { title: 'one' } }, comment: 'nightly' };
    expect((await server.send('POST', `/db/v1${batch}`, body)).status).toBe(201);
  });
});

describe('what is wrong is named', () => {
  const query = '/tables/docs/query';
  const cases: [what: string, path: string, body: unknown, told: RegExp][] = [
    ['null as a query', query, 'null', /invalid_request .*a query must be a JSON object/],
    ['an array of numbers', query, '[3]', /invalid_request .*a query must be a JSON object/],
    ['a word that is no JSON', query, 'nul', /invalid_json/],
    [
      'NaN in a vector',
      query,
      '{"embeddings":{"taste":[1,NaN]}}',
      /invalid_json in "embeddings.taste": invalid JSON at/,
    ],
    ['a number beyond a double', query, '{"embeddings":{"taste":[1,1e999]}}', /in "embeddings.taste"/],
    [
      'one index of several',
      '/tables/new',
      { indexes: { good: { type: 'full_text' }, bad: { type: 'embeddings', external: true } } },
      /invalid_request index "bad": "dimension" is missing/,
    ],
    [
      'the name of an index',
      '/tables/new',
      { indexes: { '../x': { type: 'full_text' } } },
      /invalid_name index "..\/x"/,
    ],
    [
      'a member of the server',
      batch,
      { inserts: { b: { _chunks: {} } } },
      /document "b": "_chunks" is kept by the server/,
    ],
    [
      'the same in a transform',
      batch,
      { transforms: [{ key: 'a', operations: [{ op: '$set', path: '$._artifacts.x', value: 1 }] }] },
      /"_artifacts" is kept by the server/,
    ],
  ];
  test.each(cases)('%s', async (_what, path, body, told) => {
    expect(await refusal('POST', path, body)).toMatch(new RegExp(`^400 ${told.source}|^400 .*${told.source}`));
  });
});

test('a schema is replaced under `If-Match` only when it is still the one that was read', async () => {
  const path = '/db/v1/tables/docs/schema';
  const tag = async () => (await server.send('GET', '/db/v1/tables/docs')).headers.get('etag') ?? '';
  const read = await tag();
  const changed = { document_schemas: { doc: { schema: { properties: { year: { type: 'integer' } } } } } };
  const first = await server.send('PUT', path, changed, { 'if-match': `"other", ${read}` });
  expect([first.status, first.headers.get('etag')]).toEqual([200, await tag()]);
  expect(await tag()).not.toBe(read);
  const second = await server.send('PUT', path, {}, { 'if-match': read });
  expect([second.status, second.body.code]).toEqual([412, 'precondition_failed']);
  expect((await server.send('GET', '/db/v1/tables/docs')).body).toHaveProperty(
    'schema.document_schemas.doc.schema.properties.year',
  );
  expect((await server.send('PUT', path, changed, { 'if-match': '*' })).status).toBe(200);
});
