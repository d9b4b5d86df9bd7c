import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { until } from '../../support/fault/until.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

interface Status {
  readiness: { state: string; complete: boolean; pending_reasons: string[] };
  milestones: { complete: { reached: boolean; blockers: string[] } };
  backfill_items_processed: number;
  source_coverage: { produced: number; retrying: number; failed: number; config_fingerprint: string };
  doc_count: number;
  backfill_state: string;
  backfill_progress: number;
  error: string;
}
interface Details {
  config: Record<string, unknown>;
  status: Status;
  shard_status: Record<string, Status>;
}
interface Written {
  status?: string;
  error?: string;
}

const mock = { provider: 'mock', model: 'words', dimensions: 256 };
const managed = { type: 'embeddings', field: 'text', embedder: mock };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const createTable = (name: string, indexes: object = { words: managed }, more: object = {}) =>
  server.send('POST', `/db/v1/tables/${name}`, { indexes, ...more });
const addIndex = (table: string, name: string, config: object) =>
  server.send<Record<string, unknown>>('POST', `/db/v1/tables/${table}/indexes/${name}`, config);
const write = (table: string, body: object, level = 'full_index') =>
  server.send<Written>('POST', `/db/v1/tables/${table}/batch`, { ...body, sync_level: level });
const details = async (table: string, index = 'words') =>
  (await server.send<Details>('GET', `/db/v1/tables/${table}/indexes/${index}`)).body;
const statusOf = async (table: string, index = 'words') => (await details(table, index)).status;
const isReady = async (table: string, index = 'words') => (await statusOf(table, index)).readiness.state === 'ready';
const untilReady = (table: string, index = 'words') => until(() => isReady(table, index));

/** The stored vector of a document. */
async function vectorOf(table: string, key: string, index = 'words'): Promise<number[] | undefined> {
  const path = `/db/v1/tables/${table}/lookup/${key}?fields=_embeddings`;
  const { body } = await server.send<{ _embeddings?: Record<string, number[]> }>('GET', path);
  return body._embeddings?.[index];
}

async function nearest(table: string, to: string, limit = 1): Promise<string[]> {
  const embeddings = { words: await vectorOf(table, to) };
  return hitKeys(await server.send('POST', '/db/v1/query', { table, indexes: ['words'], embeddings, limit }));
}

