import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { decode } from '@msgpack/msgpack';
import { until } from '../../support/fault/until.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

interface Status {
  readiness: { state: string; complete: boolean };
  backfill_items_processed: number;
  source_coverage: { retrying: number; failed: number };
  doc_count: number;
  searchable_vectors: number;
}

const mock = { provider: 'mock', model: 'words', dimensions: 256 };
/** A sentence of four words is a chunk. */
const chunker = { provider: 'service', model: 'fixed', text: { target_tokens: 5, separator: '. ' } };
const chunked = { type: 'embeddings', field: 'text', embedder: mock, chunker, distance_metric: 'cosine' };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const createTable = (name: string, more: object = {}, index: object = chunked) =>
  server.send('POST', `/db/v1/tables/${name}`, { indexes: { parts: index }, ...more });
const write = (table: string, body: object, level = 'full_index') =>
  server.send<{ status?: string; code?: string }>('POST', `/db/v1/tables/${table}/batch`, {
    ...body,
    sync_level: level,
  });
const statusOf = async (table: string) =>
  (await server.send<{ status: Status }>('GET', `/db/v1/tables/${table}/indexes/parts`)).body.status;
const ask = (table: string, words: string, more: object = {}) =>
  server.send('POST', '/db/v1/query', { table, semantic_search: words, indexes: ['parts'], ...more });
