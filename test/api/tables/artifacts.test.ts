import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { UpstreamServer } from '../../support/elsewhere/upstream-server.ts';
import { until } from '../../support/fault/until.ts';
import { ModelService } from '../../support/providers/model-service.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

type Json = Record<string, unknown>;
interface Listed {
  table_name: string;
  artifacts: (Json & { name: string })[];
}

const embedder = { provider: 'mock', model: 'words', dimensions: 32 };
const text = 'Chop the leek. Boil the water. Serve it hot.';
const windows = { kind: 'chunk', field: 'body', chunk_size: 15, chunk_overlap: 5 };
const generator = { type: 'generator', config: { provider: 'mock', model: 'echo' } };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const createTable = (name: string, more: Json = {}) => server.send('POST', `/db/v1/tables/${name}`, more);
const put = (table: string, name: string, enrichment: Json) =>
  server.send('PUT', `/db/v1/tables/${table}/artifacts/${name}/enrichment`, enrichment);
const drop = (table: string, name: string) =>
  server.send('DELETE', `/db/v1/tables/${table}/artifacts/${name}/enrichment`);
const list = async (table: string) => (await server.send<Listed>('GET', `/db/v1/tables/${table}/artifacts`)).body;
const write = (table: string, body: Json, level = 'full_index') =>
  server.send('POST', `/db/v1/tables/${table}/batch`, { ...body, sync_level: level });
const lookup = async (table: string, key: string, fields: string) =>
  (await server.send<Json>('GET', `/db/v1/tables/${table}/lookup/${key}?fields=${fields}`)).body;
const artifactsOf = async (table: string, key: string) =>
  ((await lookup(table, key, '_artifacts'))._artifacts ?? {}) as Record<string, Json>;
const chunksOf = async (table: string, key: string, name: string) => {
  const { _chunks } = await lookup(table, key, '_chunks');
  return ((_chunks as Record<string, Json[]> | undefined)?.[name] ?? []).map(({ _content }) => _content);
};
const search = async (table: string, query: Json) =>
  hitKeys(await server.send('POST', '/db/v1/query', { table, ...query }));
const forText = (query: string) => ({ full_text_search: { query } });

