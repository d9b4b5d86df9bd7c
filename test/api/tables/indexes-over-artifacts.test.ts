import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { until } from '../../support/fault/until.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

/** Indexes whose vectors are those of an enrichment. */

interface Status {
  readiness: { state: string };
  backfill_items_processed: number;
  source_coverage: { failed: number };
  doc_count: number;
  searchable_vectors: number;
}

const producer = { type: 'embedder', config: { provider: 'mock', model: 'words', dimensions: 64 } };
const chunks = { kind: 'chunk', field: 'text', chunk_size: 20 };
const vectors = { kind: 'embedding', source_artifact_name: 'pieces', producer_json: producer };
const over = { type: 'embeddings', source_artifact_name: 'vectors', distance_metric: 'cosine' };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const send = (method: string, path: string, body?: object) =>
  server.send<Record<string, unknown> & { code?: string; status?: Status }>(method, `/db/v1/tables/${path}`, body);
const write = (table: string, body: object, sync_level = 'full_index') =>
  send('POST', `${table}/batch`, { ...body, sync_level });
const ask = (table: string, semantic_search: string, more: object = {}) =>
  server.send('POST', '/db/v1/query', { table, semantic_search, indexes: ['near'], ...more });
const statusOf = async (table: string) => (await send('GET', `${table}/indexes/near`)).body.status;

/** A table with chunks, and a vector for each of them. */
async function createTable(name: string, ranges = 1): Promise<void> {
  await send('POST', name, { num_shards: ranges });
  await send('PUT', `${name}/artifacts/pieces/enrichment`, chunks);
  await send('PUT', `${name}/artifacts/vectors/enrichment`, vectors);
}

