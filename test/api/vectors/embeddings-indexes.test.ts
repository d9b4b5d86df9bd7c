import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../support/fault/until.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

interface Details {
  config: Record<string, unknown>;
  status: {
    index_type: string;
    readiness: { state: string };
    incarnation: string;
    doc_count: number;
    term_count: number;
    backfill_progress: number;
  };
  shard_status: Record<string, { doc_count: number }>;
}

const common = { description: '', version: 0, enrichments: [], mem_only: false };
const dense = { type: 'embeddings', external: true, dimension: 3 };
const sparse = { type: 'embeddings', external: true, sparse: true };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** Three documents, two of them with vectors, one with both kinds. */
const inserts = {
  apple: { n: 1, _embeddings: { taste: [1, 0, 0], tags: { '5': 0.5 } } },
  melon: { n: 2, _embeddings: { taste: [0, 1, 0] } },
  zest: { n: 3 },
};
const write = (table: string, body: object, to = server) =>
  to.send('POST', `/db/v1/tables/${table}/batch`, { ...body, sync_level: 'full_index' });

const create = (table: string, index: string, config: object) =>
  server.send('POST', `/db/v1/tables/${table}/indexes/${index}`, config);
const details = async (table: string, index: string, of = server) =>
  (await of.send<Details>('GET', `/db/v1/tables/${table}/indexes/${index}`)).body;
const docCount = async (table: string, index: string, of = server) =>
  (await details(table, index, of)).status.doc_count;
const isReady = async (table: string, index: string, of = server) =>
  (await details(table, index, of)).status.readiness.state === 'ready';

describe('an embeddings index', () => {
  test('is created with its whole configuration; the same again changes nothing, another is refused', async () => {
    await server.send('POST', '/db/v1/tables/made', {});
    const created = await create('made', 'taste', {
      ...dense,
      distance_metric: 'cosine',
      description: 'how it tastes',
    });
    const config = { ...common, ...dense, name: 'taste', sparse: false, distance_metric: 'cosine' };
    expect(created).toMatchObject({ status: 201, body: { ...config, description: 'how it tastes' } });
    const again = { ...dense, sparse: false, distance_metric: 'cosine', description: 'how it tastes' };
    expect((await create('made', 'taste', again)).status).toBe(200);
    expect(await create('made', 'taste', dense)).toMatchObject({ status: 409, body: { code: 'already_exists' } });
    expect((await create('made', 'tags', sparse)).body).toMatchObject({ name: 'tags', top_k: 10, min_weight: 0 });
    const { body } = await server.send<{ indexes: object }>('GET', '/db/v1/tables/made');
    expect(Object.keys(body.indexes)).toEqual(['full_text_index_v0', 'tags', 'taste']);
  });

  test('comes with its table, and is ready when it holds every vector that there is', async () => {
    const indexes = { taste: dense, tags: { ...sparse, mem_only: true } };
    await server.send('POST', '/db/v1/tables/whole', { num_shards: 4, indexes });
    for (const index of ['taste', 'tags']) {
      await until(() => isReady('whole', index));
      const { config, status, shard_status } = await details('whole', index);
      expect(config.name).toBe(index);
      expect(status).toMatchObject({ index_type: 'embeddings', doc_count: 0, backfill_progress: 1 });
      expect(Object.keys(shard_status)).toHaveLength(4);
    }
  });

  test.each([
    ['no dimension', { type: 'embeddings', external: true }, 400],
    ['a dimension that is no number', { ...dense, dimension: '3' }, 400],
    ['a field', { ...dense, field: 'text' }, 400],
    ['no embedder', { type: 'embeddings', field: 'text' }, 400],
    ['a misspelt member', { ...dense, distance_metrik: 'cosine' }, 400],
    ['an embedder without a model', { type: 'embeddings', field: 'text', embedder: { provider: 'ollama' } }, 400],
  ])('with %s is refused, also beside a table that then is not made', async (_, config, status) => {
    await server.send('POST', '/db/v1/tables/refusing', {});
    expect((await create('refusing', 'v', config)).status).toBe(status);
    expect((await server.send('GET', '/db/v1/tables/refusing/indexes/v')).status).toBe(404);
    const beside = await server.send('POST', '/db/v1/tables/unmade', { indexes: { v: config } });
    expect(beside.status).toBe(status);
    expect((await server.send('GET', '/db/v1/tables/unmade')).status).toBe(404);
  });
});