describe('an enrichment', () => {
  test('of kind chunk cuts a text into windows, whose places count characters', async () => {
    await createTable('windows');
    expect(await put('windows', 'steps', windows)).toMatchObject({ status: 200, body: {} });
    await write('windows', { inserts: { soup: { body: 'αβγδε😀ζηθικλμνξοπρ' } } });
    const { _chunks } = await lookup('windows', 'soup', '_chunks');
    const [first, second, third] = (_chunks as { steps: Json[] }).steps;
    expect(first).toMatchObject({
      _content: 'αβγδε😀ζηθικλμνξ',
      _start_char: 0,
      _end_char: 15,
      _artifact_name: 'steps',
    });
    expect(second).toMatchObject({ _content: 'κλμνξοπρ', _start_char: 10, _end_char: 18 });
    expect(third).toBeUndefined();
    expect(second).toMatchObject({ body: 'κλμνξοπρ', _source_field: 'body', _mime_type: 'text/plain' });
    expect([second?._start_offset, second?._end_offset]).toEqual([22, 38]);
    const { artifacts } = (await server.send('GET', '/db/v1/tables/windows/documents/soup/artifacts')).body as {
      artifacts: { source_hash: string }[];
    };
    expect(second?.provenance).toEqual({
      document_id: 'soup',
      artifact_name: 'steps',
      source_kind: 'field',
      source_field: 'body',
      source_hash: artifacts[0]?.source_hash,
      chunk_index: 1,
      chunk_count: 2,
    });
  });

  test('of kind chunk says of a template or another artifact that the text comes from there', async () => {
    await createTable('origins');
    await put('origins', 'copy', { kind: 'asset', template: '{{title}}: {{body}}' });
    await put('origins', 'of-copy', { kind: 'chunk', source_artifact_name: 'copy', chunk_size: 100 });
    await put('origins', 'of-template', { kind: 'chunk', template: '{{body}}!', chunk_size: 100 });
    await write('origins', { inserts: { soup: { title: 'Crème', body: 'leek' } } });
    const { _chunks } = await lookup('origins', 'soup', '_chunks');
    const [ofCopy] = (_chunks as Record<string, Json[]>)['of-copy'] ?? [];
    const [ofTemplate] = (_chunks as Record<string, Json[]>)['of-template'] ?? [];
    expect(ofCopy).toMatchObject({ _content: 'Crème: leek', _start_offset: 0, _end_offset: 12 });
    expect(ofCopy?.provenance).toMatchObject({ source_kind: 'artifact', source_artifact_name: 'copy' });
    expect(ofTemplate).toMatchObject({ _content: 'leek!', _start_offset: 0, _end_offset: 5 });
    expect(ofTemplate?.provenance).toMatchObject({ source_kind: 'template' });
    for (const chunk of [ofCopy, ofTemplate]) expect(chunk).not.toContainKey('_source_field');
  });

  test('cuts by tokens where it has a chunker, and shows its chunks with ids and references', async () => {
    await createTable('tokens');
    const chunker_json = JSON.stringify({ provider: 'service', model: 'fixed', text: { target_tokens: 5 } });
    await put('tokens', 'steps', { kind: 'chunk', field: 'body', chunker_json });
    await write('tokens', { inserts: { soup: { body: text } } });
    const { steps } = await artifactsOf('tokens', 'soup');
    expect(steps).toMatchObject({
      artifact_id: 'af1:chunk:c291cA:c3RlcHM',
      artifact_ref: { document_id: 'soup', name: 'steps', kind: 'chunk_set' },
      kind: 'chunk_set',
      status: 'ready',
      items: [
        { _chunk_id: 'af1:chunk:c291cA:c3RlcHM:0', _content: 'Chop the leek.' },
        { _content: 'Boil the water.' },
        { _content: 'Serve it hot.' },
      ],
    });
  });

  test('makes an asset, chunks of the asset and vectors of the chunks, each from the one before', async () => {
    await createTable('chain');
    await put('chain', 'summary', { kind: 'asset', template: 'About {{title}}. {{body}}', producer_json: generator });
    await put('chain', 'steps', { kind: 'chunk', source_artifact_name: 'summary', chunk_size: 25 });
    const vectors = { type: 'embedder', config: embedder };
    await put('chain', 'vectors', { kind: 'embedding', source_artifact_name: 'steps', producer_json: vectors });
    await write('chain', { inserts: { soup: { title: 'Leek soup', body: text } } });
    const made = await artifactsOf('chain', 'soup');
    expect(made.summary).toMatchObject({
      kind: 'asset',
      content_type: 'text/plain',
      value: `About Leek soup. ${text}`,
    });
    const chunks = made.steps?.items as unknown[];
    expect(chunks.length).toBeGreaterThan(2);
    expect(made.vectors).toMatchObject({ kind: 'embedding', dims: 32, vectors: chunks.length });

    await write('chain', { inserts: { soup: { title: 'Cake' } } });
    expect(await chunksOf('chain', 'soup', 'steps')).toEqual(['About Cake.']);
    expect((await artifactsOf('chain', 'soup')).vectors).toMatchObject({ vectors: 1 });
    await write('chain', { deletes: ['soup'] });
    await write('chain', { inserts: { soup: {} } });
    expect((await artifactsOf('chain', 'soup')).vectors).toMatchObject({ vectors: 1 });
  });

  test('is made for the documents that were there before it, and loses what its document loses', async () => {
    await createTable('older', { num_shards: 3 });
    const keys = ['!a', 'kb', '~c'];
    await write('older', { inserts: Object.fromEntries(keys.map((key) => [key, { body: `about ${key}` }])) });
    await put('older', 'copy', { kind: 'asset', field: 'body' });
    await put('older', 'steps', { kind: 'chunk', source_artifact_name: 'copy', chunk_size: 100 });
    for (const key of keys) {
      await until(async () => (await chunksOf('older', encodeURIComponent(key), 'steps')).length === 1);
      expect(await artifactsOf('older', encodeURIComponent(key))).toMatchObject({ copy: { value: `about ${key}` } });
    }
    await write('older', { inserts: { kb: { body: null } } });
    expect(await artifactsOf('older', 'kb')).toEqual({});
  });

  test('is shown in lookups, scans and queries where a projection names it, whole or by its name', async () => {
    await createTable('shown');
    await put('shown', 'copy', { kind: 'asset', field: 'body', content_type: 'text/markdown' });
    await put('shown', 'steps', windows);
    await write('shown', { inserts: { soup: { body: 'a leek' } } });
    expect(await lookup('shown', 'soup', 'body')).toEqual({ body: 'a leek' });
    const copy = expect.objectContaining({ value: 'a leek', content_type: 'text/markdown' });
    expect(await lookup('shown', 'soup', '_artifacts.copy')).toEqual({ _artifacts: { copy } });
    const scanned = await server.send<string>('POST', '/db/v1/tables/shown/lookup', { fields: ['_chunks.steps'] });
    const steps = [expect.objectContaining({ _content: 'a leek' })];
    expect(JSON.parse(scanned.body)).toMatchObject({ _id: 'soup', _chunks: { steps } });
    const query = { table: 'shown', ...forText('leek'), fields: ['body', '_artifacts', '_chunks'] };
    const answer = await server.send<{ responses: [{ hits: { hits: { _source: Json }[] } }] }>(
      'POST',
      '/db/v1/query',
      query,
    );
    expect(answer.body.responses[0].hits.hits[0]?._source).toMatchObject({
      body: 'a leek',
      _artifacts: { copy, steps: { kind: 'chunk_set' } },
      _chunks: { steps },
    });
  });

  test('is shown in part where a projection says which part', async () => {
    await createTable('parts');
    await put('parts', 'copy', { kind: 'asset', field: 'body' });
    await put('parts', 'steps', windows);
    await write('parts', { inserts: { soup: { body: 'a leek' }, salt: { body: null } } });
    const content = { _chunks: { steps: [{ _content: 'a leek' }] } };
    expect(await lookup('parts', 'soup', '_chunks.steps._content')).toEqual(content);
    expect(await lookup('parts', 'soup', '_chunks.*._content,_artifacts.copy.value')).toEqual({
      ...content,
      _artifacts: { copy: { value: 'a leek' } },
    });
    const { _chunks } = await lookup('parts', 'soup', '_chunks,-_chunks.*._content');
    const [step] = (_chunks as { steps: Json[] }).steps;
    expect(step).toContainKeys(['_start_char', '_end_char']);
    expect(step).not.toContainKey('_content');
    expect(await lookup('parts', 'soup', 'body,_chunks.*.nothing')).toEqual({ body: 'a leek' });
    expect(await lookup('parts', 'soup', '-_chunks.*._content')).toEqual({ body: 'a leek' });
    expect(await lookup('parts', 'salt', '_chunks.*._content')).toEqual({});
    const scanned = await server.send<string>('POST', '/db/v1/tables/parts/lookup', {
      fields: ['_chunks.*._content'],
      from: 'salt',
    });
    expect(JSON.parse(scanned.body)).toEqual({ _id: 'soup', key: 'soup', ...content });
  });

  test('keeps the document whose artifact cannot be made, and says so when the write waits for it', async () => {
    await createTable('broken');
    await put('broken', 'steps', windows);
    const answer = await write('broken', { inserts: { bad: { body: 7 }, good: { body: 'a leek' } } });
    expect(answer).toMatchObject({ status: 202, body: { status: 'committed_repair_required' } });
    expect(await artifactsOf('broken', 'bad')).toEqual({});
    expect(await chunksOf('broken', 'good', 'steps')).toEqual(['a leek']);
    const refused = await write('broken', { inserts: { bad: { body: 'fine' }, worse: { body: 7 } } }, 'enrichments');
    expect(refused).toMatchObject({ status: 400, body: { code: 'enrichment_failed' } });
    expect(await lookup('broken', 'bad', 'body')).toEqual({ body: 7 });
  });

  test('of kind chunk has all of a long text, or is counted as failed and says why, unless it is told to leave some out', async () => {
    await createTable('long');
    const chunker = { model: 'fixed', text: { target_tokens: 4 } };
    await put('long', 'tokens', {
      kind: 'chunk',
      field: 'body',
      full_text_index: true,
      chunker_json: JSON.stringify(chunker),
    });
    await put('long', 'first', {
      kind: 'chunk',
      field: 'body',
      chunker_json: JSON.stringify({ ...chunker, max_chunks: 3 }),
    });
    await put('long', 'windows', { kind: 'chunk', field: 'body', chunk_size: 2 });
    const body = `${'tea and cake '.repeat(1_500)}zebra`;
    const { body: told } = await write('long', { inserts: { a: { body }, b: { body: 'zebra' } } });
    expect(told).toMatchObject({ status: 'committed_repair_required' });
    expect((await search('long', forText('_artifacts.tokens:zebra'))).toSorted()).toEqual(['a', 'b']);
    expect((await chunksOf('long', 'a', 'tokens')).join('')).toContain('zebra');
    expect(await chunksOf('long', 'a', 'first')).toHaveLength(3);
    expect(await chunksOf('long', 'a', 'windows')).toEqual([]);
    expect(await chunksOf('long', 'b', 'windows')).toEqual(['ze', 'br', 'a']);
    const { body: states } = await server.send<{ artifacts: Json[] }>(
      'GET',
      '/db/v1/tables/long/documents/a/artifacts',
    );
    expect(states.artifacts.find(({ name }) => name === 'windows')).toMatchObject({
      code: 'limit_exceeded',
      reason: expect.stringContaining('more than 4096 chunks'),
    });
  });

  test('is made before the commit with `sync_level: enrichments`, what it is made from included', async () => {
    await createTable('before');
    await put('before', 'copy', { kind: 'asset', field: 'body' });
    await put('before', 'steps', { kind: 'chunk', source_artifact_name: 'copy', chunk_size: 100 });
    expect((await write('before', { inserts: { soup: { body: 'a leek' } } }, 'enrichments')).status).toBe(201);
    expect(await chunksOf('before', 'soup', 'steps')).toEqual(['a leek']);
    await write('before', { inserts: { soup: { body: 'a plum' } } }, 'enrichments');
    expect(await chunksOf('before', 'soup', 'steps')).toEqual(['a plum']);
  });

  test('asks its producer once for equal sources, and again only where the source has changed', async () => {
    await using upstream = new UpstreamServer(() =>
      Response.json({ choices: [{ message: { role: 'assistant', content: 'A summary.' }, finish_reason: 'stop' }] }),
    );
    await createTable('once');
    const config = { provider: 'openai', model: 'm', url: `${upstream.url}/v1`, api_key: 'k-canary' };
    const producer_json = JSON.stringify({ type: 'generator', config });
    await put('once', 'summary', { kind: 'asset', field: 'body', producer_json });
    await write('once', { inserts: { a: { body: 'one' }, b: { body: 'one' }, c: { body: 'two' } } });
    expect(upstream.requests).toHaveLength(2);
    await write('once', { inserts: { a: { body: 'one', n: 1 } } });
    expect(upstream.requests).toHaveLength(2);
    expect(await artifactsOf('once', 'a')).toMatchObject({ summary: { value: 'A summary.' } });
    expect(JSON.stringify(await list('once'))).not.toContain('canary');
  });
});