/** Windows of twenty characters, each of words that no other document has. */
const windows = (name: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${name}${n} al${name}${n} be${name}${n}`.padEnd(20).slice(0, 20)).join('');

describe('an index over an enrichment', () => {
  test.each([1, 3])(
    'finds documents by the nearest of their vectors, written before it and after it (%d ranges)',
    async (ranges) => {
      const table = `over${ranges}`;
      await createTable(table, ranges);
      await write(table, { inserts: { '!old': { text: windows('o', 6) }, '~none': { text: '' } } });
      const created = await send('POST', `${table}/indexes/near`, over);
      expect([created.status, created.body.dimension]).toEqual([201, 64]);
      await until(async () => (await statusOf(table))?.readiness.state === 'ready');
      await write(table, { inserts: { new: { text: windows('n', 3) } } });
      expect(await statusOf(table)).toMatchObject({
        doc_count: 2,
        searchable_vectors: 9,
        readiness: { state: 'ready' },
      });
      expect(hitKeys(await ask(table, 'o5 alo5', { limit: 1 }))).toEqual(['!old']);
      expect(hitKeys(await ask(table, 'n1 aln1'))).toEqual(['new', '!old']);
      const best = await ask(table, 'n1 aln1', { limit: 1, fields: ['_chunks'] });
      expect(JSON.stringify(best.body)).toContain('n1 aln1 ben1');
      expect(JSON.stringify(best.body)).not.toContain('n2 aln2');
      const filtered = await ask(table, 'n1 aln1', { filter_query: { match: 'o5', field: 'text' } });
      expect(hitKeys(filtered)).toEqual(['!old']);
      await write(table, { inserts: { new: { text: windows('m', 2) } }, deletes: ['!old'] });
      expect(await statusOf(table)).toMatchObject({ doc_count: 1, searchable_vectors: 2 });
      expect(hitKeys(await ask(table, 'o5 alo5'))).toEqual(['new']);
    },
  );

  test('can be made, says the status', async () => {
    expect((await server.send('GET', '/db/v1/status')).body).toMatchObject({
      index_capabilities: { artifact_sources: true, artifact_sources_state: 'available' },
    });
  });

  test('shows what was made before the write was committed, where that is asked for', async () => {
    await createTable('before');
    await send('POST', 'before/indexes/near', over);
    expect((await write('before', { inserts: { a: { text: windows('a', 4) } } }, 'enrichments')).status).toBe(201);
    expect(await statusOf('before')).toMatchObject({
      doc_count: 1,
      searchable_vectors: 4,
      backfill_items_processed: 0,
    });
  });

  test('may declare what it is over, in the table that is created', async () => {
    const inline = {
      ...over,
      enrichments: [
        { name: 'pieces', ...chunks },
        { name: 'vectors', ...vectors },
      ],
    };
    expect((await send('POST', 'inline', { indexes: { near: inline } })).status).toBe(200);
    await write('inline', { inserts: { a: { text: windows('a', 3) } } });
    expect(hitKeys(await ask('inline', 'a2 ala2'))).toEqual(['a']);
    expect((await send('POST', 'inline/indexes/near', inline)).status).toBe(200);
    expect((await send('DELETE', 'inline/indexes/near')).status).toBe(204);
    expect((await send('GET', 'inline/artifacts')).body.artifacts).toEqual([]);
  });

  test('keeps the enrichment as it is, and two of them share its vectors', async () => {
    await createTable('kept');
    await send('POST', 'kept/indexes/near', over);
    await send('POST', 'kept/indexes/other', {
      ...over,
      distance_metric: 'l2_squared',
      source_artifact_name: undefined,
      sources: [{ artifact: 'vectors' }],
    });
    await write('kept', { inserts: { a: { text: windows('a', 2) } } });
    const refused = { status: 409, body: { code: 'enrichment_in_use' } };
    expect(await send('DELETE', 'kept/artifacts/vectors/enrichment')).toMatchObject(refused);
    expect(await send('DELETE', 'kept/artifacts/pieces/enrichment')).toMatchObject(refused);
    const another = { ...vectors, producer_json: { ...producer, config: { ...producer.config, dimensions: 32 } } };
    expect(await send('PUT', 'kept/artifacts/vectors/enrichment', another)).toMatchObject(refused);
    expect((await send('PUT', 'kept/artifacts/vectors/enrichment', vectors)).status).toBe(200);
    const { body } = await send('GET', 'kept/lookup/a?fields=_embeddings');
    const { near, other } = body._embeddings as Record<string, number[][]>;
    expect([near?.length, other]).toEqual([2, near]);
    expect((await send('DELETE', 'kept/indexes/near')).status).toBe(204);
    expect(await send('DELETE', 'kept/artifacts/vectors/enrichment')).toMatchObject(refused);
    expect(hitKeys(await ask('kept', 'a1 ala1', { indexes: ['other'] }))).toEqual(['a']);
    expect((await send('DELETE', 'kept/indexes/other')).status).toBe(204);
    expect((await send('DELETE', 'kept/artifacts/vectors/enrichment')).status).toBe(200);
  });

  test.each([
    ['over nothing', { source_artifact_name: 'nothing' }, 400, 'missing_embedding_artifact_enrichment'],
    ['over chunks', { source_artifact_name: 'pieces' }, 400, 'missing_embedding_artifact_producer'],
    ['of another length', { dimension: 3 }, 400, 'invalid_request'],
    ['with an embedder', { embedder: producer.config }, 400, 'invalid_request'],
    ['with a field', { field: 'text' }, 400, 'invalid_request'],
    ['that is external', { external: true }, 400, 'invalid_request'],
    ['of sparse vectors', { sparse: true }, 400, 'invalid_request'],
    ['over two', { sources: [{ artifact: 'pieces' }, { artifact: 'vectors' }] }, 400, 'invalid_request'],
  ])('%s is refused', async (_, members, status, code) => {
    await createTable('refusing');
    expect(await send('POST', 'refusing/indexes/near', { ...over, ...members })).toMatchObject({
      status,
      body: { code },
    });
    const vector = { inserts: { a: { _embeddings: { near: Array(64).fill(1) } } } };
    expect((await write('refusing', vector)).status).toBe(400);
  });
});

test('the explanation of a score says which chunk it is of, and a preview that there is nothing to embed', async () => {
  await createTable('explained');
  await send('POST', 'explained/indexes/near', over);
  await write('explained', { inserts: { a: { text: windows('n', 3) } } });
  const { body } = await ask('explained', 'n2 aln2', { limit: 1, explain: true });
  expect(JSON.stringify(body)).toMatch(/score of chunk 2 of \\"pieces\\".*"_chunk_id":2/);
  const preview = await send('POST', 'explained/indexes/near/preview');
  expect([preview.status, preview.body.code]).toEqual([400, 'invalid_request']);
});
