import { describe, expect, test } from 'bun:test';
import { decodeMulti, encode } from '@msgpack/msgpack';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const msgpack = 'application/msgpack';
const table = '/db/v1/tables/books';
const vectors = { a: [1, 0, 0.5, -1], b: [0, 1, 0, 0.25] };

function floats(values: readonly number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}

function numbers(bytes: unknown): number[] {
  return [...new Float32Array((bytes as Uint8Array).slice().buffer)];
}

/** Sends MessagePack and asks for it. */
async function sendPacked(server: TestServer, path: string, request: unknown) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    body: encode(request),
    headers: { 'content-type': msgpack, accept: msgpack },
  });
  const bytes = await response.bytes();
  const isPacked = response.headers.get('content-type') === msgpack;
  const body: unknown = isPacked ? [...decodeMulti(bytes)][0] : JSON.parse(new TextDecoder().decode(bytes));
  return { status: response.status, isPacked, bytes, body };
}

async function loaded(): Promise<TestServer> {
  const server = await startTestServer();
  await server.send('POST', table, {
    indexes: { dense: { type: 'embeddings', external: true, dimension: 4, distance_metric: 'cosine' } },
  });
  const inserts = {
    a: { title: 'Tea', pages: 12, rating: 4.5, tags: ['hot', 'ü'], _embeddings: { dense: floats(vectors.a) } },
    b: { title: 'Coffee', pages: -3, rating: null, _embeddings: { dense: floats(vectors.b) } },
  };
  const written = await sendPacked(server, `${table}/batch`, { inserts, sync_level: 'full_index' });
  expect([written.status, written.body]).toMatchObject([201, { inserted: 2 }]);
  return server;
}