test('`execution` bounds the texts of one request to a model, and their bytes', async () => {
  await using service = new ModelService('openai');
  const config = { provider: 'openai', model: 'words', dimensions: 8, url: `${service.url}/v1`, api_key: 'k' };
  const vectors = { kind: 'embedding', field: 'body', producer_json: { type: 'embedder', config } };
  const inserts = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`k${at}`, { body: `text ${at}` }]));
  const requestsBy = async (table: string, execution: Json) => {
    await createTable(table);
    await put(table, 'vectors', { ...vectors, execution });
    const probes = service.seen.length;
    expect((await write(table, { inserts }, 'enrichments')).status).toBe(201);
    return service.seen.slice(probes).map(({ body }) => (body.input as string[]).length);
  };
  expect(await requestsBy('by-items', { batch_items: 4 })).toEqual([4, 4, 2]);
  // Six bytes each: three do not exceed twenty.
  expect(await requestsBy('by-bytes', { batch_bytes: 20 })).toEqual([3, 1, 3, 1, 2]);
  expect(await requestsBy('one-by-one', { batch_bytes: 1 })).toEqual(Array(10).fill(1));
  expect(await put('one-by-one', 'other', { ...vectors, execution: { batch_items: 0 } })).toMatchObject({
    status: 400,
  });
});

