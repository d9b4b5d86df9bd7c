import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { openBehind } from '../../support/behind-the-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

setDefaultTimeout(120_000);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const indexes = {
  taste: { type: 'embeddings', external: true, dimension: 3 },
  angle: { type: 'embeddings', external: true, dimension: 2, distance_metric: 'cosine' },
  'my.tags': { type: 'embeddings', external: true, sparse: true },
};

let tables = 0;
async function newTable(more: object = {}, target = server): Promise<string> {
  tables += 1;
  const path = `/db/v1/tables/vectors-${tables}`;
  expect((await target.send('POST', path, { indexes, ...more })).status).toBe(200);
  return path;
}

async function insert(path: string, inserts: object, target = server): Promise<void> {
  expect(await target.send('POST', `${path}/batch`, { inserts })).toMatchObject({ status: 201 });
}

/** The stored rows: the document, and the vectors beside it. */
async function read(path: string, key: string, fields = '*,_embeddings', target = server): Promise<unknown> {
  const { body } = await target.send('GET', `${path}/lookup/${key}?fields=${encodeURIComponent(fields)}`);
  return body;
}

const packFloats = (values: number[]) => Buffer.from(Float32Array.from(values).buffer).toString('base64');
const packIndices = (values: number[]) => Buffer.from(Uint32Array.from(values).buffer).toString('base64');

describe.each([1, 4])('vectors over %d ranges', (num_shards) => {
  test.each<[string, unknown, unknown]>([
    ['taste', [0.1, -2, 3e-5], [0.1, -2, 3e-5]],
    ['taste', packFloats([0.1, -2, 3e-5]), [0.1, -2, 3e-5]],
    ['my.tags', { '7': 0.25, '3': 1.5 }, { indices: [3, 7], values: [1.5, 0.25] }],
    ['my.tags', { indices: [3, 7], values: [1.5, 0.25] }, { indices: [3, 7], values: [1.5, 0.25] }],
    [
      'my.tags',
      { packed_indices: packIndices([3, 7]), packed_values: packFloats([1.5, 0.25]) },
      { indices: [3, 7], values: [1.5, 0.25] },
    ],
  ])('%s takes %j', async (index, sent, stored) => {
    const path = await newTable({ num_shards });
    await insert(path, { key: { n: 1, _embeddings: { [index]: sent } } });
    expect(await read(path, 'key')).toEqual({ n: 1, _embeddings: { [index]: stored } });
  });

  test('a vector stays until it is replaced, deleted, or its document goes', async () => {
    const path = await newTable({ num_shards });
    const both = { taste: [1, 2, 3], angle: [0, 1] };
    const keys = ['a', 'h', 'm', 'z'];
    await insert(path, Object.fromEntries(keys.map((key) => [key, { _embeddings: both }])));
    await insert(path, { a: { n: 2 }, h: { _embeddings: {} }, m: { _embeddings: { angle: null } } });
    await server.send('POST', `${path}/batch`, {
      deletes: ['z'],
      transforms: [{ key: 'a', operations: [{ op: '$set', path: 'n', value: 3 }] }],
    });
    await insert(path, { z: { again: true, _embeddings: { taste: null } } });
    expect(await read(path, 'a')).toEqual({ n: 3, _embeddings: both });
    expect(await read(path, 'h')).toEqual({ _embeddings: both });
    expect(await read(path, 'm')).toEqual({ _embeddings: { taste: [1, 2, 3] } });
    expect(await read(path, 'z')).toEqual({ again: true });
  });

  test('a merge writes what differs, and nothing else', async () => {
    const path = await newTable({ num_shards });
    const records = (x: number) => ({
      a: { n: 1, _embeddings: { taste: [1, 0, 0] } },
      k: { n: 1, _embeddings: { taste: [x, 0, 0] } },
      z: { n: 1 },
    });
    const merge = async (body: unknown) => (await server.send('POST', `${path}/merge`, body)).body;
    expect(await merge({ records: records(1) })).toMatchObject({ upserted: 3, skipped: 0 });
    expect(await merge({ records: records(2), dry_run: true })).toMatchObject({ upserted: 0, skipped: 2 });
    expect(await merge({ records: records(2) })).toMatchObject({ upserted: 1, skipped: 2 });
    expect(await merge({ records: { a: { n: 1 }, k: { n: 1 }, z: { n: 1 } } })).toMatchObject({ skipped: 3 });
    expect(await merge({ records: { ...records(2), a: { n: 1, _embeddings: { taste: null } } } })).toMatchObject({
      upserted: 1,
      skipped: 2,
    });
    expect(await read(path, 'a')).toEqual({ n: 1 });
    expect(await read(path, 'k')).toEqual({ n: 1, _embeddings: { taste: [2, 0, 0] } });
  });

  test('vectors are shown where they are named', async () => {
    const path = await newTable({ num_shards });
    const _embeddings = { taste: [1, 2, 3], 'my.tags': { '4': 0.5 } };
    const inserts = { a: { n: 1, _embeddings }, m: { n: 1 }, z: { n: 2 } };
    await server.send('POST', `${path}/batch`, { inserts, sync_level: 'full_text' });
    expect(await read(path, 'a', '')).toEqual({ n: 1 });
    expect(await read(path, 'a', '_embeddings.taste')).toEqual({ _embeddings: { taste: [1, 2, 3] } });
    expect(await read(path, 'a', 'n,_embeddings,-_embeddings.taste')).toEqual({
      n: 1,
      _embeddings: { 'my.tags': { indices: [4], values: [0.5] } },
    });
    expect(await read(path, 'z')).toEqual({ n: 2 });
    const { body } = await server.send<string>('POST', `${path}/lookup`, { fields: ['n', '_embeddings.my.tags'] });
    const lines = body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toEqual([
      { _id: 'a', key: 'a', n: 1, _embeddings: { 'my.tags': { indices: [4], values: [0.5] } } },
      { _id: 'm', key: 'm', n: 1 },
      { _id: 'z', key: 'z', n: 2 },
    ]);
    const query = { full_text_search: { query: 'n:1' }, fields: ['_embeddings.taste'] };
    const found = await server.send('POST', `${path}/query`, query);
    const { hits } = (found.body.responses as { hits: { hits: { _id: string; _source: unknown }[] } }[])[0]?.hits ?? {};
    expect(hits?.map(({ _id, _source }) => [_id, _source])).toEqual([
      ['a', { _embeddings: { taste: [1, 2, 3] } }],
      ['m', {}],
    ]);
  });
});

