import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync } from 'node:fs';
import { BackupPlace } from '../../support/backup-place.ts';
import { UpstreamServer } from '../../support/elsewhere/upstream-server.ts';
import { until } from '../../support/fault/until.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

/** Full-text indexes that are searched for the texts of enrichments. */

type Json = Record<string, unknown>;
interface Status {
  readiness: { state: string; complete: boolean; sources: Json[] };
  doc_count: number;
}

const steps = { kind: 'chunk', template: '{{#each steps}}{{this}}. {{/each}}', chunk_size: 12 };
const label = { kind: 'asset', template: '{"origin":"{{origin}}"}', content_type: 'application/json' };
const over = { type: 'full_text', artifact_name: 'steps' };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** Requests about one table. */
function of(table: string, at: () => TestServer = () => server) {
  const send = (method: string, path: string, body?: object) =>
    at().send<Json & { code?: string; error?: string }>(method, `/db/v1/tables/${table}${path}`, body);
  const query = (body: object) => send('POST', '/query', body);
  return {
    send,
    query,
    put: (name: string, enrichment: object) => send('PUT', `/artifacts/${name}/enrichment`, enrichment),
    write: (body: object, sync_level = 'full_index') => send('POST', '/batch', { ...body, sync_level }),
    search: async (full_text_search: object | string, more: object = { indexes: ['told'] }) => {
      const words = typeof full_text_search === 'string' ? { query: full_text_search } : full_text_search;
      return hitKeys(await query({ full_text_search: words, order_by: [{ field: '_id' }], ...more }));
    },
    status: async (name = 'told') => (await send('GET', `/indexes/${name}`)).body.status as Status,
    isReady: async (name = 'told') =>
      ((await send('GET', `/indexes/${name}`)).body.status as Status).readiness.state === 'ready',
  };
}

const soup = { title: 'Leek soup', origin: 'wales', n: 2, steps: ['chop it well', 'boil the stock'] };
const cake = { title: 'Plum cake', origin: 'france', n: 1, steps: ['boil plums', 'bake it'] };