describe('the text of an artifact', () => {
  test('is found by the default full-text index, with a field or without, and not once its document has lost it', async () => {
    await createTable('found', { num_shards: 3 });
    await put('found', 'steps', {
      ...windows,
      full_text_index: true,
      chunk_size: 600,
      template: '{{upper}} stirred',
      field: '',
    });
    await write('found', { inserts: { soup: { upper: 'gazpacho' }, '~cake': { upper: 'plum' } } });
    expect(await search('found', forText('stirred'))).toHaveLength(2);
    expect(await search('found', forText('_artifacts.steps:gazpacho AND stirred'))).toEqual(['soup']);
    const marked = { ...forText('stirred'), highlight: { fields: ['_artifacts.steps'] }, limit: 1 };
    const answer = await server.send('POST', '/db/v1/query', { table: 'found', ...marked });
    expect(JSON.stringify(answer.body)).toMatch(/<\w+>stirred</);
    await write('found', { inserts: { soup: { upper: 'borscht' } } });
    expect(await search('found', forText('_artifacts.steps:gazpacho'))).toEqual([]);
    expect(await search('found', forText('_artifacts.steps:borscht'))).toEqual(['soup']);
    await write('found', { deletes: ['soup'] });
    expect(await search('found', forText('stirred'))).toEqual(['~cake']);
  });

  test('comes for documents that are there, is forgotten with its enrichment, and comes after a restart', async () => {
    const first = await startTestServer();
    await using _first = first;
    const send = first.send.bind(first);
    const found = async (query: string) =>
      hitKeys(await send('POST', '/db/v1/query', { table: 't', ...forText(query) }));
    await send('POST', '/db/v1/tables/t', {});
    await send('POST', '/db/v1/tables/t/batch', { inserts: { a: { n: 1, word: 'plum' } }, sync_level: 'full_index' });
    const copied = { kind: 'asset', template: 'copied {{n}}', full_text_index: true };
    await send('PUT', '/db/v1/tables/t/artifacts/copy/enrichment', copied);
    await until(async () => (await found('copied')).length === 1);
    await send('DELETE', '/db/v1/tables/t/artifacts/copy/enrichment');
    await until(async () => (await found('copied')).length === 0);
    expect(await found('plum')).toEqual(['a']);
  });

  test('keeps the index incomplete while it is still to be made', async () => {
    const gate = Promise.withResolvers<void>();
    await using upstream = new UpstreamServer(async () => {
      await gate.promise;
      return Response.json({
        choices: [{ message: { role: 'assistant', content: 'borscht' }, finish_reason: 'stop' }],
      });
    });
    await createTable('slow');
    const config = { provider: 'openai', model: 'm', url: `${upstream.url}/v1` };
    await put('slow', 'summary', {
      kind: 'asset',
      field: 'body',
      full_text_index: true,
      producer_json: { type: 'generator', config },
    });
    await write('slow', { inserts: { soup: { body: 'a beet' } } }, 'full_text');
    const path = '/db/v1/tables/slow/indexes/full_text_index_v0';
    const readiness = async () =>
      (await server.send<{ status: { readiness: Json } }>('GET', path)).body.status.readiness;
    expect(await readiness()).toMatchObject({
      complete: false,
      sources: [{ artifact: 'summary', complete: false, pending_reasons: ['enrichment'] }],
    });
    gate.resolve();
    await until(async () => (await readiness()).complete === true);
    expect(await search('slow', forText('borscht'))).toEqual(['soup']);
    expect(await readiness()).toMatchObject({ sources: [{ artifact: 'summary', state: 'ready', complete: true }] });
  });
});