/** Sentences of words that no other sentence has. */
const sentences = (name: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${name}${n} al${name}${n} be${name}${n} ga${name}${n}`).join('. ');

describe('an index with a chunker', () => {
  test('has a vector for each chunk, and finds a document by the nearest of them', async () => {
    await createTable('books');
    const inserts = { long: { text: sentences('l', 6) }, short: { text: sentences('s', 1) }, none: { text: '' } };
    expect(await write('books', { inserts })).toMatchObject({ status: 201 });
    expect(await statusOf('books')).toMatchObject({
      doc_count: 2,
      searchable_vectors: 7,
      readiness: { state: 'ready', complete: true },
    });
    for (const words of ['l0 all0', 'l5 gal5 bel5']) {
      expect(hitKeys(await ask('books', words, { limit: 1 }))).toEqual(['long']);
    }
    expect(hitKeys(await ask('books', 'l3 all3')).sort()).toEqual(['long', 'short']);
  });

  test.each(['full_index', 'enrichments'])(
    'has exactly the chunks of the last text, and embeds again what has changed alone (%s)',
    async (level) => {
      const table = `changed_${level}`;
      await createTable(table);
      await write(table, { inserts: { a: { text: sentences('v', 5) } } }, level);
      expect(await statusOf(table)).toMatchObject({ doc_count: 1, searchable_vectors: 5 });
      await write(table, { inserts: { a: { text: sentences('v', 2) } } }, level);
      expect(await statusOf(table)).toMatchObject({ doc_count: 1, searchable_vectors: 2 });
      const { backfill_items_processed: before } = await statusOf(table);
      await write(table, { inserts: { a: { text: `${sentences('v', 2)}. ${sentences('w', 1)}` } } }, level);
      const after = await statusOf(table);
      expect(after.searchable_vectors).toBe(3);
      // Under `enrichments` nothing is left for the follower.
      expect(after.backfill_items_processed - before).toBe(level === 'enrichments' ? 0 : 1);
      await write(table, { inserts: { a: { text: null } } }, level);
      expect(await statusOf(table)).toMatchObject({ doc_count: 0, searchable_vectors: 0 });
    },
  );

  test('is filled from the documents that were there before it, in every range', async () => {
    await server.send('POST', '/db/v1/tables/older', { num_shards: 3 });
    const keys = Array.from({ length: 60 }, (_, n) => `${['!', 'k', '~'][n % 3]}${n}`);
    const inserts = Object.fromEntries(keys.map((key, n) => [key, { text: sentences(`d${n}x`, 1 + (n % 4)) }]));
    await write('older', { inserts });
    expect((await server.send('POST', '/db/v1/tables/older/indexes/parts', chunked)).status).toBe(201);
    await until(async () => (await statusOf('older')).readiness.state === 'ready');
    expect(await statusOf('older')).toMatchObject({ doc_count: 60, searchable_vectors: 150 });
    expect(hitKeys(await ask('older', 'd59x3 ald59x3', { limit: 1 }))).toEqual(['~59']);
  });

  test('gives full pages of documents, whatever number of near chunks one of them has', async () => {
    await createTable('crowded', { num_shards: 3 });
    const crowd = Array.from({ length: 200 }, () => 'common words here').join('. ');
    const others = Array.from({ length: 30 }, (_, n) => [`other${n}`, { text: `common words other${n}` }]);
    await write('crowded', { inserts: { crowd: { text: crowd }, ...Object.fromEntries(others) } });
    const keys = hitKeys(await ask('crowded', 'common words here', { limit: 20 }));
    expect(keys[0]).toBe('crowd');
    expect(new Set(keys).size).toBe(20);
    const filtered = await ask('crowded', 'common words here', {
      limit: 20,
      filter_query: { match: 'other7', field: 'text' },
    });
    expect(hitKeys(filtered)).toEqual(['other7']);
    const hybrid = await ask('crowded', 'common words here', { limit: 5, full_text_search: { query: 'text:other7' } });
    expect(hitKeys(hybrid).slice(0, 2).sort()).toEqual(['crowd', 'other7']);
  });

  test('refuses a text with more chunks than a document may have, and takes the first ones where that is said', async () => {
    const single = { provider: 'service', text: { target_tokens: 1 } };
    await createTable('vast', {}, { ...chunked, chunker: single });
    const text = Array.from({ length: 4_200 }, (_, n) => `w${n}`).join(' ');
    expect(await write('vast', { inserts: { a: { text } } }, 'enrichments')).toMatchObject({
      status: 400,
      body: { code: 'enrichment_failed' },
    });
    expect(await write('vast', { inserts: { a: { text } } })).toMatchObject({ status: 202 });
    expect(await statusOf('vast')).toMatchObject({ doc_count: 0, source_coverage: { failed: 1 } });
    await createTable('first', {}, { ...chunked, chunker: { ...single, max_chunks: 3 } });
    await write('first', { inserts: { a: { text } } });
    expect(await statusOf('first')).toMatchObject({ doc_count: 1, searchable_vectors: 3 });
  });

  test('with sparse vectors has one for each chunk, and finds a document by the best of them', async () => {
    const sparse = {
      type: 'embeddings',
      sparse: true,
      field: 'text',
      embedder: { provider: 'mock', model: 'sparse' },
      chunker,
    };
    await createTable('terms', { num_shards: 3 }, sparse);
    const crowd = Array.from({ length: 200 }, () => 'common words here').join('. ');
    const others = Array.from({ length: 30 }, (_, n) => [`other${n}`, { text: `first part${n}. common words x${n}` }]);
    await write('terms', { inserts: { crowd: { text: crowd }, ...Object.fromEntries(others), none: { text: ' ' } } });
    expect(await statusOf('terms')).toMatchObject({ doc_count: 31, searchable_vectors: 260 });
    const keys = hitKeys(await ask('terms', 'common words here', { limit: 20, fields: ['_chunks'] }));
    expect([keys[0], new Set(keys).size]).toEqual(['crowd', 20]);
    const found = await ask('terms', 'x7', { fields: ['_chunks'] });
    expect(hitKeys(found)).toEqual(['other7']);
    expect(JSON.stringify(found.body)).toContain('"_content":"common words x7"');
    expect(JSON.stringify(found.body)).not.toContain('first part7');
    const lookup = await server.send<{ _embeddings: { parts: { indices: number[]; values: number[] }[] } }>(
      'GET',
      '/db/v1/tables/terms/lookup/other7?fields=_embeddings',
    );
    expect(lookup.body._embeddings.parts.map(({ indices, values }) => [indices.length, values.length])).toEqual([
      [2, 2],
      [3, 3],
    ]);
    const packed = await fetch(`${server.url}/db/v1/tables/terms/query`, {
      method: 'POST',
      body: JSON.stringify({ filter_query: { match: 'x7', field: 'text' }, fields: ['_embeddings'] }),
      headers: { 'content-type': 'application/json', accept: 'application/msgpack' },
    });
    const hits = [{ _id: 'other7', _source: { _embeddings: lookup.body._embeddings } }];
    expect(decode(await packed.bytes())).toMatchObject({ responses: [{ hits: { hits } }] });
    const { backfill_items_processed: before } = await statusOf('terms');
    await write('terms', { inserts: { other7: { text: 'and one. common words x7' } }, deletes: ['crowd'] });
    const after = await statusOf('terms');
    expect(after).toMatchObject({ doc_count: 30, searchable_vectors: 60 });
    expect(after.backfill_items_processed - before).toBe(1);
  });

  test('shows the vectors of all chunks', async () => {
    await createTable('shown');
    await write('shown', { inserts: { a: { text: sentences('q', 3) } } });
    const answer = await server.send<{ _embeddings: { parts: number[][] } }>(
      'GET',
      '/db/v1/tables/shown/lookup/a?fields=_embeddings',
    );
    expect(answer.body._embeddings.parts.map((vector) => vector.length)).toEqual([256, 256, 256]);
    const packed = await fetch(`${server.url}/db/v1/tables/shown/query`, {
      method: 'POST',
      body: JSON.stringify({ full_text_search: { match_all: {} }, fields: ['_embeddings'] }),
      headers: { 'content-type': 'application/json', accept: 'application/msgpack' },
    });
    interface Packed {
      responses: [{ hits: { hits: [{ _source: { _embeddings: { parts: Uint8Array[] } } }] } }];
    }
    const { _source } = (decode(await packed.bytes()) as Packed).responses[0].hits.hits[0];
    const unpacked = _source._embeddings.parts.map((bytes) => [...new Float32Array(bytes.slice().buffer)]);
    expect(unpacked).toEqual(answer.body._embeddings.parts.map((vector) => [...Float32Array.from(vector)]));
  });
});

interface Chunk {
  _chunk_id: number;
  _content: string;
  _start_char: number;
  _end_char: number;
  _start_offset: number;
  _end_offset: number;
}
type Chunks = Record<string, Chunk[]>;

describe('the chunks of a document', () => {
  const text = 'plum cake. café crème 😀 now. leek soup';
  const lookup = async (table: string, fields: string) =>
    (await server.send<{ _chunks?: Chunks }>('GET', `/db/v1/tables/${table}/lookup/a?fields=${fields}`)).body;
  const shownIn = (answer: { body: unknown }) => {
    const { responses } = answer.body as {
      responses: [{ hits: { hits: { _id: string; _source?: { _chunks?: Chunks } }[] } }];
    };
    return responses[0].hits.hits.map(({ _source }) => _source?._chunks?.parts_chunks?.map((chunk) => chunk._content));
  };

  test('are shown where they are named, with their places in the text, in characters and in bytes', async () => {
    await createTable('pieces', {}, { ...chunked, chunker: { ...chunker, provider: 'antfly' } });
    await write('pieces', { inserts: { a: { text } } });
    const { _chunks } = await lookup('pieces', '_chunks');
    const chunks = _chunks?.parts_chunks ?? [];
    expect(chunks.map((chunk) => chunk._content)).toEqual(['plum cake.', 'café crème 😀 now.', 'leek soup']);
    const characters = [...text];
    for (const [at, chunk] of chunks.entries()) {
      expect(chunk._chunk_id).toBe(at);
      expect(characters.slice(chunk._start_char, chunk._end_char).join('')).toBe(chunk._content);
      expect(Buffer.from(text).subarray(chunk._start_offset, chunk._end_offset).toString()).toBe(chunk._content);
    }
    expect(chunks[1]).toMatchObject({
      _id: `af1:chunk:${btoa('a').replaceAll('=', '')}:${btoa('parts_chunks').replaceAll('=', '')}:1`,
      _parent_doc_key: 'a',
      _artifact_name: 'parts_chunks',
      _source_field: 'text',
      _mime_type: 'text/plain',
      text: 'café crème 😀 now.',
      provenance: {
        document_id: 'a',
        artifact_name: 'parts_chunks',
        source_kind: 'field',
        source_field: 'text',
        source_hash: expect.stringMatching(/^[0-9a-f]{32}$/),
        chunk_index: 1,
        chunk_count: 3,
      },
    });
    for (const dotted of ['_chunks.parts_chunks', '_chunks.parts']) {
      expect((await lookup('pieces', dotted))._chunks).toEqual(_chunks as Chunks);
    }
    const contents = { parts_chunks: chunks.map(({ _content }) => ({ _content })) };
    for (const name of ['parts_chunks', 'parts', '*']) {
      expect((await lookup('pieces', `_chunks.${name}._content`))._chunks as object).toEqual(contents);
      expect(await lookup('pieces', `text,_chunks,-_chunks.${name}`)).toEqual({ text } as object);
    }
    expect(await lookup('pieces', '*')).toEqual({ text } as object);
    const scanned = await server.send<string>('POST', '/db/v1/tables/pieces/lookup', { fields: ['_chunks'] });
    expect(JSON.stringify(scanned.body)).toContain('leek soup');
  });

  test('of a hit are the one that found it; all of a document that was found by something else', async () => {
    await createTable('best');
    await write('best', { inserts: { a: { text }, b: { text: 'birch bark' } } });
    const best = await ask('best', 'a leek in a soup', { limit: 1, fields: ['_chunks'] });
    expect(shownIn(best)).toEqual([['leek soup']]);
    const words = { table: 'best', full_text_search: { query: 'text:birch' }, fields: ['_chunks'] };
    expect(shownIn(await server.send('POST', '/db/v1/query', words))).toEqual([['birch bark']]);
    const whole = await ask('best', 'a leek in a soup', { limit: 1 });
    expect(shownIn(whole)).toEqual([undefined]);
  });

  test.each([
    ['dense', {}],
    ['sparse', { sparse: true, distance_metric: undefined, embedder: { provider: 'mock', model: 'sparse' } }],
  ])('are told by the explanation of a score, alone and beside words (%s)', async (kind, more) => {
    interface Explained {
      description: string;
      details?: (Explained & { _chunk_id?: number; value: number })[];
    }
    interface Hit {
      _score: number;
      _explanation: Explained;
      _source: { _chunks: { parts_chunks: { _chunk_id: number }[] } };
    }
    const table = `explained-${kind}`;
    await createTable(table, {}, { ...chunked, ...more });
    await write(table, { inserts: { a: { text }, b: { text: 'birch bark' } } });
    const explain = async (more: object) => {
      const answer = await ask(table, 'a leek in a soup', {
        limit: 1,
        fields: ['_chunks'],
        explain: true,
        ...more,
      });
      return (answer.body as { responses: [{ hits: { hits: [Hit] } }] }).responses[0].hits.hits[0];
    };
    for (const more of [{}, { full_text_search: { query: 'text:leek' } }]) {
      const { _explanation, _source } = await explain(more);
      const leg = _explanation.details?.find(({ description }) => description.startsWith('parts: rank 1'));
      const [chunk] = leg?.details ?? [];
      const [shown] = _source._chunks.parts_chunks;
      expect(chunk?._chunk_id).toBe(shown?._chunk_id ?? -1);
      expect(chunk?.description).toContain(`chunk ${shown?._chunk_id} of "parts_chunks"`);
      expect(leg?.description).toContain(`score ${chunk?.value}`.slice(0, 11));
    }
  });

  test('are told of the rows of a join, too', async () => {
    await createTable('joined');
    await createTable('makers', {});
    await write('makers', { inserts: { ada: { name: 'Ada' } } });
    await write('joined', { inserts: { a: { text, maker: 'ada' } } });
    const join = { right_table: 'makers', on: { left_field: 'maker', right_field: '_id' } };
    const answer = await ask('joined', 'a leek in a soup', { join, explain: true, fields: ['maker', 'makers.name'] });
    const { hits } = (answer.body as { responses: [{ hits: { hits: { _source: object; _explanation: object }[] } }] })
      .responses[0].hits;
    expect(hits[0]?._source).toEqual({ maker: 'ada', 'makers.name': 'Ada' });
    expect(JSON.stringify(hits[0]?._explanation)).toContain('"_chunk_id":2');
  });

  test('of a template are those of what it renders', async () => {
    const template = '{{title}}. {{body}}';
    await createTable('rendered', {}, { ...chunked, field: undefined, template });
    await write('rendered', { inserts: { a: { title: 'Leek soup', body: 'Cut the leeks' } } });
    const { _chunks } = await lookup('rendered', '_chunks');
    expect(_chunks?.parts_chunks?.map((chunk) => chunk._content)).toEqual(['Leek soup.', 'Cut the leeks']);
  });
});