describe('a managed index', () => {
  test('finds the length of its vectors, and has one for each document as soon as the write is answered', async () => {
    await createTable('fresh');
    expect((await details('fresh')).config).toMatchObject({
      external: false,
      sparse: false,
      field: '$.text',
      dimension: 256,
      embedder: mock,
    });
    const inserts = { soup: { text: 'leek soup' }, cake: { text: 'plum cake' }, stew: { text: 'leek stew' } };
    expect(await write('fresh', { inserts })).toMatchObject({ status: 201 });
    expect((await nearest('fresh', 'soup', 2)).sort()).toEqual(['soup', 'stew']);
    expect(await vectorOf('fresh', 'cake')).toHaveLength(256);
    const asked = { table: 'fresh', semantic_search: 'a leek in a soup', limit: 1 };
    expect(hitKeys(await server.send('POST', '/db/v1/query', asked))).toEqual(['soup']);
    expect(await statusOf('fresh')).toMatchObject({ doc_count: 3, readiness: { state: 'ready', complete: true } });
  });

  test('is filled from the documents that were there before it, range by range', async () => {
    await createTable('older', {}, { num_shards: 3 });
    const keys = Array.from({ length: 300 }, (_, n) => `${['!', 'k', '~'][n % 3]}${n}`);
    await write('older', { inserts: Object.fromEntries(keys.map((key, n) => [key, { text: `word${n} common` }])) });
    expect((await addIndex('older', 'words', managed)).status).toBe(201);
    await untilReady('older');
    const { status, shard_status: shards } = await details('older');
    expect(status).toMatchObject({ doc_count: 300, backfill_progress: 1, backfill_state: 'ready' });
    expect(Object.values(shards).map(({ doc_count }) => doc_count)).toEqual([100, 100, 100]);
    expect(await nearest('older', 'k1', 10)).toContain('k1');
  });

  test('embeds a text once: other members, equal puts and merges cost nothing; another text is embedded', async () => {
    await createTable('same');
    const produced = async () => (await statusOf('same')).backfill_items_processed;
    await write('same', { inserts: { a: { text: 'amber', n: 1 }, b: { text: 'birch' } } });
    const [first, before] = [await vectorOf('same', 'a'), await produced()];
    expect(before).toBe(2);
    await write('same', { inserts: { a: { text: 'amber', n: 2 } } });
    await write('same', { transforms: [{ key: 'a', operations: [{ op: '$inc', path: 'n', value: 1 }] }] });
    expect([await vectorOf('same', 'a'), await produced()]).toEqual([first, before]);
    await write('same', { inserts: { a: { text: 'cedar' } } });
    expect(await produced()).toBe(before + 1);
    expect(await vectorOf('same', 'a')).not.toEqual(first);
  });

  test('has no vector where there is nothing to embed, and loses one whose text is gone', async () => {
    await createTable('nothing');
    const inserts = { none: {}, null: { text: null }, empty: { text: '' }, some: { text: 'amber' } };
    await write('nothing', { inserts });
    expect(await statusOf('nothing')).toMatchObject({
      doc_count: 1,
      source_coverage: {
        policy: 'strict',
        observation_complete: true,
        total: 4,
        pending: 0,
        produced: 1,
        failed: 0,
        skipped: 3,
      },
      publication: { target_vectors: 1, searchable_vectors: 1, complete: true },
    });
    const { config_fingerprint } = (await statusOf('nothing')).source_coverage;
    expect(config_fingerprint).toMatch(/^[0-9a-f]{32}$/);
    await write('nothing', { inserts: { some: { text: null } } });
    expect((await statusOf('nothing')).source_coverage).toMatchObject({ config_fingerprint, produced: 0, skipped: 4 });
    expect(await statusOf('nothing')).toMatchObject({ doc_count: 0, readiness: { state: 'ready' } });
    await write('nothing', { deletes: ['none', 'null', 'empty', 'some'] });
    expect(await statusOf('nothing')).toMatchObject({ doc_count: 0, readiness: { state: 'ready' } });
  });

  test('keeps the document whose text cannot be embedded, and says why', async () => {
    await createTable('broken');
    const answer = await write('broken', { inserts: { bad: { text: 7 }, good: { text: 'amber' } } });
    expect(answer).toMatchObject({ status: 202, body: { status: 'committed_repair_required' } });
    expect(await statusOf('broken')).toMatchObject({
      doc_count: 1,
      readiness: { state: 'ready' },
      source_coverage: { produced: 1, failed: 1, retrying: 0 },
    });
    expect((await server.send('GET', '/db/v1/tables/broken/lookup/bad')).status).toBe(200);
    await write('broken', { inserts: { bad: { text: 'birch' } } });
    expect(await statusOf('broken')).toMatchObject({ doc_count: 2, source_coverage: { produced: 2, failed: 0 } });
  });

  test('renders a template over the document', async () => {
    const template = '{{title}}: {{#each tags}}{{this}} {{/each}}';
    await createTable('shaped', { words: { ...managed, field: undefined, template } });
    await write('shaped', { inserts: { a: { title: 'Soup', tags: ['leek', 'cream'] } } });
    await write('shaped', { inserts: { b: { title: 'soup', tags: ['cream', 'leek'] }, c: { title: 'x' } } });
    expect((await nearest('shaped', 'a', 2)).sort()).toEqual(['a', 'b']);
  });

  test('keeps and shows how complete and how public it is meant to be', async () => {
    await createTable('policies', {});
    const policies = { coverage_policy: 'best_effort', publication_policy: 'atomic' };
    expect((await addIndex('policies', 'plain', managed)).body).toMatchObject({ publication_policy: 'progressive' });
    expect((await addIndex('policies', 'words', { ...managed, ...policies })).body).toMatchObject(policies);
    expect((await details('policies', 'words')).config).toMatchObject(policies);
    expect((await statusOf('policies')).source_coverage).toMatchObject({ policy: 'best_effort' });
    expect((await addIndex('policies', 'text', { type: 'full_text', ...policies })).status).toBe(400);
  });

  test('is dropped and created again with another embedder', async () => {
    await createTable('changed');
    await write('changed', { inserts: { a: { text: 'amber' } } });
    const wider = { ...managed, embedder: { ...mock, dimensions: 16 } };
    expect((await addIndex('changed', 'words', wider)).status).toBe(409);
    expect((await addIndex('changed', 'words', managed)).status).toBe(200);
    expect((await server.send('DELETE', '/db/v1/tables/changed/indexes/words')).status).toBe(204);
    expect((await addIndex('changed', 'words', wider)).status).toBe(201);
    await untilReady('changed');
    expect(await vectorOf('changed', 'a')).toHaveLength(16);
  });
});

