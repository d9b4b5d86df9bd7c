import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect } from '../../../src/client/client.ts';
import type { IndexPreview } from '../../../src/protocol/database/index-preview.ts';
import { startGuardedServer, table } from '../../support/access.ts';
import { ModelService } from '../../support/providers/model-service.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

/** The parts that a managed index would make of a few documents, shown before it is created. */

let server: TestServer;
let service: ModelService;
const documents = {
  a: { title: 'Leek soup', text: 'Wash the leek. Boil it in cream.' },
  b: { title: 'Plum cake' },
  c: { title: 'A number', text: 7 },
  d: { title: 'Tea', text: 'Größe: 😀. Boil water.' },
  e: { title: 'Bread', text: 'x'.repeat(20_000) },
};
beforeAll(async () => {
  server = await startTestServer();
  service = new ModelService('openai');
  await server.send('POST', '/db/v1/tables/recipes', { num_shards: 3 });
  await server.send('POST', '/db/v1/tables/recipes/batch', { inserts: documents, sync_level: 'full_index' });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
});

const embedder = () => ({ provider: 'openai', model: 'words', dimensions: 8, url: `${service.url}/v1`, api_key: 'k' });
const managed = (more: object = {}) => ({ type: 'embeddings', field: 'text', embedder: embedder(), ...more });
const preview = (body: object = {}, index = 'meaning') =>
  server.send<IndexPreview & { code?: string; message?: string }>(
    'POST',
    `/db/v1/tables/recipes/indexes/${index}/preview`,
    body,
  );
const tokensOf = (text: string) => text.split(' ').length;

describe('a preview of an index that is yet to be created', () => {
  test('shows the text, the lengths of the vectors, the tokens and the reasons, document by document', async () => {
    const { status, body } = await preview({ config: managed() });
    expect(status).toBe(200);
    expect(body.config).toMatchObject({ type: 'embeddings', field: '$.text', dimension: 8 });
    expect(JSON.stringify(body.config)).not.toContain('api_key');
    const [a, b, c, d, e] = body.documents;
    const { text } = documents.a;
    expect(a).toEqual({ _id: 'a', state: 'ready', text, characters: 32, vector_lengths: [8], tokens: tokensOf(text) });
    expect(b).toMatchObject({ _id: 'b', state: 'none', vector_lengths: [], tokens: 0 });
    expect(b?.reason).toContain('nothing to embed');
    expect(c).toMatchObject({ _id: 'c', state: 'failed', code: 'invalid_request', tokens: 0 });
    expect(c?.reason).toContain('is not a string');
    expect(d).toMatchObject({ _id: 'd', characters: 21 });
    // A long text is embedded whole and shown in part.
    expect([e?.characters, e?.text?.length]).toEqual([20_000, 16_384]);
    const tokens = tokensOf(text) + tokensOf(documents.d.text) + 1;
    expect(body.total).toEqual({ documents: 5, ready: 3, none: 1, failed: 1, vectors: 3, tokens });
    expect(body.estimate).toEqual({ documents: 5, vectors: 3, tokens, vector_bytes: 3 * 8 * 4 });
  });

  test('shows the chunks of a text with their places, and one vector for each', async () => {
    const chunker = { provider: 'service', text: { target_tokens: 5, separator: '. ' } };
    const { body } = await preview({ config: managed({ chunker }), keys: ['d', 'a'] });
    expect(body.documents.map(({ _id, vector_lengths }) => [_id, vector_lengths])).toEqual([
      ['d', [8, 8]],
      ['a', [8, 8]],
    ]);
    const [{ chunks = [] } = { chunks: [] }] = body.documents;
    const { text } = documents.d;
    const characters = [...text];
    for (const chunk of chunks) {
      const { _content: content, _start_char, _end_char, _start_offset, _end_offset } = chunk;
      expect(characters.slice(_start_char, _end_char).join('')).toBe(content);
      expect(Buffer.from(text).subarray(_start_offset, _end_offset).toString()).toBe(content);
    }
    expect(chunks.map(({ _chunk_id }) => _chunk_id)).toEqual([0, 1]);
    expect(body.total.vectors).toBe(4);
    expect(body.estimate).toMatchObject({ documents: 5, vectors: 10, vector_bytes: 10 * 8 * 4 });
  });

  test('of sparse vectors tells their entries, for each chunk', async () => {
    const chunker = { provider: 'service', text: { target_tokens: 5, separator: '. ' } };
    const config = { type: 'embeddings', sparse: true, field: 'text', embedder: { provider: 'mock', model: 'sparse' } };
    const { status, body } = await preview({ config: { ...config, chunker }, keys: ['a'] });
    expect(status).toBe(200);
    const [{ chunks, vector_lengths: lengths } = { chunks: [], vector_lengths: [] }] = body.documents;
    expect(chunks?.map(({ _content }) => _content)).toEqual(['Wash the leek.', 'Boil it in cream.']);
    expect(lengths).toEqual([3, 4]);
    expect(body.estimate).toMatchObject({ vectors: 10, vector_bytes: 7 * 8 * 5 });
  });

  test('renders templates, and takes as many documents as it is asked for', async () => {
    const config = managed({ field: undefined, template: '{{title}}: {{#if text}}{{text}}{{else}}no text{{/if}}' });
    const { body } = await preview({ config, limit: 2 });
    expect(body.documents.map(({ text }) => text)).toEqual([`Leek soup: ${documents.a.text}`, 'Plum cake: no text']);
  });

  test('stores nothing: no index, no vector, no artifact', async () => {
    const before = await server.send('GET', '/db/v1/tables/recipes');
    await preview({ config: managed() });
    expect((await server.send('GET', '/db/v1/tables/recipes')).body).toEqual(before.body);
    expect((await server.send('GET', '/db/v1/tables/recipes/indexes/meaning')).status).toBe(404);
    const { body } = await server.send('GET', '/db/v1/tables/recipes/documents/a?fields=_embeddings');
    expect(body).toEqual({});
  });

  const refusals: [string, object, number, string, string][] = [
    ['no configuration', {}, 404, 'index_not_found', 'give a "config"'],
    ['an external index', { config: { type: 'embeddings', external: true, dimension: 3 } }, 400, 'invalid_request', ''],
    ['a full-text index', { config: { type: 'full_text' } }, 400, 'invalid_request', 'with an "embedder"'],
    ['a broken template', { config: { ...mockIndex(), template: '{{#if x}}' } }, 400, 'invalid_request', 'line 1'],
    ['a document that is not there', { config: mockIndex(), keys: ['nobody'] }, 404, 'key_not_found', 'nobody'],
    ['more documents than one preview takes', { config: mockIndex(), limit: 101 }, 400, 'invalid_request', ''],
    ['a member that is not known', { config: mockIndex(), key: ['a'] }, 400, 'invalid_request', ''],
  ];
  test.each(refusals)('is refused for %s', async (_, body, status, code, reason) => {
    const answer = await preview(body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.body.message).toContain(reason);
  });

  test('fails as the provider does', async () => {
    service.next.push(
      () => undefined,
      () => new Response('{"error":{"message":"no such key"}}', { status: 401 }),
    );
    const { status, body } = await preview({ config: managed() });
    expect([status, body.code]).toEqual([502, 'upstream_refused']);
  });
});