test('a refused vector refuses the whole batch, and says where', async () => {
  const path = await newTable({ num_shards: 4 });
  const infinite = Buffer.from(Float32Array.of(1, Number.POSITIVE_INFINITY, 0).buffer).toString('base64');
  const refused: [embeddings: unknown, place: string][] = [
    [{ taste: [1, 2] }, '"_embeddings.taste" has dimension 2; the index takes dimension 3'],
    [{ taste: Array(100_000).fill(1) }, '"_embeddings.taste" has dimension 100000'],
    [{ taste: infinite }, '"_embeddings.taste" has a value that is NaN, infinite'],
    [{ taste: [1e39, 0, 0] }, '"_embeddings.taste" has a value that is NaN, infinite'],
    [{ taste: [8e30, 1, 0] }, '"_embeddings.taste" is too long'],
    [{ angle: [0, 0] }, '"_embeddings.angle" is the zero vector'],
    [{ 'my.tags': { indices: [1, 1], values: [1, 2] } }, '"_embeddings.my.tags" has the index 1 twice'],
    [{ full_text_index_v0: [1] }, '"_embeddings.full_text_index_v0" names an index that is not an embeddings index'],
    [{ nothing: null }, '"_embeddings.nothing" names no index of the table'],
    [[1], '"_embeddings" must be an object'],
  ];
  for (const [_embeddings, place] of refused) {
    for (const [route, member] of [
      ['batch', 'inserts'],
      ['merge', 'records'],
    ] as const) {
      const body = { [member]: { a: { n: 1 }, z: { n: 1, _embeddings } } };
      const answer = await server.send('POST', `${path}/${route}`, body);
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_embedding' } });
      expect(answer.body.error ?? answer.body.message).toContain(`document "z": ${place}`);
    }
  }
  const { body } = await server.send('GET', path);
  expect(body).toMatchObject({ storage_status: { empty: true } });
});

test('vectors survive a restart; those of a dropped index are gone, and its successor begins without', async () => {
  const directory = join(server.directory, 'of-its-own');
  let own = await startTestServer({ directory });
  const path = await newTable({}, own);
  await insert(path, { a: { _embeddings: { taste: [1, 2, 3], angle: [1, 0] } } }, own);
  expect((await own.send('DELETE', `${path}/indexes/taste`)).status).toBeLessThan(300);
  expect(await read(path, 'a', undefined, own)).toEqual({ _embeddings: { angle: [1, 0] } });
  await own[Symbol.asyncDispose]();
  own = await startTestServer({ directory });
  expect((await own.send('POST', `${path}/indexes/taste`, indexes.taste)).status).toBe(201);
  expect(await read(path, 'a', undefined, own)).toEqual({ _embeddings: { angle: [1, 0] } });
  await insert(path, { a: { _embeddings: { taste: [3, 2, 1] } } }, own);
  expect(await read(path, 'a', undefined, own)).toEqual({ _embeddings: { taste: [3, 2, 1], angle: [1, 0] } });
  await own[Symbol.asyncDispose]();
});

test('a document that has expired leaves no vectors to the next of its key', async () => {
  const clock = new FakeClock();
  await using own = await startTestServer({ clock });
  const path = await newTable({ schema: { ttl_duration: '1h' } }, own);
  await insert(path, { a: { _embeddings: { taste: [1, 2, 3] } } }, own);
  clock.jump(3_600_001);
  await insert(path, { a: { n: 1 } }, own);
  expect(await read(path, 'a', undefined, own)).toEqual({ n: 1 });
});

test('a vector that was damaged on disk fails the read that shows it, and the scrub finds it', async () => {
  const clock = new FakeClock();
  await using own = await startTestServer({ clock, environment: { SUNDEW__STORAGE__SCRUB_INTERVAL: '1s' } });
  const path = await newTable({}, own);
  await insert(path, { a: { n: 1, _embeddings: { taste: [1, 2, 3] } }, b: { _embeddings: { taste: [1, 2, 3] } } }, own);
  const [file] = [...new Bun.Glob('ranges/*/*/documents.db').scanSync({ cwd: own.directory })];
  using database = openBehind(join(own.directory, file ?? ''));
  database.run('UPDATE parts SET body = zeroblob(20) WHERE id & 4294967295 = 1');
  expect(await read(path, 'a', undefined, own)).toMatchObject({ code: 'data_corrupted' });
  expect(await read(path, 'a', 'n', own)).toEqual({ n: 1 });
  expect(await read(path, 'b', undefined, own)).toEqual({ _embeddings: { taste: [1, 2, 3] } });
  const found = () =>
    own.logLines.filter((line) => line.includes('a stored document or vector does not match its checksum'));
  await clock.advance(1_000);
  await until(async () => {
    await clock.advance(20);
    return found().length > 0;
  });
  expect(found()).toHaveLength(1);
});