describe('sync_level "enrichments"', () => {
  test('embeds before anything is written, and refuses the whole write where it cannot', async () => {
    await createTable('before');
    const refused = await write('before', { inserts: { good: { text: 'amber' }, bad: { text: 7 } } }, 'enrichments');
    expect(refused).toMatchObject({ status: 400, body: { code: 'enrichment_failed' } });
    expect((await server.send('GET', '/db/v1/tables/before/lookup/good')).status).toBe(404);
    const inserts = { good: { text: 'amber' }, other: { text: 'birch' }, none: {} };
    expect(await write('before', { inserts }, 'enrichments')).toMatchObject({ status: 201 });
    expect(await statusOf('before')).toMatchObject({ doc_count: 2, backfill_items_processed: 0 });
    expect(await nearest('before', 'good')).toEqual(['good']);
    await write('before', { inserts: { good: {} } }, 'enrichments');
    expect(await statusOf('before')).toMatchObject({ doc_count: 1, readiness: { state: 'ready' } });
  });
});

describe('a merge with sync_level "enrichments"', () => {
  const merge = (table: string, records: object, last_merged_id = '') =>
    server.send<Record<string, unknown>>('POST', `/db/v1/tables/${table}/merge`, {
      records,
      last_merged_id,
      sync_level: 'enrichments',
    });

  test('embeds what is new or changed before anything is written, takes vectors along with deletions, and is whole', async () => {
    await createTable('merged');
    const first = { a: { text: 'amber' }, b: { text: 'birch' }, c: { text: 'cedar' } };
    expect((await merge('merged', first)).status).toBe(200);
    expect(await statusOf('merged')).toMatchObject({ doc_count: 3, backfill_items_processed: 0 });
    const before = await vectorOf('merged', 'c');
    expect((await merge('merged', { a: { text: 'acacia' }, c: { text: 'cedar', n: 1 } })).status).toBe(200);
    expect((await server.send('GET', '/db/v1/tables/merged/lookup/b')).status).toBe(404);
    expect(await nearest('merged', 'a')).toEqual(['a']);
    expect(await vectorOf('merged', 'c')).toEqual(before as number[]);
    expect(await statusOf('merged')).toMatchObject({ doc_count: 2, backfill_items_processed: 0 });
    const refused = await merge('merged', { a: { text: 'ash' }, z: { text: 7 } });
    expect(refused).toMatchObject({ status: 400, body: { code: 'enrichment_failed' } });
    const { body } = await server.send('GET', '/db/v1/tables/merged/lookup/a');
    expect(body).toMatchObject({ text: 'acacia' });
  });
});

