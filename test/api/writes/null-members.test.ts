import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.send('POST', '/db/v1/tables/docs', { indexes: { roads: { type: 'graph' } } });
  await server.send('POST', '/db/v1/tables/docs/batch', { inserts: { a: { n: null }, b: {} } });
});
afterAll(() => server[Symbol.asyncDispose]());

const external = { type: 'embeddings', external: true, dimension: 2 };
const nullSchema = { version: null, default_type: null, enforce_types: null, ttl: null, ttl_duration: null };
const chunk = { kind: 'chunk', field: 't', chunk_size: 100 };
const bodies: [method: string, path: string, body: object, status: number][] = [
  ['POST', '/tables/one', { num_shards: null, description: null, indexes: null, schema: null }, 200],
  ['POST', '/tables/two', { schema: { ...nullSchema, document_schemas: null, dynamic_templates: null } }, 200],
  ['POST', '/tables/three', { indexes: { v: { ...external, description: null, field: null, embedder: null } } }, 200],
  ['PUT', '/tables/docs/schema', { ttl: { field: null, duration: '1h' } }, 200],
  ['POST', '/tables/docs/indexes/v', { ...external, version: null, template: null, enrichments: null }, 201],
  ['PUT', '/tables/docs/artifacts/c/enrichment', { ...chunk, template: null, execution: null }, 200],
  ['POST', '/tables/docs/lookup', { from: null, to: null, fields: null, filter_query: null, limit: null }, 200],
  ['POST', '/tables/docs/merge', { records: { a: {} }, last_merged_id: null, dry_run: null }, 200],
  ['POST', '/transactions/begin', { sync_level: null }, 201],
];

test.each(bodies)('an optional member that is null is absent: %s %s %j', async (method, path, body, status) => {
  const answer = await server.send(method, `/db/v1${path}`, body);
  expect([answer.status, answer.body.code]).toEqual([status, undefined as never]);
});

test('documents keep theirs, and a required member that is null is refused', async () => {
  const document = { n: null, within: [null, { n: null }] };
  const begun = await server.send<{ transaction_id: string }>('POST', '/db/v1/transactions/begin', {});
  const session = `/db/v1/transactions/${begun.body.transaction_id}`;
  expect((await server.send('POST', `${session}/write`, { table: 'docs', key: 'd', document })).status).toBe(200);
  expect((await server.send('POST', `${session}/stage`, { read_set: null, tables: {} })).status).toBe(200);
  expect((await server.send('POST', `${session}/commit`)).status).toBe(200);
  expect((await server.send('GET', '/db/v1/tables/docs/lookup/d')).body as object).toEqual(document);
  const refused = await server.send('POST', `${session}/write`, { table: null, key: 'd', document });
  expect([refused.status, refused.body.code]).toEqual([400, 'invalid_request']);
});
