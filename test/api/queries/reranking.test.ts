import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { ModelService } from '../../support/providers/model-service.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Result {
  hits: {
    total: { value: number };
    max_score: number;
    hits: { _id: string; _score: number; _explanation?: { description: string; details: object[] } }[];
  };
  profile?: { stages: Record<string, number>; reranker: object };
}

let server: TestServer;
/** Scores a text by the part of the query's words that it has. */
const reranker = { provider: 'mock', model: 'words', field: 'text' };

async function query(request: object) {
  return server.send<{ responses: [Result]; code?: string; error?: string }>(
    'POST',
    '/db/v1/tables/dishes/query',
    request,
  );
}

async function ranked(request: object): Promise<[key: string, score: number][]> {
  const { status, body } = await query(request);
  expect([status, body.error]).toEqual([200, undefined]);
  return body.responses[0].hits.hits.map(({ _id, _score }) => [_id, _score]);
}

beforeAll(async () => {
  server = await startTestServer();
  await server.send('POST', '/db/v1/tables/dishes', {
    num_shards: 2,
    indexes: { taste: { type: 'embeddings', external: true, dimension: 2 } },
  });
  const dish = (title: string, text: unknown, at: number) => ({ title, text, _embeddings: { taste: [at, 0] } });
  const inserts = {
    a: dish('soup soup soup', 'nothing of it', 1),
    b: dish('soup', 'green leek soup', 2),
    c: dish('soup of the day', ['leek', 'soup'], 3),
    d: dish('more soup', undefined, 4),
    e: dish('soup again', { kind: 'leek', words: 'green soup' }, 5),
  };
  await server.send('POST', '/db/v1/tables/dishes/batch', { inserts, sync_level: 'full_index' });
});

afterAll(() => server[Symbol.asyncDispose]());

describe('a reranker', () => {
  const asked = { full_text_search: { query: 'title:soup' }, reranker };

  test('orders the hits by how well their text answers the query, what has none last', async () => {
    const words = { ...asked, full_text_search: { match: 'green leek soup', field: 'title' } };
    expect(await ranked(words)).toEqual([
      ['b', 1],
      ['e', 1],
      ['c', 0.6666667],
      ['a', 0],
      ['d', 0],
    ]);
  });

  test('looks at the whole window, and the page is cut from what it says', async () => {
    const words = { ...asked, full_text_search: { match: 'green leek soup', field: 'title' } };
    const window = { merge_config: { window_size: 5 } };
    expect(await ranked({ ...words, ...window, limit: 1 })).toEqual([['b', 1]]);
    expect(await ranked({ ...words, ...window, limit: 2, offset: 1 })).toEqual([
      ['e', 1],
      ['c', 0.6666667],
    ]);
    expect(await ranked({ ...words, reranker: { ...reranker, top_n: 2 } })).toHaveLength(2);
    const { body } = await query({ ...words, ...window, limit: 1, reranker: { ...reranker, top_n: 1 } });
    expect(body.responses[0].hits).toMatchObject({ total: { value: 5 }, max_score: 1 });
  });

  test('reads what a template makes of a document', async () => {
    const template = '{{title}}{{#if text}} and{{/if}}';
    const by = { ...reranker, field: undefined, template };
    const found = await ranked({
      full_text_search: { query: 'title:(soup again)', default_operator: 'or' },
      reranker: by,
    });
    expect(found[0]?.[0]).toBe('e');
    const broken = await query({ ...asked, reranker: { ...by, template: '{{#if}' } });
    expect([broken.status, broken.body.error]).toEqual([400, expect.stringContaining('line 1')]);
  });

  test('works on hits that vectors found, and on nothing', async () => {
    const near = { embeddings: { taste: [3, 0] }, full_text_search: { match: 'green leek soup', field: 'title' } };
    expect((await ranked({ ...near, reranker, limit: 3 }))[0]?.[1]).toBeGreaterThan(0.5);
    expect(await ranked({ ...asked, filter_query: { match_none: {} } })).toEqual([]);
    expect(await ranked({ ...asked, limit: 0 })).toEqual([]);
  });

  test('tells how it went', async () => {
    const { body } = await query({ ...asked, explain: true, profile: true, limit: 1 });
    const [{ hits, profile }] = body.responses;
    expect(hits.hits[0]?._explanation).toMatchObject({
      description: expect.stringContaining('reranker "words"'),
      details: [{ value: expect.any(Number) }],
    });
    expect(profile?.stages.rerank_ms).toBeGreaterThanOrEqual(0);
    const duration_ms = Math.round(profile?.stages.rerank_ms ?? Number.NaN);
    expect(profile?.reranker).toEqual({ model: 'words', documents_reranked: expect.any(Number), duration_ms });
  });

  const refused: [reranker: object, more: object, status: number, words: string][] = [
    [{ model: 'm', field: 'f' }, {}, 400, '"reranker.provider" is missing'],
    [{ provider: 'ollama', model: 'm', field: 'f' }, {}, 400, 'use one of service, cohere'],
    [{ provider: 'mock', model: 'm' }, {}, 400, 'needs a "field"'],
    [{ ...reranker, feild: 'x' }, {}, 400, 'Did you mean "field"?'],
    [{ ...reranker, top_n: 0 }, {}, 400, '"top_n"'],
    [reranker, { order_by: [{ field: 'title' }] }, 400, '"order_by" cannot go with "reranker"'],
    [reranker, { limit: 1_001 }, 400, 'at most 1000 hits are reranked'],
    [reranker, { full_text_search: undefined }, 400, 'nothing to compare documents with'],
    [{ ...reranker, provider: 'service' }, {}, 502, 'reranker: no model named "words"'],
  ];
  test.each(refused)('%j with %j is answered %d: %s', async (given, more, status, words) => {
    const answer = await query({ ...asked, ...more, reranker: given });
    expect([answer.status, answer.body.error]).toEqual([status, expect.stringContaining(words)]);
  });
});