describe('the configuration of a managed index is refused', () => {
  beforeAll(() => createTable('refusals', {}));

  const given = { type: 'embeddings', external: true, dimension: 256 };
  const cases: [string, object, number, string][] = [
    ['without a source', { type: 'embeddings', embedder: mock }, 400, 'give "field" or "template"'],
    ['without an embedder', { type: 'embeddings', field: 'text' }, 400, '"embedder" is missing'],
    ['with an unknown provider', { ...managed, embedder: { provider: 'oracle', model: 'm' } }, 400, 'no provider'],
    ['with an unknown member', { ...managed, embedder: { ...mock, modle: 'x' } }, 400, 'has no member'],
    ['with another dimension', { ...managed, dimension: 7 }, 400, 'makes vectors of 256'],
    ['for sparse vectors that its embedder does not make', { ...managed, sparse: true }, 400, 'makes dense vectors'],
    ['with a summarizer', { ...managed, summarizer: {} }, 400, 'takes no "summarizer"'],
    ['with `external`', { ...managed, external: true, dimension: 256 }, 400, 'leave "field" out'],
    ['with a template and `external`', { ...given, template: '{{text}}' }, 400, 'leave "template" out'],
    ['with an embedder and `external`', { ...given, embedder: mock }, 400, 'leave "embedder" out'],
    ['with `external` and no dimension', { ...given, dimension: undefined }, 400, '"dimension" is missing'],
    ['with a member that it does not have', { ...managed, fild: 'text' }, 400, 'field'],
    ['with a model that is not there', { ...managed, embedder: { provider: 'service', model: 'x' } }, 404, '"x"'],
    ['with no model', { ...managed, embedder: { provider: 'mock' } }, 400, '"embedder.model" is missing'],
    ['with a template that cannot be read', { ...managed, template: '{{#if x}}' }, 400, 'template'],
    ['with a coverage that is none', { ...managed, coverage_policy: 'all' }, 400, 'must be one of strict, partial'],
    ['with a publication that is none', { ...managed, publication_policy: 'x' }, 400, 'progressive, atomic'],
    [
      'with an embedder that is down, and no dimension',
      { ...managed, embedder: { provider: 'openai', model: 'm', api_key: 'k', url: 'http://127.0.0.1:9/v1' } },
      503,
      'give the length',
    ],
    ['with a path that is none', { ...managed, field: 'a..b' }, 400, 'path of member names'],
    ['with a chunker that is not there', { ...managed, chunker: { model: 'cutter' } }, 404, 'cutter'],
    [
      'with late chunks of sparse vectors',
      { ...managed, sparse: true, embedder: { provider: 'service', model: 'm' }, chunker: { late: true } },
      400,
      'dense vectors alone',
    ],
    ['with a chunker of an unknown member', { ...managed, chunker: { txt: {} } }, 400, 'has no member "txt"'],
    ['with a chunker of no tokens', { ...managed, chunker: { text: { target_tokens: 0 } } }, 400, 'target_tokens'],
    [
      'with a chunker beside `external`',
      { type: 'embeddings', external: true, dimension: 4, chunker: {} },
      400,
      'chunker',
    ],
  ];
  test.each(cases)('%s', async (_, config, status, reason) => {
    const answer = await addIndex('refusals', 'words', config);
    expect([answer.status, String(answer.body.message)]).toEqual([status, expect.stringContaining(reason)]);
  });

  test('I10: `_embeddings` for a managed index is refused with every member of a write, and nothing is written', async () => {
    await createTable('written', { words: managed, given: { type: 'embeddings', external: true, dimension: 2 } });
    for (const words of [[1, 0, 0, 0, 0, 0, 0, 0], null, {}]) {
      const inserts = { fine: { text: 'amber' }, a: { _embeddings: { words, given: [1, 2] } } };
      const refused = await write('written', { inserts });
      expect([words, refused.status, refused.body]).toMatchObject([words, 400, { code: 'invalid_embedding' }]);
    }
    expect((await server.send('GET', '/db/v1/tables/written/lookup/fine')).status).toBe(404);
    // Beside it vectors of an external index are kept where they are left out, and go with `null`.
    await write('written', { inserts: { a: { text: 'amber', _embeddings: { given: [1, 2] } } } });
    await write('written', { inserts: { a: { text: 'birch' } } });
    expect(await vectorOf('written', 'a', 'given')).toEqual([1, 2]);
    await write('written', { inserts: { a: { text: 'birch', _embeddings: { given: null } } } });
    expect([await vectorOf('written', 'a', 'given'), (await vectorOf('written', 'a'))?.length]).toEqual([
      undefined,
      256,
    ]);
  });

  test('credentials are not shown again', async () => {
    const embedder = { provider: 'openai', model: 'm', api_key: 'sk-very-secret', url: 'http://127.0.0.1:9/v1' };
    const answer = await addIndex('refusals', 'secret', { ...managed, dimension: 8, embedder });
    expect(JSON.stringify(answer.body)).not.toContain('sk-very-secret');
    expect(JSON.stringify(await details('refusals', 'secret'))).not.toContain('sk-very-secret');
    expect(JSON.stringify((await server.send('GET', '/db/v1/tables/refusals')).body)).not.toContain('sk-very-secret');
  });
});