describe('a full-text index over an enrichment', () => {
  test.each([1, 3])('is searched for its text, and filters by the documents (%d ranges)', async (num_shards) => {
    const { send, put, write, search, query, status, isReady } = of(`told${num_shards}`);
    await send('POST', '', { num_shards });
    await put('steps', steps);
    await write({ inserts: { '!soup': soup, '~none': { title: 'boil nothing', n: 3 } } });
    expect(await send('POST', '/indexes/told', over)).toMatchObject({
      status: 201,
      body: { type: 'full_text', sources: [{ artifact: 'steps' }] },
    });
    await until(isReady);
    await write({ inserts: { cake } });
    expect(await status()).toMatchObject({
      doc_count: 2,
      total_indexed: 2,
      readiness: {
        state: 'ready',
        sources: [{ artifact: 'steps', state: 'ready', complete: true, pending_reasons: [] }],
      },
    });
    // One hit for each document, by its chunks and by nothing that it says itself.
    expect(await search('boil')).toEqual(['!soup', 'cake']);
    expect(await search('boil', { full_text_index: 'told' })).toEqual(['!soup', 'cake']);
    expect(await search('leek')).toEqual([]);
    expect(await search('_artifacts.steps:bake')).toEqual(['cake']);
    expect(await search('boil', {})).toEqual(['!soup', 'cake', '~none']);
    expect(await search('_artifacts.steps:bake', {})).toEqual([]);
    expect(await search('title:leek')).toEqual(['!soup']);
    const filtered = { indexes: ['told'], filter_query: { match: 'cake', field: 'title' } };
    expect(await search('boil', filtered)).toEqual(['cake']);
    expect(await search('boil', { ...filtered, filter_query: { field: 'n', min: 2 } })).toEqual(['!soup']);
    expect(await search('boil', { indexes: ['told'], order_by: [{ field: 'n' }] })).toEqual(['cake', '!soup']);
    const { body } = await query({
      full_text_search: { query: 'boil' },
      indexes: ['told'],
      aggregations: { sum: { type: 'sum', field: 'n' } },
      highlight: { fields: ['_artifacts.steps'] },
      fields: ['title', '_chunks'],
    });
    const [{ hits, aggregations }] = body.responses as [{ hits: Json & { hits: Json[] }; aggregations: Json }];
    expect([hits.total, aggregations]).toMatchObject([{ value: 2, relation: 'exact' }, { sum: { value: 3 } }]);
    expect(JSON.stringify(hits.hits)).toContain('<em>boil</em>');
    expect(hits.hits[0]).toMatchObject({ _source: { _chunks: { steps: expect.anything() } } });

    await write({ inserts: { '!soup': { ...soup, steps: ['fry it'] } } });
    expect([await search('boil'), await search('fry')]).toEqual([['cake'], ['!soup']]);
    await write({ deletes: ['cake'] });
    expect(await search('boil')).toEqual([]);
    expect(await status()).toMatchObject({ doc_count: 1 });
  });

  test('follows its enrichment where that is changed, and keeps it from being dropped', async () => {
    const { send, put, write, search } = of('kept');
    await send('POST', '');
    await put('steps', steps);
    await write({ inserts: { soup } });
    await send('POST', '/indexes/told', over);
    await put('steps', { ...steps, template: 'stirred {{title}}' });
    await until(async () => (await search('stirred')).length === 1);
    expect(await search('boil')).toEqual([]);
    const refused = { status: 409, body: { code: 'enrichment_in_use' } };
    expect(await put('steps', { kind: 'asset', field: 'title' })).toMatchObject(refused);
    expect(await send('DELETE', '/artifacts/steps/enrichment')).toMatchObject(refused);
    expect((await send('DELETE', '/indexes/told')).status).toBe(204);
    expect(await send('POST', '/query', { full_text_search: { query: 'x' }, indexes: ['told'] })).toMatchObject({
      status: 400,
    });
    await send('POST', '/indexes/told', over);
    await until(async () => (await search('stirred')).length === 1);
    await send('DELETE', '/indexes/told');
    expect((await send('DELETE', '/artifacts/steps/enrichment')).status).toBe(200);
  });

  test('may be over several, be declared with what it is over, and is the same in every spelling', async () => {
    const { send, write, search } = of('both');
    const sources = [{ artifact: 'steps' }, { artifact: 'label' }];
    const enrichments = [
      { name: 'steps', ...steps },
      { name: 'label', ...label },
    ];
    const told = { type: 'full_text', sources, enrichments };
    expect((await send('POST', '', { indexes: { told } })).status).toBe(200);
    await write({ inserts: { soup, cake } });
    expect([await search('boil'), await search('wales')]).toEqual([['cake', 'soup'], ['soup']]);
    expect(await search('_artifacts.label.origin:france')).toEqual(['cake']);
    expect((await send('POST', '/indexes/told', told)).status).toBe(200);
    expect((await send('POST', '/indexes/one', { type: 'full_text', sources: [sources[0] as Json] })).status).toBe(201);
    expect((await send('POST', '/indexes/one', over)).status).toBe(200);
    expect((await send('POST', '/indexes/one', { ...over, artifact_name: 'label' })).status).toBe(409);
    const { indexes } = (await send('GET', '')).body as { indexes: Record<string, Json> };
    expect(indexes.one).toMatchObject({ type: 'full_text', sources: [{ artifact: 'steps' }] });
  });

  test('takes what was to be JSON and is not for a text, beside which the document is as it was', async () => {
    const { send, put, write, search, query } = of('nearly');
    await send('POST', '');
    await put('made', { kind: 'asset', field: 'text', content_type: 'application/json', full_text_index: true });
    const texts = {
      json: '{"a":\n ["leek"]}',
      fenced: '```json\n["leek"]\n```',
      cut: '{"a": "leek',
      large: '[1e999, "leek"]',
      deep: `${'['.repeat(5_000)}"leek"${']'.repeat(5_000)}`,
      broken: '"leek"},"owner":"me","more":{"a":1',
    };
    const inserts = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, { text, owner: 'you' }]));
    await write({ inserts });
    const keys = Object.keys(texts).sort();
    expect(await search('owner:you AND leek', {})).toEqual(keys);
    expect(await search('owner:me', {})).toEqual([]);
    const { hits } =
      ((await query({ fields: ['_artifacts'] })).body.responses as { hits: { hits: Json[] } }[])[0] ?? {};
    const values = hits?.hits.map(({ _id, _source }) => [
      _id,
      (_source as { _artifacts: { made: Json } })._artifacts.made.value,
    ]);
    expect(Object.fromEntries(values ?? [])).toEqual({ ...texts, json: { a: ['leek'] } });
    const scan = await send('POST', '/documents', { fields: ['_artifacts.made.value'] });
    const lines = (scan.body as unknown as string).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line)._id)).toEqual(keys);
  });

  test.each([
    ['nothing that is there', { artifact_name: 'nothing' }, '"sources": the table has no enrichment "nothing"'],
    ['vectors', { artifact_name: 'vectors' }, 'of kind "embedding", which has no text'],
    ['images', { artifact_name: 'images' }, 'makes "image/png", which has no text'],
    ['no enrichment', { sources: [] }, '"sources" must name an enrichment'],
    ['one twice', { artifact_name: 'steps', sources: [{ artifact: 'steps' }] }, 'name each enrichment once'],
  ])('over %s is refused', async (_, members, message) => {
    const { send, put } = of('refusing');
    await send('POST', '');
    await put('steps', steps);
    await put('images', { kind: 'asset', field: 'picture', content_type: 'image/png' });
    const embedder = { provider: 'mock', model: 'words', dimensions: 8 };
    await put('vectors', { kind: 'embedding', field: 'title', producer_json: { type: 'embedder', config: embedder } });
    const answer = await send('POST', '/indexes/told', { type: 'full_text', ...members });
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(message)]);
  });

  test('is searched beside vectors; two of words are not, nor one without words', async () => {
    const { send, put, write, query } = of('hybrid');
    const near = { type: 'embeddings', field: 'title', embedder: { provider: 'mock', model: 'words', dimensions: 16 } };
    await send('POST', '', { indexes: { near } });
    await put('steps', steps);
    await send('POST', '/indexes/told', over);
    await write({ inserts: { soup, cake } });
    const [semantic_search, words] = ['plum', { full_text_search: { query: 'chop' } }];
    const both = await query({ semantic_search, ...words, indexes: ['near', 'told'] });
    expect(hitKeys(both).sort()).toEqual(['cake', 'soup']);
    expect(JSON.stringify(both.body)).toContain('"full_text":');
    for (const body of [
      { semantic_search, indexes: ['told'] },
      { ...words, indexes: ['told', 'full_text_index_v0'] },
      { ...words, indexes: ['told'], full_text_index: 'full_text_index_v0' },
      { ...words, indexes: ['near', 'told'] },
    ]) {
      expect(await query(body)).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
    }
  });

  test('is incomplete while the text is still to be made, and says why', async () => {
    const gate = Promise.withResolvers<void>();
    await using upstream = new UpstreamServer(async () => {
      await gate.promise;
      return Response.json({ choices: [{ message: { role: 'assistant', content: 'broth' }, finish_reason: 'stop' }] });
    });
    const { send, put, write, search, status, isReady } = of('slow');
    await send('POST', '');
    const config = { provider: 'openai', model: 'm', url: `${upstream.url}/v1` };
    await put('summary', { kind: 'asset', field: 'title', producer_json: { type: 'generator', config } });
    await send('POST', '/indexes/told', { type: 'full_text', sources: [{ artifact: 'summary' }] });
    expect((await write({ inserts: { soup } }, 'full_text')).status).toBe(201);
    expect((await status()).readiness).toMatchObject({
      complete: false,
      sources: [{ artifact: 'summary', state: 'pending', complete: false, pending_reasons: ['enrichment'] }],
    });
    expect((await status('full_text_index_v0')).readiness).toMatchObject({ complete: true, sources: [] });
    gate.resolve();
    await until(isReady);
    expect(await search('broth')).toEqual(['soup']);
    expect((await write({ inserts: { cake } }, 'enrichments')).status).toBe(201);
    expect(await search('broth')).toEqual(['cake', 'soup']);
  });

  test('goes on over its enrichment alone when the schema of the documents changes', async () => {
    const { send, put, write, search, isReady } = of('changed');
    await send('POST', '');
    await put('steps', steps);
    await send('POST', '/indexes/told', over);
    await write({ inserts: { soup, cake } });
    const properties = { title: { type: 'string', 'x-service-types': ['text'] } };
    const typed = { document_schemas: { recipe: { schema: { type: 'object', properties } } }, default_type: 'recipe' };
    const dynamic_templates = [{ match: 'code*', mapping: { type: 'keyword' } }];
    for (const schema of [typed, { ...typed, dynamic_templates }]) {
      expect(await send('PUT', '/schema', schema)).toMatchObject({ status: 200 });
      await until(isReady);
      await write({ inserts: { tart: { ...cake, title: 'leek tart' } } });
      expect(await search('boil')).toEqual(['cake', 'soup', 'tart']);
      expect(await search('leek')).toEqual([]);
      expect(await search('title:leek')).toEqual(['soup', 'tart']);
    }
  });
});