describe.each([1, 4])('over %i ranges, an embeddings index', (shards) => {
  const table = `of-${shards}`;
  beforeAll(async () => {
    await server.send('POST', `/db/v1/tables/${table}`, {
      num_shards: shards,
      indexes: { taste: dense, tags: sparse },
    });
  });

  test('counts the vectors of the documents that are there', async () => {
    expect((await write(table, { inserts })).status).toBe(201);
    expect([await docCount(table, 'taste'), await docCount(table, 'tags')]).toEqual([2, 1]);
    await write(table, { inserts: { apple: { n: 7 }, zest: { n: 8 } } });
    expect([await docCount(table, 'taste'), await docCount(table, 'tags')]).toEqual([2, 1]);
    await write(table, { inserts: { apple: { _embeddings: { tags: null } } }, deletes: ['melon'] });
    expect([await docCount(table, 'taste'), await docCount(table, 'tags')]).toEqual([1, 0]);
    const { shard_status } = await details(table, 'taste');
    expect(Object.values(shard_status).reduce((sum, shard) => sum + shard.doc_count, 0)).toBe(1);
  });

  test('that is added later starts empty, and takes what is written from then on', async () => {
    await create(table, 'later', dense);
    await until(() => isReady(table, 'later'));
    expect(await docCount(table, 'later')).toBe(0);
    await write(table, { inserts: { zest: { n: 9, _embeddings: { later: [1, 2, 3] } } } });
    expect(await docCount(table, 'later')).toBe(1);
  });

  test('stays as it is when the schema changes', async () => {
    const before = (await details(table, 'later')).status;
    const schema = { document_schemas: { doc: { schema: { properties: { n: { type: 'number' } } } } } };
    expect((await server.send('PUT', `/db/v1/tables/${table}/schema`, schema)).status).toBe(200);
    await until(async () => (await server.send('GET', `/db/v1/tables/${table}`)).body.migration === undefined);
    const after = (await details(table, 'later')).status;
    expect([after.incarnation, after.doc_count]).toEqual([before.incarnation, 1]);
  });

  test('takes its vectors along when it is dropped: another of its name starts empty', async () => {
    const { incarnation } = (await details(table, 'later')).status;
    expect((await server.send('DELETE', `/db/v1/tables/${table}/indexes/later`)).status).toBe(204);
    const refused = await write(table, { inserts: { zest: { _embeddings: { later: [1, 2, 3] } } } });
    expect(refused.status).toBe(400);
    await create(table, 'later', { ...dense, dimension: 2 });
    await until(() => isReady(table, 'later'));
    const { status } = await details(table, 'later');
    expect(status.doc_count).toBe(0);
    expect(status.incarnation).not.toBe(incarnation);
    await write(table, { inserts: { zest: { n: 10, _embeddings: { later: [1, 2] } } } });
    expect(await docCount(table, 'later')).toBe(1);
  });
});

