import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Caller } from '../../../src/access/principal.ts';
import { queryIndexes } from '../../../src/engine/native-query.ts';
import { Templates } from '../../../src/enrichment/template/templates.ts';
import type { Embedder } from '../../../src/inference/providers/embedder.ts';
import { MockProvider } from '../../../src/inference/providers/mock-provider.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { type ProviderConfig, readProviderConfig } from '../../../src/provider-config/provider-config.ts';
import { CursorSeal } from '../../../src/query/execution/page-cursor.ts';
import { QueryEmbeddings } from '../../../src/query/inputs/query-embeddings.ts';
import { type QueryReport, QueryService } from '../../../src/query/query-service.ts';
import type { SearchableTable } from '../../../src/query/searchable-table.ts';
import type { Database } from '../../../src/server/database/open-database.ts';
import { GraphResults } from '../../../src/tables/graph/graph-results.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

/** The vectors come with the documents here, made as an embedder of the table would make them. */

interface Result {
  hits: { total: object; hits: { _id: string; _index_scores?: Record<string, number> }[] };
  failover?: { code: string; error: string };
  profile?: { stages: Record<string, number> };
}

const dimension = 64;
const mock = new MockProvider();
const configOf = (model: string) =>
  readProviderConfig({ provider: 'mock', model, dimensions: dimension }, 'embed', 'embedder');
const embedders: Record<string, ProviderConfig> = { body: configOf('one'), more: configOf('two') };

const directory = new TemporaryDirectory();
let database: Database;
let queries: QueryService;
let embed: Embedder['embed'];
const asked: string[] = [];
const reports: QueryReport[] = [];

const usually: Embedder['embed'] = (texts, task) =>
  mock.embed({ model: 'one', items: texts, task, dimensions: dimension, keepGoing: true });