describe('MessagePack', () => {
  test('what is written with it reads back as what is written with JSON', async () => {
    await using server = await loaded();
    const asJson = await server.send('GET', `${table}/lookup/a?fields=title,pages,rating,tags,_embeddings`);
    expect(asJson.body).toEqual({
      title: 'Tea',
      pages: 12,
      rating: 4.5,
      tags: ['hot', 'ü'],
      _embeddings: { dense: vectors.a },
    });
  });

  test('a query has the same answer in both forms, vectors binary', async () => {
    await using server = await loaded();
    const request = {
      full_text_search: { match_all: {} },
      order_by: [{ field: 'pages' }],
      fields: ['title', '_embeddings'],
      count: true,
    };
    const packed = await sendPacked(server, `${table}/query`, request);
    const asJson = await server.send('POST', `${table}/query`, request);
    type Hits = { responses: { hits: { hits: { _source: { _embeddings: { dense: unknown } } }[] } }[] };
    const answer = packed.body as Hits;
    for (const { _source } of answer.responses[0]?.hits.hits ?? []) {
      _source._embeddings.dense = numbers(_source._embeddings.dense);
    }
    const timeless = (body: unknown) =>
      JSON.parse(JSON.stringify(body).replaceAll(/"(?:took|\w+_ms)":[\d.]+/g, '"t":0'));
    expect([packed.status, timeless(answer)]).toEqual([200, timeless(asJson.body)]);
    const nearest = await sendPacked(server, `${table}/query`, {
      embeddings: { dense: floats(vectors.b) },
      indexes: ['dense'],
      limit: 1,
    });
    expect(nearest.body).toMatchObject({ responses: [{ hits: { hits: [{ _id: 'b' }] } }] });
  });

  test('an explanation may nest deeper than a document can', async () => {
    await using server = await loaded();
    const tea = { match: 'tea', field: 'title' };
    let node: object = tea;
    for (let level = 0; level < 20; level += 1) node = { bool: { must: [node, tea, tea], should: [tea], boost: 1.5 } };
    const request = { full_text_search: node, explain: true, fields: [] };
    const asJson = await server.send<{ responses: [{ hits: object }] }>('POST', `${table}/query`, request);
    const packed = await sendPacked(server, `${table}/query`, request);
    expect(packed).toMatchObject({ status: 200, isPacked: true });
    expect((packed.body as typeof asJson.body).responses[0].hits).toEqual(asJson.body.responses[0].hits);
  });

  test('writes of every kind are answered in it', async () => {
    await using server = await loaded();
    const writes: [path: string, body: object, answer: object][] = [
      [`${table}/batch`, { inserts: { c: { n: 1 } } }, { status: 'committed', inserted: 1 }],
      ['/db/v1/batch', { tables: { books: { deletes: ['c'] } } }, { tables: { books: { deleted: 1 } } }],
      [`${table}/merge`, { records: { a: { title: 'Tea' } } }, { status: 'success' }],
      [
        '/db/v1/transactions/commit',
        { read_set: [{ table: 'books', key: 'd', version: '0' }], tables: { books: { inserts: { d: {} } } } },
        { status: 'committed' },
      ],
      [
        '/db/v1/transactions/commit',
        { read_set: [{ table: 'books', key: 'd', version: '0' }], tables: { books: { deletes: ['d'] } } },
        { status: 'aborted', conflict: { key: 'd' } },
      ],
    ];
    for (const [path, body, answer] of writes) {
      expect(await sendPacked(server, path, body)).toMatchObject({ isPacked: true, body: answer });
    }
  });

  test('a scan is one value after another', async () => {
    await using server = await loaded();
    const { bytes } = await sendPacked(server, `${table}/lookup`, { fields: ['title', '_embeddings'] });
    const documents = [...decodeMulti(bytes)] as { key: string; title: string; _embeddings: { dense: Uint8Array } }[];
    expect(documents.map(({ key, title, _embeddings }) => [key, title, numbers(_embeddings.dense)])).toEqual([
      ['a', 'Tea', vectors.a],
      ['b', 'Coffee', vectors.b],
    ]);
  });

  test('errors are JSON, and what JSON refuses is refused', async () => {
    await using server = await loaded();
    const unknown = await sendPacked(server, '/db/v1/tables/absent/batch', { inserts: {} });
    expect([unknown.status, unknown.isPacked, unknown.body]).toMatchObject([404, false, { code: 'table_not_found' }]);
    const twice = Uint8Array.from([0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2]);
    const refused = await fetch(`${server.url}${table}/batch`, {
      method: 'POST',
      body: twice,
      headers: { 'content-type': msgpack },
    });
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'invalid_json' }]);
    const other = await fetch(`${server.url}${table}/schema`, {
      method: 'PUT',
      body: encode({}),
      headers: { 'content-type': msgpack },
    });
    expect([other.status, await other.json()]).toMatchObject([415, { code: 'unsupported_media_type' }]);
  });

  test('embeddings are binary float32', async () => {
    const models = Bun.fileURLToPath(new URL('../../fixtures/models', import.meta.url));
    await using server = await startTestServer({ set: { '--models-dir': models } });
    const request = { model: 'tiny-bert', input: ['tea', 'coffee'] };
    const packed = await sendPacked(server, '/ai/v1/embeddings', request);
    const asJson = await server.send<{ data: { embedding: number[] }[] }>('POST', '/ai/v1/embeddings', request);
    const data = (packed.body as { data: { embedding: Uint8Array }[] }).data;
    expect(data.map(({ embedding }) => numbers(embedding))).toEqual(asJson.body.data.map(({ embedding }) => embedding));
  });

  test('a batch may be compressed', async () => {
    await using server = await loaded();
    const body = Bun.gzipSync(Buffer.from(JSON.stringify({ inserts: { c: { title: 'Cocoa' } } })));
    const response = await fetch(`${server.url}${table}/batch`, {
      method: 'POST',
      body,
      headers: { 'content-encoding': 'gzip' },
    });
    expect([response.status, await response.json()]).toMatchObject([201, { inserted: 1 }]);
  });
});
