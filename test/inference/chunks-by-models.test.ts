import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../support/fault/until.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { hitKeys, startTestServer, type TestServer } from '../support/test-server.ts';

/** Documents whose texts are cut by a model of this server: in indexes with a chunker, and in enrichments. */

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/chunkers/', import.meta.url));

interface Status {
  readiness: { state: string; pending_reasons: string[] };
  source_coverage: { failed: number };
  searchable_vectors: number;
  doc_count: number;
}
type Chunks = Record<string, { _content: string }[]>;

const directory = new TemporaryDirectory();
let server: TestServer;

beforeAll(async () => {
  cpSync(fixtures, join(directory.path, 'chunkers'), { recursive: true });
  server = await startTestServer({ set: { '--models-dir': directory.path, '--allow-downloads': 'false' } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const embedder = { provider: 'mock', model: 'words', dimensions: 64 };
const chunker = { provider: 'service', model: 'tiny-chunker' };
const managed = { type: 'embeddings', field: 'text', embedder, chunker };
/** The model ends a part at each of these marks, and nowhere else. */
const parts = ['the cat sat on the mat !', 'the king runs ?', 'a dog .'];
const text = parts.join(' ');

const create = (name: string, index: object) =>
  server.send<{ code?: string }>('POST', `/db/v1/tables/${name}`, { indexes: { parts: index } });
const write = (table: string, inserts: object, sync_level = 'full_index') =>
  server.send<{ code?: string }>('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level });
const statusOf = async (table: string) =>
  (await server.send<{ status: Status }>('GET', `/db/v1/tables/${table}/indexes/parts`)).body.status;
const chunksOf = async (table: string, key: string) => {
  const { body } = await server.send<{ _chunks: Chunks }>('GET', `/db/v1/tables/${table}/lookup/${key}?fields=_chunks`);
  return Object.values(body._chunks)[0]?.map(({ _content }) => _content);
};

describe('a chunker by a model', () => {
  test.each([
    ['dense', managed],
    ['sparse', { ...managed, sparse: true, embedder: { provider: 'mock', model: 'sparse' } }],
  ])('cuts documents where the model says that a part ends (%s)', async (name, index) => {
    expect((await create(name, index)).status).toBe(200);
    expect((await write(name, { a: { text }, b: { text: 'a dog .' }, none: { text: '' } })).status).toBe(201);
    expect(await statusOf(name)).toMatchObject({ doc_count: 2, searchable_vectors: 4 });
    expect(await chunksOf(name, 'a')).toEqual(parts);
    const found = await server.send('POST', '/db/v1/query', { table: name, semantic_search: 'king runs', limit: 1 });
    expect(hitKeys(found)).toEqual(['a']);
  });

  test('cuts before the write is committed where that is asked for, and leaves nothing to the follower', async () => {
    await create('before', managed);
    expect((await write('before', { a: { text } }, 'enrichments')).status).toBe(201);
    expect(await statusOf('before')).toMatchObject({ searchable_vectors: 3, backfill_items_processed: 0 });
  });

  test('makes the chunks of an enrichment', async () => {
    await server.send('POST', '/db/v1/tables/made', {});
    const enrichment = { kind: 'chunk', field: 'text', chunker_json: JSON.stringify(chunker) };
    const path = '/db/v1/tables/made/artifacts/pieces/enrichment';
    expect((await server.send('PUT', path, enrichment)).status).toBe(200);
    await write('made', { a: { text } }, 'enrichments');
    expect(await chunksOf('made', 'a')).toEqual(parts);
    const missing = { ...enrichment, chunker_json: JSON.stringify({ ...chunker, model: 'cutter' }) };
    expect(await server.send('PUT', path.replace('pieces', 'others'), missing)).toMatchObject({
      status: 404,
      body: { code: 'model_not_found' },
    });
  });

  test.each([
    ['that is not there', { ...chunker, model: 'cutter' }, 404, 'model_not_found'],
    ['with an overlap', { ...chunker, text: { overlap_tokens: 3 } }, 400, 'invalid_request'],
    ['with a threshold that is none', { ...chunker, threshold: 2 }, 400, 'invalid_request'],
  ])('%s is refused when the index is created', async (name, given, status, code) => {
    const answer = await create(`refused ${name}`.replaceAll(' ', '-'), { ...managed, chunker: given });
    expect(answer).toMatchObject({ status, body: { code } });
  });

  test('that has gone keeps documents waiting, without cutting them in another way', async () => {
    const place = join(directory.path, 'chunkers/tiny-chunker');
    await using other = await startTestServer({
      set: { '--models-dir': directory.path, '--allow-downloads': 'false' },
    });
    await other.send('POST', '/db/v1/tables/waiting', { indexes: { parts: managed } });
    rmSync(place, { recursive: true });
    await other.send('POST', '/ai/v1/models/refresh', {});
    await other.send('POST', '/db/v1/tables/waiting/batch', { inserts: { a: { text } } });
    const status = async () =>
      (await other.send<{ status: Status }>('GET', '/db/v1/tables/waiting/indexes/parts')).body.status;
    await until(async () => (await status()).readiness.state !== 'ready');
    expect(await status()).toMatchObject({ searchable_vectors: 0, source_coverage: { failed: 0 } });
    cpSync(fixtures, join(directory.path, 'chunkers'), { recursive: true });
    await until(async () => (await status()).readiness.state === 'ready', 60_000);
    expect(await status()).toMatchObject({ searchable_vectors: 3 });
  });
});