/** The table, with embedders for some of its indexes. */
function embedding(table: SearchableTable): SearchableTable {
  const named = (indexes: SearchableTable['indexes']) =>
    indexes.map((index) => ({ ...index, embedder: table.name === 'notes' ? embedders[index.name] : undefined }));
  return new Proxy(table, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name === 'indexes' || name === 'listedIndexes') return named(value);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  const { tables, writes } = database.services;
  const dense = { type: 'embeddings', external: true, dimension, distance_metric: 'cosine' } as const;
  const indexes = { body: dense, more: dense, plain: dense };
  await tables.create('notes', { num_shards: 2, indexes }, testCaller());
  await tables.create('plain', {}, testCaller());
  const texts = { amber: 'amber light in the hall', leek: 'leek and potato soup', dog: 'a dog in the garden' };
  const { vectors } = await mock.embed({ model: 'one', items: Object.values(texts), dimensions: dimension });
  const inserts = Object.entries(texts).map(([key, text], at) => {
    const vector = Array.from(vectors[at] as Float32Array);
    return [key, { text, _embeddings: { body: vector, more: vector, plain: vector } }] as const;
  });
  await writes.batch('notes', bodyOf({ inserts: Object.fromEntries(inserts), sync_level: 'full_index' }), testCaller());
  queries = new QueryService({
    tables: { get: (...named) => embedding(tables.get(...named)) },
    run: (of, plan, caller) => queryIndexes(of.handles, JSON.stringify(plan), caller, of),
    searchGraphs: () => Promise.resolve(new GraphResults()),
    clock: systemClock,
    cursors: new CursorSeal(new Uint8Array(32)),
    templates: new Templates(systemClock, 1_000),
    embeddings: new QueryEmbeddings({
      embedder: ({ model }) => ({
        fingerprint: model,
        embed: (texts, task, call) => {
          asked.push(`${model} ${task} ${texts.join('|')}`);
          return embed(texts, task, call);
        },
      }),
      clock: systemClock,
      keptMs: 60_000,
      bytesMax: 1_000_000,
    }),
    provider: () => mock,
    foreign: undefined,
    queryTimeoutMs: 10_000,
    onQuery: (report) => reports.push(report),
    onFailure() {},
    onFailedAmongSeveral() {},
  });
  embed = usually;
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

async function query(request: object, caller: Partial<Caller> = {}): Promise<Result> {
  const [answer = []] = await queries.run('notes', bodyOf(request), testCaller(caller));
  return JSON.parse(answer.join('')) as Result;
}

const keysOf = ({ hits }: Result) => hits.hits.map(({ _id }) => _id);

async function failure(request: object, caller: Partial<Caller> = {}): Promise<ServiceError> {
  const failed = await query(request, caller).catch((error: unknown) => error);
  if (failed instanceof ServiceError) return failed;
  throw new Error('did not fail');
}

const indexes = ['body'];

describe('a search by meaning', () => {
  test('finds what is nearest to the text', async () => {
    const answer = await query({ semantic_search: 'soup of leek', indexes, profile: true });
    expect(keysOf(answer)[0]).toBe('leek');
    expect(answer.profile?.stages.embed_ms).toBeGreaterThanOrEqual(0);
    expect(asked).toEqual(['one RETRIEVAL_QUERY soup of leek']);
  });

  test('embeds a text once for each embedder, and not again for the next query', async () => {
    asked.length = 0;
    const both = { semantic_search: 'a dog', indexes: ['body', 'more'] };
    const [answer] = await Promise.all([query(both), query(both), query({ ...both, limit: 1 })]);
    expect(keysOf(answer)[0]).toBe('dog');
    expect(Object.keys(answer.hits.hits[0]?._index_scores ?? {})).toEqual(['body', 'more']);
    expect(asked.sort()).toEqual(['one RETRIEVAL_QUERY a dog', 'two RETRIEVAL_QUERY a dog']);
  });

  test('goes together with words, given vectors, filters and a reranker', async () => {
    const semantic_search = 'leek soup';
    const hybrid = await query({ semantic_search, indexes, full_text_search: { match: 'amber', field: 'text' } });
    expect(keysOf(hybrid).slice(0, 2).sort()).toEqual(['amber', 'leek']);
    const plain = Array.from({ length: dimension }, (_, at) => (at === 0 ? 1 : 0));
    const given = await query({ semantic_search, indexes: ['plain', 'body'], embeddings: { plain } });
    expect(Object.keys(given.hits.hits[0]?._index_scores ?? {}).sort()).toEqual(['body', 'plain']);
    asked.length = 0;
    const made = { indexes: ['plain'], embeddings: { plain } };
    expect(keysOf(await query({ semantic_search, ...made }))).toEqual(keysOf(await query(made)));
    expect(asked).toEqual([]);
    expect(keysOf(await query({ semantic_search, indexes, filter_query: { term: { _id: 'dog' } } }))).toEqual(['dog']);
    const reranker = { provider: 'mock', model: 'words', field: 'text' };
    expect(keysOf(await query({ semantic_search: 'garden light', indexes, reranker }))).toHaveLength(3);
  });

  test('may be told what is embedded', async () => {
    asked.length = 0;
    await query({ semantic_search: 'dog', indexes, embedding_template: 'Find: {{this}}, {{query}}' });
    expect(asked).toEqual(['one RETRIEVAL_QUERY Find: dog, dog']);
    expect(await failure({ semantic_search: 'dog', indexes, embedding_template: '{{#if}}' })).toMatchObject({
      code: 'invalid_request',
    });
  });

  test('needs no grant for models, which a reranker does', async () => {
    const grants = [{ resourceType: 'table', resource: 'notes', level: 'read' }] as const;
    const reader = { principal: { kind: 'granted', name: 'reader', madeMs: 1, grants } } as const;
    expect(keysOf(await query({ semantic_search: 'dog', indexes }, reader))[0]).toBe('dog');
    const reranker = { provider: 'mock', model: 'words', field: 'text' };
    expect(await failure({ semantic_search: 'dog', indexes, reranker }, reader)).toMatchObject({ code: 'forbidden' });
  });

  test('obeys a row filter', async () => {
    const rowFilter = { notes: { match: 'garden', field: 'text' } };
    expect(keysOf(await query({ semantic_search: 'leek', indexes }, { rowFilter }))).toEqual(['dog']);
  });
});

describe('a text that cannot be embedded', () => {
  const fail = (error: ServiceError) => {
    embed = () => Promise.reject(error);
  };
  const request = { semantic_search: 'unheard of', indexes };

  test('for now is answered with the time to come again', async () => {
    fail(new ServiceError('upstream_failed', 'the provider is down', { retryAfterMs: 2_500 }));
    expect(await failure(request)).toMatchObject({
      code: 'query_embedding_temporarily_unavailable',
      retryAfterMs: 2_500,
      message: expect.stringContaining('index "body": the provider is down'),
    });
  });

  test('by a provider that refuses names it, and one that makes other vectors too', async () => {
    fail(new ServiceError('model_not_found', 'no model "one"'));
    expect(await failure(request)).toMatchObject({ code: 'upstream_refused' });
    embed = (items) => mock.embed({ model: 'one', items, dimensions: 3 });
    const other = await failure({ ...request, semantic_search: 'another' });
    expect(other).toMatchObject({ code: 'upstream_refused', message: expect.stringContaining('has 3 values') });
  });

  test('because of its words is a fault of the request', async () => {
    const error = new ServiceError('context_length_exceeded', '9000 tokens, 512 at most');
    embed = () =>
      Promise.resolve({ model: 'one', dimension, vectors: [undefined], tokens: 0, faults: [{ index: 0, error }] });
    expect(await failure(request)).toMatchObject({ code: 'context_length_exceeded', status: 400 });
  });

  test('is no failure where the words may answer, and the answer says so', async () => {
    fail(new ServiceError('upstream_failed', 'the provider is down'));
    const failover = { merge_config: { strategy: 'failover' }, full_text_search: { match: 'soup', field: 'text' } };
    const answer = await query({ ...request, ...failover });
    expect(keysOf(answer)).toEqual(['leek']);
    expect(answer.failover).toEqual({ code: 'query_embedding_temporarily_unavailable', error: expect.any(String) });
    expect(await failure({ ...request, merge_config: { strategy: 'failover' } })).toMatchObject({ retryable: true });
    const { vectors } = await mock.embed({ model: 'one', items: ['a dog in the garden'], dimensions: dimension });
    const given = { embeddings: { plain: Array.from(vectors[0] as Float32Array) }, distance_under: 0.5 };
    const beside = await query({ ...request, ...failover, ...given, indexes: ['body', 'plain'] });
    expect(keysOf(beside).toSorted()).toEqual(['dog', 'leek']);
    expect(beside.failover).toBeDefined();
    embed = usually;
    expect(await query({ ...request, ...failover })).not.toHaveProperty('failover');
  });

  test('in time ends with the time of the query', async () => {
    embed = (_, __, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    expect(await failure({ ...request, semantic_search: 'slow', timeout_ms: 20 })).toMatchObject({
      code: 'query_timeout',
    });
    embed = usually;
  });
});

test('what is wrong with a search by meaning is named', async () => {
  const refused: [request: object, words: string][] = [
    [{ semantic_search: 'x' }, '"semantic_search" needs "indexes"'],
    [{ semantic_search: ' ', indexes }, '"semantic_search" is empty'],
    [{ semantic_search: 5, indexes }, '"semantic_search" must be a string'],
    [{ semantic_search: 'x', indexes: ['plain'] }, '"plain" has no vector in "embeddings", and no embedder'],
    [{ semantic_search: 'x', indexes: ['bod'] }, 'Did you mean "body"?'],
    [{ semantic_search: 'x', indexes, offset: 1 }, '"offset" cannot go with "semantic_search"'],
    [{ embedding_template: '{{this}}', indexes }, '"embedding_template" needs a "semantic_search"'],
  ];
  for (const [request, words] of refused) {
    expect(await failure(request)).toMatchObject({ code: 'invalid_query', message: expect.stringContaining(words) });
  }
  const long = { semantic_search: 'x'.repeat(65_537), indexes };
  expect(await failure(long)).toMatchObject({ code: 'limit_exceeded', message: expect.stringContaining('65536') });
  expect(reports.every(({ stages }) => stages.plan !== undefined)).toBe(true);
});

test('the log of a slow query has no key of a reranker', async () => {
  reports.length = 0;
  const reranker = { provider: 'service', model: 'm', field: 'text', url: 'http://127.0.0.1:1', api_key: 'canary' };
  await query({ full_text_search: { match: 'soup' }, reranker });
  expect(JSON.stringify(reports[0]?.request)).not.toContain('canary');
  expect(reports[0]?.request).toMatchObject({ reranker: { model: 'm' } });
  const level = 'read';
  const grants = [{ resourceType: '*', resource: '*', level }] as const;
  const caller = { principal: { kind: 'granted', name: 'reader', madeMs: 1, grants } } as const;
  const stored = { ...reranker, api_key: '$' + '{secret:openai}' };
  expect(await failure({ full_text_search: { match: 'soup' }, reranker: stored }, caller)).toMatchObject({
    code: 'forbidden',
  });
});