test('what a kill leaves is replayed, the text of artifacts with it', async () => {
  using killed = new TemporaryDirectory();
  {
    await using first = await startTestServer();
    const { send, put, write } = of('t', () => first);
    await send('POST', '', { num_shards: 2 });
    await put('steps', steps);
    await send('POST', '/indexes/told', over);
    expect((await write({ inserts: { '!soup': soup, '~cake': cake } })).status).toBe(201);
    cpSync(first.directory, killed.path, { recursive: true });
  }
  for (let start = 0; start < 2; start += 1) {
    await using again = await startTestServer({ directory: killed.path });
    const { search, isReady, write } = of('t', () => again);
    await until(isReady);
    expect(await search('boil')).toEqual(['!soup', '~cake']);
    expect(await search('leek')).toEqual([]);
    await write({ inserts: { '!soup': { ...soup, steps: ['boil again'] } } });
    expect(await search('again')).toEqual(['!soup']);
  }
});

test.each(['portable', 'native'])(
  'a restore of the format "%s" brings the text of artifacts back into every index',
  async (format) => {
    using place = new BackupPlace();
    const found = async (at: TestServer) => {
      const { search } = of('t', () => at);
      return [await search('boil'), await search('leek'), await search('hails', {})];
    };
    const expected = [['!soup', '~cake'], [], ['!soup', '~cake']];
    {
      await using first = await place.server();
      const { send, put, write } = of('t', () => first);
      await send('POST', '', { num_shards: 2 });
      await put('steps', steps);
      await put('origin', { kind: 'asset', template: 'hails from {{origin}}', full_text_index: true });
      await send('POST', '/indexes/told', over);
      await write({ inserts: { '!soup': soup, '~cake': cake } });
      expect(await found(first)).toEqual(expected);
      const backup = { backup_id: 'b', location: place.location, format };
      expect((await first.send('POST', '/db/v1/backup', backup)).body).toMatchObject({ status: 'completed' });
    }
    await using second = await place.server();
    expect(await restore(second, { backup_id: 'b', location: place.location })).toMatchObject({ phase: 'succeeded' });
    await until(() => of('t', () => second).isReady());
    expect(await found(second)).toEqual(expected);
  },
);