describe('the routes of enrichments', () => {
  test('list those of the table and of its indexes, with every member but the producer', async () => {
    const inline = { name: 'inner', kind: 'asset', field: '$.title' };
    const index = { type: 'embeddings', field: 'body', embedder, enrichments: [inline, 'outer'] };
    await createTable('listed');
    await put('listed', 'outer', windows);
    const created = await server.send<Json>('POST', '/db/v1/tables/listed/indexes/words', index);
    expect(created).toMatchObject({ status: 201, body: { enrichments: [inline, 'outer'] } });
    const { table_name, artifacts } = await list('listed');
    expect(table_name).toBe('listed');
    expect(artifacts).toMatchObject([
      { name: 'inner', kind: 'asset', field: '$.title', full_text_index: false, source_artifact_name: '' },
      { name: 'outer', kind: 'chunk', field: '$.body', chunk_size: 15, chunk_overlap: 5 },
    ]);
    expect(await drop('listed', 'inner')).toMatchObject({ status: 409, body: { code: 'enrichment_in_use' } });
    expect((await server.send('POST', '/db/v1/tables/listed/indexes/words', index)).status).toBe(200);
    await server.send('DELETE', '/db/v1/tables/listed/indexes/words');
    expect((await list('listed')).artifacts.map(({ name }) => name)).toEqual(['outer']);
  });

  test('drop what nothing refers to, with its artifacts', async () => {
    await createTable('dropped');
    await put('dropped', 'copy', { kind: 'asset', field: 'body' });
    await put('dropped', 'steps', { kind: 'chunk', source_artifact_name: 'copy', chunk_size: 10 });
    await write('dropped', { inserts: { soup: { body: 'a leek' } } });
    expect(await drop('dropped', 'copy')).toMatchObject({ status: 409, body: { code: 'enrichment_in_use' } });
    expect(await drop('dropped', 'steps')).toMatchObject({ status: 200, body: {} });
    expect(Object.keys(await artifactsOf('dropped', 'soup'))).toEqual(['copy']);
    expect((await drop('dropped', 'copy')).status).toBe(200);
    expect(await drop('dropped', 'copy')).toMatchObject({ status: 404, body: { code: 'artifact_not_found' } });
  });

  test('replace an enrichment, and make again what it has made', async () => {
    await createTable('replaced');
    await put('replaced', 'steps', windows);
    await write('replaced', { inserts: { soup: { body: text } } });
    const before = (await chunksOf('replaced', 'soup', 'steps')).length;
    expect((await put('replaced', 'steps', { ...windows, chunk_size: 1000 })).status).toBe(200);
    await until(async () => (await chunksOf('replaced', 'soup', 'steps')).length === 1);
    expect(before).toBeGreaterThan(1);
    expect((await put('replaced', 'steps', { kind: 'asset', field: 'body' })).status).toBe(200);
    await until(async () => (await artifactsOf('replaced', 'soup')).steps?.value === text);
  });

  test('replace an enrichment, whose artifacts stay shown and searched until the next ones are made', async () => {
    let answer = Promise.resolve('gazpacho');
    await using upstream = new UpstreamServer(async () =>
      Response.json({ choices: [{ message: { role: 'assistant', content: await answer }, finish_reason: 'stop' }] }),
    );
    const config = { provider: 'openai', model: 'm', url: `${upstream.url}/v1` };
    const summary = (prompt: string) => ({
      kind: 'asset',
      field: 'body',
      full_text_index: true,
      producer_json: { type: 'generator', config: { ...config, prompt } },
    });
    await createTable('served');
    await put('served', 'summary', summary('one word'));
    await write('served', { inserts: { soup: { body: text } } });
    const found = (word: string) => search('served', forText(`_artifacts.summary:${word}`));
    const shown = async () => (await artifactsOf('served', 'soup')).summary?.value;
    const next = Promise.withResolvers<string>();
    answer = next.promise;
    const asked = upstream.requests.length;
    expect((await put('served', 'summary', summary('another word'))).status).toBe(200);
    await until(() => Promise.resolve(upstream.requests.length > asked));
    expect([await shown(), await found('gazpacho')]).toEqual(['gazpacho', ['soup']]);
    next.resolve('borscht');
    await until(async () => (await shown()) === 'borscht' && (await found('borscht')).length === 1);
    expect(await found('gazpacho')).toEqual([]);
  });

  const refusals: [string, Json, number, string][] = [
    ['no kind', { field: 'body' }, 400, 'invalid_request'],
    ['an unknown kind', { kind: 'graph', field: 'body' }, 400, 'invalid_request'],
    ['no source', { kind: 'asset' }, 400, 'invalid_request'],
    ['a misspelled member', { ...windows, chunk_sise: 3 }, 400, 'invalid_request'],
    ['another name', { ...windows, name: 'other' }, 400, 'invalid_request'],
    ['an overlap as large as the window', { ...windows, chunk_overlap: 15 }, 400, 'invalid_request'],
    ['chunks of no size', { kind: 'chunk', field: 'body' }, 400, 'invalid_request'],
    ['a chunker that is not JSON', { kind: 'chunk', field: 'body', chunker_json: '{' }, 400, 'invalid_request'],
    ['a producer that is not JSON', { kind: 'asset', field: 'body', producer_json: '{' }, 400, 'invalid_request'],
    ['an unknown producer', { kind: 'asset', field: 'body', producer_json: { type: 'poet' } }, 400, 'invalid_request'],
    ['an embedding without embedder', { kind: 'embedding', field: 'body', expected_dims: 3 }, 400, 'invalid_request'],
    [
      'a source that is not there',
      { kind: 'chunk', chunk_size: 3, source_artifact_name: 'x' },
      404,
      'artifact_not_found',
    ],
    ['itself as its source', { kind: 'asset', source_artifact_name: 'new' }, 400, 'invalid_request'],
    ['chunks of chunks', { kind: 'chunk', chunk_size: 3, source_artifact_name: 'steps' }, 400, 'invalid_request'],
    [
      'vectors of another length',
      { kind: 'embedding', field: 'body', expected_dims: 3, producer_json: { type: 'embedder', config: embedder } },
      400,
      'invalid_request',
    ],
    ['a template that does not close', { kind: 'asset', template: '{{#if a}}' }, 400, 'invalid_request'],
    ['members of another kind', { kind: 'asset', field: 'body', chunk_size: 3 }, 400, 'invalid_request'],
  ];
  test.each(refusals)('refuse %s', async (_, enrichment, status, code) => {
    await createTable('refused');
    await put('refused', 'steps', windows);
    expect(await put('refused', 'new', enrichment)).toMatchObject({ status, body: { code } });
    expect((await list('refused')).artifacts.map(({ name }) => name)).toEqual(['steps']);
  });
});

