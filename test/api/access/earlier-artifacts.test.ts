import { expect, test } from 'bun:test';
import type { Caller } from '../../../src/access/principal.ts';
import { until } from '../../support/fault/until.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { ModelService, openProviders } from '../../support/providers/model-service.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const owner = testCaller();
const fields = ['*', '_artifacts', '_chunks', '_embeddings'];

test('what was made of a document while it was hidden is in no answer under a row filter, also where its models are down', async () => {
  using directory = new TemporaryDirectory();
  await using models = new ModelService('openai');
  const database = await openTestDatabase(directory.path, { providers: openProviders() });
  await using _closed = { [Symbol.asyncDispose]: () => database.close() };
  const { tables, artifacts, artifactTrace, writes, documents, queries } = database.services;
  const config = { provider: 'openai', model: 'm', url: `${models.url}/v1` };
  const meaning = { type: 'embeddings', field: 'body', embedder: { ...config, dimensions: 8 } };
  await tables.create('cases', { indexes: { meaning } }, owner);
  const producer_json = { type: 'generator', config };
  const summary = { kind: 'asset', field: 'body', full_text_index: true, producer_json };
  await artifacts.put('cases', 'summary', summary, owner);
  const pieces = { kind: 'chunk', source_artifact_name: 'summary', chunk_size: 20, full_text_index: true };
  await artifacts.put('cases', 'pieces', pieces, owner);
  const write = (document: object, sync_level: string) =>
    writes.batch('cases', bodyOf({ inserts: { a: document }, sync_level }), owner);

  const seeing = (filter: object) => testCaller({ rowFilter: { cases: filter } });
  const red = seeing({ term: { team: 'red' } });
  const ask = async (request: object, caller: Caller) =>
    (await queries.run('cases', bodyOf({ fields, highlight: true, ...request }), caller)).flat().join('');
  const shown = async (caller: Caller) => {
    const found = await documents.lookup('cases', 'a', fields, caller);
    const lines: string[] = [];
    for await (const page of await documents.scan('cases', { fields }, caller)) lines.push(...page);
    return [
      String(found.json),
      ...lines,
      await ask({}, caller),
      await ask({ full_text_search: { match: 'plan' } }, caller),
    ];
  };

  await write({ team: 'blue', body: 'the merger plan' }, 'enrichments');
  models.always = () => new Response('down', { status: 503 });
  await write({ team: 'red', body: 'the garden plan' }, 'full_text');

  for (const answer of await shown(red)) {
    expect(answer).toContain('garden');
    expect(answer).not.toMatch(/merger|_artifacts|_embeddings|"pieces"/);
  }
  const merger = { match: 'merger', field: '_artifacts.summary' };
  for (const request of [
    { full_text_search: merger },
    { full_text_search: { query: 'merger' } },
    { filter_query: merger },
  ]) {
    expect(JSON.parse(await ask(request, red))).toMatchObject({ hits: { hits: [] } });
  }
  expect(JSON.parse(await ask({}, seeing(merger)))).toMatchObject({ hits: { hits: [] } });
  await expect(documents.lookup('cases', 'a', fields, seeing(merger))).rejects.toMatchObject({ code: 'key_not_found' });
  const traced = async (caller: Caller) =>
    (await artifactTrace.of('cases', 'a', caller)).map(({ name, state, source_hash }) => [name, state, source_hash]);
  expect(await traced(red)).toEqual(['summary', 'pieces', 'meaning'].map((name) => [name, 'pending', undefined]));
  expect((await traced(owner)).every(([, , hash]) => typeof hash === 'string')).toBe(true);
  // A caller without a row filter has what is there until it is made again.
  for (const answer of await shown(owner)) expect(answer).toContain('merger');

  models.always = () => undefined;
  const isMade = (answer: string) => /You said: the garden plan/.test(answer) && answer.includes('"pieces"');
  await until(async () => (await shown(red)).every(isMade));
  // An artifact stays while its source stays as it is.
  await write({ team: 'red', body: 'the garden plan', n: 2 }, 'enrichments');
  for (const answer of await shown(red)) expect(answer).toMatch(/"_artifacts":.*You said: the garden plan/);
}, 60_000);