test('a row filter by words of the documents holds in the index', async () => {
  using directory = new TemporaryDirectory();
  const database = await openTestDatabase(directory.path);
  try {
    const { tables, artifacts, indexes, writes, queries } = database.services;
    const owner = testCaller();
    await tables.create('notes', { num_shards: 2 }, owner);
    await artifacts.put('notes', 'steps', steps, owner);
    await indexes.create('notes', 'told', over, owner);
    await writes.batch('notes', bodyOf({ inserts: { '!soup': soup, '~cake': cake }, sync_level: 'full_index' }), owner);
    const asked = bodyOf({ full_text_search: { query: 'boil' }, indexes: ['told'], fields: [] });
    const seen = async (...filter: object[]) => {
      const caller = testCaller({ rowFilter: { notes: filter } });
      const [answer = []] = await queries.run('notes', asked, caller);
      const { hits } = JSON.parse(answer.join('')) as { hits: { total: Json; hits: { _id: string }[] } };
      return [hits.total, hits.hits.map(({ _id }) => _id)];
    };
    const exactly = (value: number) => ({ value, relation: 'exact' });
    expect(await seen({ match: 'cakes', field: 'title' })).toEqual([exactly(1), ['~cake']]);
    expect(await seen({ bool: { must_not: [{ match: 'leek', field: 'title' }] } })).toEqual([exactly(1), ['~cake']]);
    // The same words of every field would be those of the artifacts.
    const refused = expect.objectContaining({ code: 'forbidden' });
    const ofIndex = [
      { bool: { must_not: [{ match: 'leek' }] } },
      { bool: { must_not: [{ query: '_all:leek' }] } },
      { multi_match: { query: 'leek', fields: ['title', '_all^2'], type: 'bool_prefix' } },
      { match: 'x', field: '_artifacts.steps' },
    ];
    for (const filter of ofIndex) {
      expect(await seen(filter).catch((error: unknown) => error)).toEqual(refused);
    }
    expect(await seen({ term: { origin: 'nowhere' } })).toEqual([exactly(0), []]);
  } finally {
    await database.close();
  }
});
