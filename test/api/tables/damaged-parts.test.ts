import { expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { openBehind } from '../../support/behind-the-server.ts';
import { until } from '../../support/fault/until.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const mock = { provider: 'mock', model: 'words', dimensions: 16 };
const indexes = {
  vectors: { type: 'embeddings', field: 'text', embedder: mock },
  windows: { type: 'embeddings', field: 'text', embedder: mock, chunker: { provider: 'service', text: {} } },
};
const pieces = { kind: 'chunk', field: 'text', chunk_size: 20 };

test.each(['enrichments', 'full_index'])(
  'what the server made of a document and the disk has damaged is made again when the document is written as it was (%s)',
  async (sync_level) => {
    await using server = await startTestServer();
    const path = '/db/v1/tables/t';
    await server.send('POST', path, { indexes });
    await server.send('PUT', `${path}/artifacts/pieces/enrichment`, pieces);
    const write = (level: string) =>
      server.send('POST', `${path}/batch`, { inserts: { a: { text: 'amber birch' } }, sync_level: level });
    expect((await write('full_index')).status).toBe(201);
    const shown = () => server.send('GET', `${path}/lookup/a?fields=_embeddings,_artifacts`);
    const whole = await shown();
    expect(Object.keys((whole.body as unknown as { _embeddings: object })._embeddings)).toEqual(['vectors', 'windows']);
    const [file] = [...new Bun.Glob('ranges/*/*/documents.db').scanSync({ cwd: server.directory })];
    {
      using database = openBehind(join(server.directory, file ?? ''));
      // The head of a part, with the hash of its source, stays as it is.
      const damage = 'UPDATE parts SET body = CAST(substr(body, 1, 24) || zeroblob(length(body) - 24) AS BLOB)';
      expect(database.run(damage).changes).toBe(3);
    }
    expect((await shown()).body).toMatchObject({ code: 'data_corrupted' });
    expect((await write(sync_level)).status).toBe(201);
    expect(await shown()).toMatchObject({ status: 200, body: whole.body });
  },
);

test('an index whose vectors could not be made of damaged chunks and documents says so, also after a restart, until they are written again', async () => {
  using place = new TemporaryDirectory();
  const path = '/db/v1/tables/t';
  const start = () => startTestServer({ directory: place.path });
  const near = { type: 'embeddings', source_artifact_name: 'vectors' };
  const vectors = {
    kind: 'embedding',
    source_artifact_name: 'pieces',
    producer_json: { type: 'embedder', config: mock },
  };
  const reasons = async (server: TestServer, index: string) => {
    const { body } = await server.send('GET', `${path}/indexes/${index}`);
    return (body as unknown as { status: { readiness: { pending_reasons: string[] } } }).status.readiness
      .pending_reasons;
  };
  const isShort = async (server: TestServer) =>
    (await Promise.all([reasons(server, 'near'), reasons(server, 'own')])).every((each) => each.join() === 'damaged');
  const found = async (server: TestServer, index: string) => {
    const search = { table: 't', semantic_search: 'amber', indexes: [index], limit: 10 };
    const { body } = await server.send('POST', '/db/v1/query', search);
    const [{ hits, partial }] = (body as unknown as { responses: [{ hits: { hits: object[] }; partial?: true }] })
      .responses;
    return [hits.hits.length, partial ?? false];
  };
  const inserts = Object.fromEntries(['a', 'b', 'c'].map((key) => [key, { text: `amber ${key}` }]));
  {
    await using server = await start();
    await server.send('POST', path);
    await server.send('PUT', `${path}/artifacts/pieces/enrichment`, pieces);
    expect((await server.send('POST', `${path}/batch`, { inserts, sync_level: 'full_index' })).status).toBe(201);
    const [file] = [...new Bun.Glob('ranges/*/*/documents.db').scanSync({ cwd: place.path })];
    {
      using database = openBehind(join(place.path, file ?? ''));
      const ordinalOf = (key: string) => `(SELECT ordinal FROM documents WHERE key = CAST('${key}' AS BLOB))`;
      database.run(`UPDATE parts SET crc = crc + 1 WHERE id % 4294967296 = ${ordinalOf('b')}`);
      database.run(`UPDATE documents SET crc = crc + 1 WHERE ordinal = ${ordinalOf('c')}`);
    }
    await server.send('PUT', `${path}/artifacts/vectors/enrichment`, vectors);
    expect((await server.send('POST', `${path}/indexes/near`, near)).status).toBe(201);
    const own = { type: 'embeddings', field: 'text', embedder: mock };
    expect((await server.send('POST', `${path}/indexes/own`, own)).status).toBe(201);
    await until(() => isShort(server));
    expect(await found(server, 'near')).toEqual([1, true]);
    expect(await found(server, 'own')).toEqual([2, true]);
    // To try again makes nothing of what is damaged.
    expect((await server.send('POST', `${path}/artifacts/vectors/reprocess`, {})).body).toMatchObject({
      reprocessed: 2,
    });
    await until(async () => {
      const { body } = await server.send('GET', `${path}/documents/b/artifacts`);
      const { artifacts } = body as unknown as { artifacts: { name: string }[] };
      const state = { state: 'failed', code: 'data_corrupted', attempts: 1 };
      return Bun.deepMatch(state, artifacts.find(({ name }) => name === 'vectors') ?? {});
    });
    expect(await found(server, 'near')).toEqual([1, true]);
  }
  await using server = await start();
  await until(() => isShort(server));
  expect([await found(server, 'near'), await found(server, 'own')]).toEqual([
    [1, true],
    [2, true],
  ]);
  await server.send('POST', `${path}/batch`, { inserts, sync_level: 'full_index' });
  await until(async () => !(await isShort(server)));
  expect([await reasons(server, 'near'), await reasons(server, 'own')]).toEqual([[], []]);
  expect([await found(server, 'near'), await found(server, 'own')]).toEqual([
    [3, false],
    [3, false],
  ]);
});

test.each([
  ['a byte is another one', "CAST(replace(CAST(body AS TEXT), 'zebra', 'zebrb') AS BLOB)"],
  ['nothing of it can be read', 'CAST(substr(body, 1, 8) || randomblob(length(body) - 8) AS BLOB)'],
])('a damaged list of edges is replaced whole, and nothing of it is taken over otherwise (%s)', async (_, body) => {
  await using server = await startTestServer();
  const path = '/db/v1/tables/t';
  const edge_types = [{ name: 'cites', field: 'refs' }, { name: 'to' }];
  await server.send('POST', path, { indexes: { g: { type: 'graph', edge_types } } });
  const batch = (more: object) => server.send('POST', `${path}/batch`, { sync_level: 'full_index', ...more });
  const edges = { g: { to: [{ target: 'zebra' }] } };
  await batch({ inserts: { a: { refs: 'b', _edges: edges }, b: {} } });
  const arrows = async () => {
    const { body: answer } = await server.send('GET', `${path}/indexes/g/edges?key=a`);
    return (answer as unknown as { edges: { target: string }[] }).edges.map(({ target }) => target);
  };
  expect(await arrows()).toEqual(['b', 'zebra']);
  const [file] = [...new Bun.Glob('ranges/*/*/documents.db').scanSync({ cwd: server.directory })];
  {
    using database = openBehind(join(server.directory, file ?? ''));
    expect(database.run(`UPDATE parts SET body = ${body}`).changes).toBe(1);
  }
  // Either keeps the edges that were given with the document.
  const refused = { status: 500, body: { code: 'data_corrupted', message: expect.stringContaining('"_edges.g"') } };
  expect(await batch({ inserts: { a: { refs: 'c' } } })).toMatchObject(refused);
  const operations = [{ op: '$set', path: 'refs', value: 'c' }];
  expect(await batch({ transforms: [{ key: 'a', operations }] })).toMatchObject(refused);
  // The sweep of what leads to a deleted document leaves it as it is.
  expect((await batch({ deletes: ['b'] })).status).toBe(201);
  expect(await batch({ inserts: { a: { refs: 'c' } } })).toMatchObject(refused);
  expect((await batch({ inserts: { a: { refs: 'c', _edges: edges } } })).status).toBe(201);
  expect(await arrows()).toEqual(['c', 'zebra']);
});

test('a filtered scan finds what an index lacks that was built while a document could not be read', async () => {
  using place = new TemporaryDirectory();
  const path = '/db/v1/tables/t';
  const start = () => startTestServer({ directory: place.path });
  const fileOf = (pattern: string) => {
    const [file] = [...new Bun.Glob(pattern).scanSync({ cwd: place.path, onlyFiles: false })];
    return join(place.path, file ?? '');
  };
  const shift = (by: string) => {
    using database = openBehind(fileOf('ranges/*/*/documents.db'));
    expect(database.run(`UPDATE documents SET crc = crc ${by} WHERE key = CAST('c' AS BLOB)`).changes).toBe(1);
  };
  {
    await using server = await start();
    await server.send('POST', path);
    const inserts = Object.fromEntries(['a', 'b', 'c'].map((key) => [key, { word: 'amber' }]));
    expect((await server.send('POST', `${path}/batch`, { inserts, sync_level: 'full_index' })).status).toBe(201);
  }
  rmSync(fileOf('ranges/*/*/indexes'), { recursive: true });
  shift('+ 1');
  await using server = await start();
  const filter = { filter_query: { term: { field: 'word', term: 'amber' } } };
  const found = async () => {
    const { body } = await server.send('POST', '/db/v1/query', { table: 't', ...filter, limit: 10 });
    const [{ hits, partial }] = (body as unknown as { responses: [{ hits: { hits: object[] }; partial?: true }] })
      .responses;
    return [hits.hits.length, partial ?? false];
  };
  await until(async () => Bun.deepEquals(await found(), [2, true]));
  shift('- 1');
  const { body } = await server.send<string>('POST', `${path}/lookup`, filter);
  expect(body.trim().split('\n')).toHaveLength(3);
});