test('edges that were made of an earlier version of their artifact are pending, and tell a caller under a row filter nothing', async () => {
  using directory = new TemporaryDirectory();
  await using models = new ModelService('openai');
  const extraction = JSON.stringify({ relations: [{ type: 'to', source: 'x', target: { text: 'rome' } }] });
  models.always = () =>
    Response.json({ choices: [{ message: { content: extraction }, finish_reason: 'stop' }], usage: {} });
  const database = await openTestDatabase(directory.path, { providers: openProviders() });
  await using _closed = { [Symbol.asyncDispose]: () => database.close() };
  const { tables, artifactTrace, writes } = database.services;
  const producer_json = { type: 'generator', config: { provider: 'openai', model: 'm', url: `${models.url}/v1` } };
  const g = { type: 'graph', artifact: { name: 'facts', kind: 'asset', field: 'body', producer_json } };
  await tables.create('cases', { indexes: { g } }, owner);
  const write = (document: object, sync_level: string) =>
    writes.batch('cases', bodyOf({ inserts: { a: document }, sync_level }), owner);
  const traced = async (caller: Caller) =>
    (await artifactTrace.of('cases', 'a', caller)).map(({ name, state, source_hash }) => [name, state, source_hash]);
  const red = testCaller({ rowFilter: { cases: { term: { team: 'red' } } } });

  await write({ team: 'blue', body: 'the merger' }, 'enrichments');
  await until(async () => (await traced(owner)).every(([, state]) => state === 'ready'));
  models.always = () => new Response('down', { status: 503 });
  await write({ team: 'red', body: 'the garden' }, 'full_text');
  await until(async () => (await traced(owner))[0]?.[1] !== 'ready');
  expect(await traced(red)).toEqual(['facts', 'g'].map((name) => [name, 'pending', undefined]));
  expect((await traced(owner)).every(([, , hash]) => typeof hash === 'string')).toBe(true);
}, 60_000);

test('statements under a row filter over artifacts go by those of the documents as they are', async () => {
  using directory = new TemporaryDirectory();
  await using models = new ModelService('openai');
  const database = await openTestDatabase(directory.path, { providers: openProviders() });
  await using _closed = { [Symbol.asyncDispose]: () => database.close() };
  const { tables, artifacts, writes, sql } = database.services;
  const properties = { body: { type: 'string' }, n: { type: 'integer' } };
  const schema = { storage_mode: 'relational', document_schemas: { row: { schema: { type: 'object', properties } } } };
  await tables.create('cases', { schema }, owner);
  const producer_json = { type: 'generator', config: { provider: 'openai', model: 'm', url: `${models.url}/v1` } };
  await artifacts.put('cases', 'summary', { kind: 'asset', field: 'body', producer_json }, owner);
  const pieces = { kind: 'chunk', source_artifact_name: 'summary', chunk_size: 20, full_text_index: true };
  await artifacts.put('cases', 'pieces', pieces, owner);
  const write = (document: object, sync_level: string) =>
    writes.batch('cases', bodyOf({ inserts: { a: document }, sync_level }), owner);
  const rowsWith = async (word: string) => {
    const caller = testCaller({ rowFilter: { cases: { match: word, field: '_artifacts.pieces' } } });
    return JSON.parse((await sql.run({ sql: 'SELECT n FROM cases' }, caller)).rows);
  };

  await write({ body: 'the merger plan', n: 1 }, 'enrichments');
  expect(await rowsWith('merger')).toEqual([[1]]);
  models.always = () => new Response('down', { status: 503 });
  await write({ body: 'the garden plan', n: 2 }, 'full_text');
  expect(await rowsWith('merger')).toEqual([]);
  models.always = () => undefined;
  await until(async () => (await rowsWith('garden')).length > 0);
  // An artifact stays while its source stays as it is.
  await write({ body: 'the garden plan', n: 3 }, 'enrichments');
  expect(await rowsWith('garden')).toEqual([[3]]);
}, 60_000);
