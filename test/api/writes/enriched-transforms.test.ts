import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

/** Transforms under `"sync_level": "enrichments"`: what they leave is embedded before they are committed. */

interface Status {
  backfill_items_processed: number;
  source_coverage: { failed: number };
  searchable_vectors: number;
}

const embedder = { provider: 'mock', model: 'words', dimensions: 64 };
const chunker = { provider: 'service', text: { target_tokens: 4, separator: '. ' } };
const managed = { type: 'embeddings', field: 'text', embedder, distance_metric: 'cosine' };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  const indexes = { whole: managed, parts: { ...managed, chunker } };
  await server.send('POST', '/db/v1/tables/notes', { num_shards: 3, indexes });
  await server.send('PUT', '/db/v1/tables/notes/artifacts/copy/enrichment', { kind: 'asset', field: 'text' });
});
afterAll(() => server[Symbol.asyncDispose]());

const write = (body: object, sync_level = 'enrichments') =>
  server.send<Record<string, unknown>>('POST', '/db/v1/tables/notes/batch', { ...body, sync_level });
const transform = (key: string, ...operations: object[]) => write({ transforms: [{ key, operations }] });
const set = (value: unknown, path = '$.text') => ({ op: '$set', path, value });
const producedBy = async (index: string) =>
  (await server.send<{ status: Status }>('GET', `/db/v1/tables/notes/indexes/${index}`)).body.status
    .backfill_items_processed;
const lookup = async (key: string, fields = '*') =>
  (await server.send<Record<string, unknown>>('GET', `/db/v1/tables/notes/lookup/${key}?fields=${fields}`)).body;
const nearest = async (words: string) =>
  hitKeys(
    await server.send('POST', '/db/v1/query', { table: 'notes', semantic_search: words, indexes: ['parts'], limit: 1 }),
  );

describe('a transform that waits for its enrichments', () => {
  test('has everything made before it is committed, and leaves nothing to be made', async () => {
    await write({ inserts: { a: { text: 'plum cake', n: 1 }, b: { text: 'leek soup' } } });
    expect(await transform('a', set('amber birch cedar. dune ember fern'))).toMatchObject({
      status: 201,
      body: { transformed: 1 },
    });
    expect(await nearest('dune ember fern')).toEqual(['a']);
    const { _embeddings, _artifacts } = (await lookup('a', '_embeddings,_artifacts')) as {
      _embeddings: { whole: number[]; parts: number[][] };
      _artifacts: { copy: { value: string } };
    };
    expect([_embeddings.whole.length, _embeddings.parts.length]).toEqual([64, 2]);
    expect(_artifacts.copy.value).toBe('amber birch cedar. dune ember fern');
    // Members that are not part of the text cost nothing.
    expect(await transform('a', { op: '$inc', path: '$.n', value: 1 })).toMatchObject({ body: { transformed: 1 } });
    expect(await lookup('a')).toMatchObject({ n: 2 });
    expect([await producedBy('whole'), await producedBy('parts')]).toEqual([0, 0]);
  });

  test('of a document that the same write deletes first has it made again', async () => {
    await write({ inserts: { again: { text: 'quince jelly' } } });
    const operations = [set('quince jelly')];
    const answer = await write({ deletes: ['again'], transforms: [{ key: 'again', operations, upsert: true }] });
    expect(answer).toMatchObject({ status: 201, body: { deleted: 1, transformed: 1 } });
    const { _embeddings, _artifacts } = (await lookup('again', '_embeddings,_artifacts')) as Record<string, object>;
    expect([Object.keys(_embeddings ?? {}).sort(), Object.keys(_artifacts ?? {})]).toEqual([
      ['parts', 'whole'],
      ['copy'],
    ]);
    expect([await producedBy('whole'), await producedBy('parts')]).toEqual([0, 0]);
  });

  test('is rejected with the whole write where something cannot be made', async () => {
    await write({ inserts: { c: { text: 'walnut bread' }, d: { text: 'rye bread' } } });
    const refused = await write({
      inserts: { e: { text: 'barley' } },
      transforms: [
        { key: 'c', operations: [set('oat bread')] },
        { key: 'd', operations: [set('!!!')] },
      ],
    });
    expect(refused).toMatchObject({ status: 400, body: { code: 'enrichment_failed' } });
    expect([await lookup('c'), await lookup('d')]).toEqual([{ text: 'walnut bread' }, { text: 'rye bread' }]);
    expect((await lookup('e')).code).toBe('key_not_found');
    expect(await nearest('oat')).not.toEqual(['c']);
  });

  test('that comes to nothing, or makes a document, or follows another of its document, is enriched as it turns out', async () => {
    await write({ inserts: { f: { text: 'red', n: 'x' } } });
    const answer = await write({
      inserts: { g: { text: 'never seen' } },
      transforms: [
        { key: 'f', operations: [{ op: '$inc', path: '$.n', value: 1 }] },
        { key: 'nobody', operations: [set('gone')] },
        { key: 'g', operations: [set('violet')] },
        { key: 'h', upsert: true, operations: [set('indigo')] },
      ],
    });
    expect(answer).toMatchObject({ status: 201, body: { inserted: 1, transformed: 2 } });
    expect([await nearest('violet'), await nearest('indigo')]).toEqual([['g'], ['h']]);
    expect(await lookup('g', '_artifacts.copy')).toMatchObject({ _artifacts: { copy: { value: 'violet' } } });
    // Back to the text that was there before the write.
    await write({
      inserts: { g: { text: 'something else' } },
      transforms: [{ key: 'g', operations: [set('violet')] }],
    });
    expect(await lookup('g', '_artifacts.copy')).toMatchObject({ _artifacts: { copy: { value: 'violet' } } });
    expect(await nearest('violet')).toEqual(['g']);
    expect([await producedBy('whole'), await producedBy('parts')]).toEqual([0, 0]);
  });

  test('beside another of its document is made for what both leave', async () => {
    await write({ inserts: { i: { text: 'start', n: 0 } } });
    const add = (word: string) => transform('i', set(word), { op: '$inc', path: '$.n', value: 1 });
    const answers = await Promise.all([add('first'), add('second')]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    const { text, n } = (await lookup('i')) as { text: string; n: number };
    expect(n).toBe(2);
    expect(await lookup('i', '_artifacts.copy')).toMatchObject({ _artifacts: { copy: { value: text } } });
    expect(await nearest(text)).toEqual(['i']);
  });
});
