import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { ModelService, type ServiceProtocol } from '../../support/providers/model-service.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

/** Questions in words to indexes whose vectors a service makes, of the documents and of the question. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const documents = {
  leek: { text: 'leek and potato soup', minutes: 35 },
  rye: { text: 'dark rye bread with seeds', minutes: 180 },
  cake: { text: 'plum cake with cream', minutes: 60 },
  dog: { text: 'a dog sleeps in the garden', minutes: 5 },
};

interface Result {
  hits: { hits: { _id: string; _index_scores?: Record<string, number> }[] };
  failover?: { code: string };
}

const query = (table: string, request: object) =>
  server.send<{ responses: [Result]; code?: string }>('POST', `/db/v1/tables/${table}/query`, request);

async function createTable(table: string, embedder: object): Promise<void> {
  const index = { type: 'embeddings', field: 'text', embedder, distance_metric: 'cosine' };
  const created = await server.send('POST', `/db/v1/tables/${table}`, { indexes: { meaning: index } });
  expect([created.status, created.body.error]).toEqual([200, undefined]);
  const written = await server.send('POST', `/db/v1/tables/${table}/batch`, {
    inserts: documents,
    sync_level: 'enrichments',
  });
  expect([written.status, written.body.error]).toEqual([201, undefined]);
}

const embedders: Partial<Record<ServiceProtocol, (url: string) => object>> = {
  openai: (url) => ({ provider: 'openai', model: 'small', url: `${url}/v1`, api_key: 'k' }),
  ollama: (url) => ({ provider: 'ollama', model: 'small', url }),
  cohere: (url) => ({ provider: 'cohere', model: 'embed-v4', url, api_key: 'k' }),
  bedrock: (url) => ({
    provider: 'bedrock',
    model: 'amazon.titan-embed-text-v2:0',
    region: 'us-east-1',
    access_key_id: 'id',
    secret_access_key: 'key',
    url,
  }),
};

describe.each(Object.entries(embedders))('an index with the embedder %s', (protocol, embedderAt) => {
  test('answers a question in words with the right document first, alone and beside other words', async () => {
    await using service = new ModelService(protocol as ServiceProtocol);
    await createTable(protocol, embedderAt(service.url));
    const before = service.seen.length;
    const asked = { semantic_search: 'how long does a soup of leek take', limit: 2 };
    expect(hitKeys(await query(protocol, asked))[0]).toBe('leek');
    expect(service.seen.length - before).toBe(1);
    const hybrid = { ...asked, full_text_search: { match: 'cream', field: 'text' } };
    expect(hitKeys(await query(protocol, hybrid)).sort()).toEqual(['cake', 'leek']);
    expect(hitKeys(await query(protocol, { ...asked, filter_query: { query: 'minutes:>100' } }))).toEqual(['rye']);
    // The vector of the question was kept.
    expect(service.seen.length - before).toBe(1);
    const reranker = { provider: 'mock', model: 'words', field: 'text' };
    expect(hitKeys(await query(protocol, { ...asked, limit: 4, reranker }))[0]).toBe('leek');
  });

  test('says when the question cannot be embedded, or lets the words answer', async () => {
    await using service = new ModelService(protocol as ServiceProtocol);
    const table = `${protocol}-down`;
    await createTable(table, embedderAt(service.url));
    service.always = () => new Response('overloaded', { status: 503 });
    const asked = { semantic_search: 'a question of another day' };
    const failed = await query(table, asked);
    expect([failed.status, failed.body.code]).toEqual([503, 'query_embedding_temporarily_unavailable']);
    const words = { full_text_search: { match: 'bread', field: 'text' }, merge_config: { strategy: 'failover' } };
    const answer = await query(table, { ...asked, ...words });
    expect([hitKeys(answer), answer.body.responses[0].failover?.code]).toEqual([
      ['rye'],
      'query_embedding_temporarily_unavailable',
    ]);
  });
});

test('what a query can name is what the table has', async () => {
  await createTable('two', { provider: 'mock', model: 'words', dimensions: 64 });
  const more = { type: 'embeddings', field: 'text', embedder: { provider: 'mock', model: 'words', dimensions: 32 } };
  await server.send('POST', '/db/v1/tables/two/indexes/second', more);
  const { status, body } = await query('two', { semantic_search: 'soup' });
  expect([status, body]).toMatchObject([
    400,
    { code: 'invalid_query', error: expect.stringContaining('meaning, second') },
  ]);
  const both = await query('two', { semantic_search: 'leek soup', indexes: ['meaning', 'second'] });
  expect(hitKeys(both)[0]).toBe('leek');
});
