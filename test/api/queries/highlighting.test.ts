import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Tree {
  value: number;
  description: string;
  details?: Tree[];
}
interface Hit {
  _id: string;
  _score: number;
  _highlight?: Record<string, string[]>;
  _explanation?: Tree;
}

let server: TestServer;

async function ask(request: object, table = 'recipes'): Promise<Hit[]> {
  type Body = { responses: { hits: { hits: Hit[] } }[] };
  const answer = await server.send<Body>('POST', `/db/v1/tables/${table}/query`, request);
  expect(answer).toMatchObject({ status: 200 });
  return answer.body.responses[0]?.hits.hits ?? [];
}

async function refusal(request: object): Promise<{ code: string; error: string }> {
  type Body = { code: string; error: string };
  const answer = await server.send<Body>('POST', '/db/v1/tables/recipes/query', request);
  expect(answer.status).toBe(400);
  return answer.body;
}

const documents = {
  leek: {
    title: 'Leek and potato soup',
    body: 'Cook the leeks, then the potatoes. Serve the soup hot.',
    tag: 'winter',
  },
  bread: { title: 'Potato bread', body: '<b>Bread</b> & butter', tag: 'winter' },
  broad: { title: 'Broad beans', body: 'Beans', tag: 'summer' },
};

beforeAll(async () => {
  server = await startTestServer();
  const properties = { name: { type: 'string', 'x-service-typo': false } };
  const schema = { document_schemas: { d: { schema: { type: 'object', properties } } }, default_type: 'd' };
  await server.send('POST', '/db/v1/tables/recipes', { num_shards: 3 });
  expect((await server.send('POST', '/db/v1/tables/strict', { schema })).status).toBeLessThan(300);
  const batch = (inserts: object) => ({ inserts, sync_level: 'full_text' });
  expect((await server.send('POST', '/db/v1/tables/recipes/batch', batch(documents))).status).toBe(201);
  await server.send('POST', '/db/v1/tables/strict/batch', batch({ a: { name: 'bread', other: 'bread' } }));
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('highlight', () => {
  test('marks what the query found in each field of the page', async () => {
    const hits = await ask({ full_text_search: { query: 'potato leek' }, highlight: true });
    expect(hits.map(({ _id, _highlight }) => [_id, _highlight])).toEqual([
      [
        'leek',
        {
          title: ['<em>Leek</em> and <em>potato</em> soup'],
          body: ['Cook the <em>leeks</em>, then the <em>potatoes</em>. Serve the soup hot.'],
        },
      ],
    ]);
  });

  test('takes fields, tags and the size of fragments, and leaves markup as it is', async () => {
    const options = { fields: ['body'], pre_tag: '[', post_tag: ']', fragment_chars: 20, fragments: 1 };
    const asked = { full_text_search: { query: 'bread OR soup' }, order_by: [{ field: '_id' }], highlight: options };
    const hits = await ask(asked);
    expect(hits.map(({ _highlight }) => _highlight)).toEqual([
      { body: ['<b>[Bread]</b> &'] },
      { body: [expect.stringContaining('[soup]')] },
    ]);
  });

  test('is an empty object where nothing is marked, and absent when it is not asked for', async () => {
    const [first] = await ask({ filter_query: { query: 'title:soup' }, highlight: { fields: ['tag'] } });
    expect(first?._highlight).toEqual({});
    const [second] = await ask({ full_text_search: { query: 'soup' } });
    expect(second).not.toHaveProperty('_highlight');
    const [third] = await ask({ filter_query: { query: 'title:soup' }, fields: ['tag'], highlight: true });
    expect(third?._highlight).toEqual({ title: ['Leek and potato <em>soup</em>'] });
  });

  test('is refused where its options are wrong', async () => {
    const wrong = [
      { frgments: 1 },
      { fragments: 0 },
      { fragment_chars: 1 },
      { pre_tag: 5 },
      { fields: 'title' },
      'yes',
    ];
    for (const highlight of wrong) expect(await refusal({ highlight })).toMatchObject({ code: 'invalid_query' });
    expect((await refusal({ highlight: { frgments: 1 } })).error).toContain('Did you mean "fragments"?');
    expect(await refusal({ highlight: true, limit: 1001 })).toMatchObject({ code: 'limit_exceeded' });
  });
});

describe('explain', () => {
  const sum = (tree: Tree | undefined) => (tree?.details ?? []).reduce((total, detail) => total + detail.value, 0);

  test('shows of what a score is made, by the paths of the documents', async () => {
    const [first] = await ask({ full_text_search: { query: 'title:leek OR body:soup' }, explain: true });
    expect(first?._explanation?.value).toBeCloseTo(first?._score ?? 0, 4);
    expect(sum(first?._explanation)).toBeCloseTo(first?._score ?? 0, 4);
    const described = JSON.stringify(first?._explanation);
    expect(described).toContain('title:\\"leek\\": product of');
    expect(described).toContain('body:\\"soup\\": product of');
  });

  test('goes with a sort, and is bounded', async () => {
    const hits = await ask({ full_text_search: { query: 'potato' }, order_by: [{ field: '_id' }], explain: true });
    expect(hits.map((hit) => hit._explanation?.value)).toEqual([expect.any(Number), expect.any(Number)]);
    expect(await refusal({ explain: true, limit: 101 })).toMatchObject({ code: 'limit_exceeded' });
    expect((await ask({}))[0]).not.toHaveProperty('_explanation');
  });
});

describe('typo_tolerance', () => {
  const found = async (query: string, request: object = {}, table = 'recipes') =>
    (await ask({ full_text_search: { query }, typo_tolerance: true, ...request }, table)).map((hit) => hit._id);

  test('finds words with a slip, after the word itself', async () => {
    expect(await found('title:bread')).toEqual(['bread', 'broad']);
    expect(await found('title:braed', { typo_tolerance: false })).toEqual([]);
    expect(await found('title:braed')).toEqual(['bread']);
    expect(await found('title:potatp')).toEqual(expect.arrayContaining(['leek', 'bread']));
  });

  test('leaves short words, first characters, other conditions and filters exact', async () => {
    expect(await found('title:leak')).toEqual([]);
    expect(await found('title:dread')).toEqual([]);
    expect(await found('title:"potato braed"')).toEqual([]);
    expect(await ask({ filter_query: { query: 'title:braed' }, typo_tolerance: true })).toEqual([]);
  });

  test('marks what it found', async () => {
    const request = { full_text_search: { query: 'title:braed' }, typo_tolerance: true, highlight: true };
    expect((await ask(request))[0]?._highlight).toEqual({ title: ['Potato <em>bread</em>'] });
  });

  test('is off where a field says so', async () => {
    expect(await found('other:braed', {}, 'strict')).toEqual(['a']);
    expect(await found('name:braed', {}, 'strict')).toEqual([]);
    expect(await found('name:bread', {}, 'strict')).toEqual(['a']);
  });
});