test('a document tells how far its artifacts are, and what has failed is tried again when that is asked for', async () => {
  let isBroken = true;
  await using upstream = new UpstreamServer(() => {
    if (isBroken)
      return Response.json({ error: { message: 'too long', code: 'context_length_exceeded' } }, { status: 400 });
    return Response.json({
      choices: [{ message: { role: 'assistant', content: 'A summary.' }, finish_reason: 'stop' }],
    });
  });
  await createTable('traced', { indexes: { words: { type: 'embeddings', field: 'body', embedder } } });
  const config = { provider: 'openai', model: 'm', url: `${upstream.url}/v1` };
  await put('traced', 'copy', { kind: 'asset', field: 'title' });
  await put('traced', 'summary', { kind: 'asset', field: 'body', producer_json: { type: 'generator', config } });
  await write('traced', { inserts: { soup: { body: 'a leek' } } });
  const trace = async (key: string) =>
    (await server.send<{ artifacts: Json[] }>('GET', `/db/v1/tables/traced/documents/${key}/artifacts`)).body.artifacts;
  const hash = expect.stringMatching(/^[0-9a-f]{32}$/);
  const [copy, summary, words] = await trace('soup');
  expect(copy).toMatchObject({ name: 'copy', state: 'none', attempts: 0 });
  expect(summary).toMatchObject({
    name: 'summary',
    kind: 'asset',
    attempts: 1,
    reason: expect.stringContaining('too long'),
  });
  expect(words).toMatchObject({ name: 'words', kind: 'embedding', state: 'ready', source_hash: hash });
  isBroken = false;
  const reprocess = (name: string, body: Json) =>
    server.send('POST', `/db/v1/tables/traced/artifacts/${name}/reprocess`, body);
  expect((await reprocess('summary', { key: 'soup' })).body).toEqual({
    reprocess: 'triggered',
    reprocess_status: 'in_progress',
    artifact_name: 'summary',
    ...{ scanned: 1, reprocessed: 1, skipped: 0, failed: 0, limit: 100 },
    ...{ next_key: null, pending_shards: 0, failures: [], shard_cursors: [] },
  });
  await until(async () => (await trace('soup'))[1]?.state === 'ready');
  expect(await reprocess('summary', {})).toMatchObject({
    body: { scanned: 0, reprocessed: 0, reprocess_status: 'complete' },
  });
  expect((await reprocess('summary', { key: 'soup' })).body).toMatchObject({ scanned: 1, reprocessed: 0, skipped: 1 });
  expect(await reprocess('nothing', {})).toMatchObject({ status: 404, body: { code: 'artifact_not_found' } });
  expect((await server.send('GET', '/db/v1/tables/traced/documents/cake/artifacts')).status).toBe(404);
});