describe('a hosted reranker', () => {
  const asked = { full_text_search: { match: 'green leek soup', field: 'title' } };
  const hosted = ({ url }: ModelService) => ({
    provider: 'cohere',
    model: 'rerank-v3',
    field: 'text',
    url,
    api_key: 'k',
  });

  test('is asked once for all hits, in its own protocol', async () => {
    await using service = new ModelService('cohere');
    const found = await ranked({ ...asked, reranker: hosted(service), merge_config: { window_size: 5 }, limit: 2 });
    expect(found.map(([key]) => key)).toEqual(['b', 'e']);
    const [request, ...others] = service.seen;
    expect([request?.path, others]).toEqual(['/v2/rerank', []]);
    expect(request?.body).toMatchObject({ model: 'rerank-v3', query: 'green leek soup' });
    expect(request?.body.documents).toHaveLength(4);
    expect(request?.headers.get('authorization')).toBe('Bearer k');
  });

  test('that fails, fails the query: for now or for good', async () => {
    await using service = new ModelService('cohere');
    service.always = () => Response.json({ message: 'no such key' }, { status: 401 });
    const refused = await query({ ...asked, reranker: hosted(service) });
    expect([refused.status, refused.body.code]).toEqual([502, 'reranker_upstream_failure']);
    expect(JSON.stringify(refused.body)).not.toContain('"k"');
    service.always = () => new Response('overloaded', { status: 503, headers: { 'retry-after': '7' } });
    const busy = await query({ ...asked, reranker: hosted(service) });
    expect([busy.status, busy.body.code]).toEqual([503, 'reranker_temporarily_unavailable']);
    expect(busy.headers.get('retry-after')).toMatch(/^\d+$/);
  });

  test('at a host that the operator does not allow is not asked', async () => {
    const reranker = { provider: 'cohere', model: 'm', field: 'text', url: 'https://example.org' };
    expect((await query({ ...asked, reranker })).body.code).toBe('host_not_allowed');
  });
});