function mockIndex() {
  return { type: 'embeddings', field: 'text', embedder: { provider: 'mock', model: 'words', dimensions: 8 } };
}

test('an index that is there is previewed as it is, and by the client', async () => {
  await server.send('POST', '/db/v1/tables/kept', { indexes: { meaning: managed() } });
  await server.send('POST', '/db/v1/tables/kept/batch', { inserts: { a: documents.a }, sync_level: 'full_index' });
  const index = connect(server.url).table('kept').index('meaning');
  const own = await index.preview();
  expect(own.documents).toMatchObject([{ _id: 'a', vector_lengths: [8] }]);
  // The key of the stored configuration was used, and is not shown.
  expect(service.seen.at(-1)?.headers.get('authorization')).toBe('Bearer k');
  expect(JSON.stringify(own)).not.toContain('"api_key"');
  const other = await index.preview({
    config: { ...mockIndex(), embedder: { ...mockIndex().embedder, dimensions: 16 } },
  });
  expect(other.documents).toMatchObject([{ _id: 'a', vector_lengths: [16] }]);
});

test('a document whose time has come is not previewed', async () => {
  const schema = { ttl: { duration: '1s' } };
  await server.send('POST', '/db/v1/tables/short', { schema });
  const inserts = { gone: { text: 'x', _timestamp: '2020-01-01T00:00:00Z' }, here: { text: 'y' } };
  await server.send('POST', '/db/v1/tables/short/batch', { inserts });
  const answer = await server.send<IndexPreview>('POST', '/db/v1/tables/short/indexes/i/preview', {
    config: mockIndex(),
    keys: ['gone'],
  });
  expect(answer.status).toBe(404);
});

test('a preview is for those who may change the whole table', async () => {
  await using guarded = await startGuardedServer();
  await guarded.asAdmin('POST', '/db/v1/tables/recipes', {});
  await guarded.asAdmin('POST', '/db/v1/tables/recipes/batch', { inserts: documents });
  const path = '/db/v1/tables/recipes/indexes/meaning/preview';
  const ask = async (credential: string) =>
    (await guarded.as(credential, 'POST', path, { config: mockIndex() })).status;
  const owner = await guarded.user('owner', [table('recipes', 'admin')]);
  expect(await ask(owner)).toBe(200);
  expect(await ask(await guarded.user('writer', [table('recipes', 'write')]))).toBe(403);
  expect(await ask(await guarded.user('stranger', [table('plates', 'admin')]))).toBe(404);
  const { credential } = await guarded.key('owner', { row_filter: { recipes: { term: { title: 'Tea' } } } });
  expect(await ask(credential)).toBe(403);
});