test('failed artifacts are tried again in pages, over all ranges, each of them once', async () => {
  let isBroken = true;
  await using upstream = new UpstreamServer(() => {
    const choices = [{ message: { role: 'assistant', content: 'A summary.' }, finish_reason: 'stop' }];
    return isBroken ? Response.json({ error: { message: 'too long' } }, { status: 400 }) : Response.json({ choices });
  });
  await createTable('pages', { num_shards: 3 });
  const config = { provider: 'openai', model: 'm', url: `${upstream.url}/v1` };
  await put('pages', 'summary', { kind: 'asset', field: 'body', producer_json: { type: 'generator', config } });
  const keys = ['!a', '!b', '!c', 'ka', 'kb', '~a', '~b', '~c', '~d'];
  await write('pages', { inserts: Object.fromEntries(keys.map((key) => [key, { body: `text of ${key}` }])) });
  const gone = '!b';
  await write('pages', { deletes: [gone] });
  isBroken = false;
  const pages: Json[] = [];
  for (let next_key: unknown = null; pages.length < keys.length; ) {
    const { body } = await server.send<Json>('POST', '/db/v1/tables/pages/artifacts/summary/reprocess', {
      ...{ limit: 3, next_key },
    });
    pages.push(body);
    next_key = body.next_key;
    if (next_key === null) break;
  }
  expect(pages.map(({ reprocessed }) => reprocessed)).toEqual([3, 3, 2]);
  expect(pages.map(({ pending_shards }) => pending_shards)).toEqual([2, 1, 0]);
  expect(pages.map(({ shard_cursors }) => (shard_cursors as Json[]).map(({ next_key }) => next_key))).toEqual([
    [pages[0]?.next_key, expect.any(String)],
    [pages[1]?.next_key],
    [],
  ]);
  for (const key of keys.filter((each) => each !== gone)) {
    await until(async () => 'summary' in (await artifactsOf('pages', encodeURIComponent(key))));
  }
  const refused = await server.send('POST', '/db/v1/tables/pages/artifacts/summary/reprocess', { limit: 0 });
  expect(refused.status).toBe(400);
});

test('enrichments go on after a restart where they stood', async () => {
  using place = new TemporaryDirectory();
  const start = () => startTestServer({ directory: place.path });
  {
    await using first = await start();
    await first.send('POST', '/db/v1/tables/t', {});
    await first.send('PUT', '/db/v1/tables/t/artifacts/copy/enrichment', {
      kind: 'asset',
      field: 'body',
      full_text_index: true,
    });
    await first.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { body: 'plum' } }, sync_level: 'full_index' });
  }
  await using second = await start();
  await second.send('POST', '/db/v1/tables/t/batch', { inserts: { b: { body: 'leek' } }, sync_level: 'full_index' });
  const { body } = await second.send<Json>('GET', '/db/v1/tables/t/lookup/a?fields=_artifacts.copy');
  expect(body).toMatchObject({ _artifacts: { copy: { value: 'plum' } } });
  const query = { table: 't', full_text_search: { query: '_artifacts.copy:plum OR _artifacts.copy:leek' } };
  expect(hitKeys(await second.send('POST', '/db/v1/query', query)).sort()).toEqual(['a', 'b']);
});