describe('the vectors of a dropped index that are kept', () => {
  const drop = (table: string, index: string, more = '', of = server) =>
    of.send('DELETE', `/db/v1/tables/${table}/indexes/${index}${more}`);
  const nearest = async (table: string, taste: number[], of = server) => {
    const body = { embeddings: { taste }, limit: 1 };
    return hitKeys(await of.send('POST', `/db/v1/tables/${table}/query`, body));
  };

  test('are found by the next index of the name and dimension, with another metric and after a restart', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sundew-kept-'));
    try {
      const indexes = { taste: { ...dense, distance_metric: 'l2_squared' }, tags: sparse };
      {
        await using first = await startTestServer({ directory });
        await first.send('POST', '/db/v1/tables/t', { num_shards: 2, indexes });
        await write('t', { inserts: { ...inserts, long: { _embeddings: { taste: [9, 9, 1] } } } }, first);
        expect(await nearest('t', [1, 0.9, 0], first)).toEqual(['apple']);
        expect((await drop('t', 'taste', '?keep_vectors=true', first)).status).toBe(204);
        expect((await drop('t', 'tags', '?keep_vectors=true', first)).status).toBe(204);
        // Writes and deletions without an index change what the next one finds.
        await write('t', { deletes: ['melon'], inserts: { zest: { n: 4 } } }, first);
      }
      await using second = await startTestServer({ directory });
      const path = '/db/v1/tables/t/indexes';
      const other = { ...dense, distance_metric: 'cosine' };
      expect((await second.send('POST', `${path}/taste`, other)).status).toBe(201);
      expect((await second.send('POST', `${path}/tags`, sparse)).status).toBe(201);
      for (const [index, count] of Object.entries({ taste: 2, tags: 1 })) {
        await until(() => isReady('t', index, second));
        expect([index, await docCount('t', index, second)]).toEqual([index, count]);
      }
      expect(await nearest('t', [1, 0.9, 0], second)).toEqual(['long']);
      await write('t', { inserts: { zest: { _embeddings: { taste: [1, 0.9, 0] } } } }, second);
      expect(await nearest('t', [1, 0.9, 0], second)).toEqual(['zest']);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test('wait while indexes of another dimension come and go, and leave with the next drop of the name', async () => {
    await server.send('POST', '/db/v1/tables/waiting', { indexes: { taste: dense, tags: sparse } });
    expect((await write('waiting', { inserts })).status).toBe(201);
    expect((await drop('waiting', 'taste', '?keep_vectors=true')).status).toBe(204);
    expect((await drop('waiting', 'taste', '?keep_vectors=true')).status).toBe(404);
    await create('waiting', 'taste', { ...dense, dimension: 2 });
    await until(() => isReady('waiting', 'taste'));
    expect(await docCount('waiting', 'taste')).toBe(0);
    expect((await write('waiting', { inserts: { apple: { _embeddings: { taste: [1, 2] } } } })).status).toBe(201);
    expect((await drop('waiting', 'taste', '?keep_vectors=true')).status).toBe(204);
    await create('waiting', 'taste', dense);
    await until(() => isReady('waiting', 'taste'));
    expect(await docCount('waiting', 'taste')).toBe(2);
    expect((await drop('waiting', 'taste')).status).toBe(204);
    expect((await drop('waiting', 'taste')).status).toBe(404);
    for (const dimension of [2, 3]) {
      await create('waiting', 'taste', { ...dense, dimension });
      await until(() => isReady('waiting', 'taste'));
      expect(await docCount('waiting', 'taste')).toBe(0);
      expect((await drop('waiting', 'taste')).status).toBe(204);
    }
  });

  test('go without an index being made again', async () => {
    await server.send('POST', '/db/v1/tables/going', { indexes: { taste: dense, tags: sparse } });
    expect((await write('going', { inserts })).status).toBe(201);
    expect((await drop('going', 'taste', '?keep_vectors=true')).status).toBe(204);
    expect((await drop('going', 'taste')).status).toBe(204);
    expect(await drop('going', 'taste')).toMatchObject({ status: 404, body: { code: 'index_not_found' } });
    expect((await drop('going', 'taste', '?keep_vectors=perhaps')).status).toBe(400);
  });
});

test('after a restart every embeddings index holds what it held, the one in memory included', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sundew-restart-'));
  const indexes = { taste: dense, tags: sparse, ram: { ...dense, mem_only: true } };
  try {
    {
      await using first = await startTestServer({ directory });
      await first.send('POST', '/db/v1/tables/t', { num_shards: 2, indexes });
      await write('t', { inserts: { ...inserts, zest: { _embeddings: { ram: [0, 0, 1] } } } }, first);
      await write('t', { inserts: { other: { n: 4 } } }, first);
    }
    await using second = await startTestServer({ directory });
    for (const [index, count] of Object.entries({ taste: 2, tags: 1, ram: 1 })) {
      await until(() => isReady('t', index, second));
      expect([index, await docCount('t', index, second)]).toEqual([index, count]);
    }
    const nearest = await second.send('POST', '/db/v1/query', {
      table: 't',
      embeddings: { taste: [0, 0.9, 0.1] },
      limit: 1,
    });
    expect(hitKeys(nearest)).toEqual(['melon']);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
