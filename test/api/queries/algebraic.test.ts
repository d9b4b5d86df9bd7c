import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Result {
  hits: { total: object };
  aggregations: Record<string, object>;
  profile: { algebraic?: { aggregation: string; fallback?: string }[] };
}

let server: TestServer;
const schema = {
  document_schemas: {
    d: {
      schema: {
        type: 'object',
        additionalProperties: true,
        properties: { n: { type: 'number' }, tag: { type: 'string', 'x-service-types': ['keyword'] } },
      },
    },
  },
};
const counters = { type: 'algebraic', derive_from_schema: true };
const aggregations = { tags: { type: 'terms', field: 'tag' }, n: { type: 'stats', field: 'n' } };

const ask = async (table: string, more: object = {}) => {
  const body = { limit: 0, profile: true, aggregations, ...more };
  const answer = await server.send<{ responses: [Result] }>('POST', `/db/v1/tables/${table}/query`, body);
  return answer.body.responses[0];
};
const fallbacks = ({ profile }: Result) => profile.algebraic?.map(({ fallback }) => fallback);

beforeAll(async () => {
  server = await startTestServer();
  const inserts = {
    a: { n: 0.1, tag: 'x' },
    b: { n: 0.2, tag: 'x', free: 1 },
    c: { n: [2, 2], tag: ['x', 'y'] },
  };
  for (const [name, more] of [
    ['t', {}],
    ['mortal', { ttl: { duration: '1h' } }],
  ] as const) {
    const body = { schema: { ...schema, ...more }, indexes: { counters } };
    expect((await server.send('POST', `/db/v1/tables/${name}`, body)).status).toBe(200);
    await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts, sync_level: 'full_index' });
  }
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('aggregations from counters', () => {
  test('of all documents come from the counters, with those of a page too, and the profile says so', async () => {
    for (const more of [{}, { limit: 10 }, { full_text_search: { match_all: {} } }]) {
      const answer = await ask('t', more);
      expect(answer.profile.algebraic).toEqual([{ aggregation: 'tags' }, { aggregation: 'n' }]);
      expect(answer.hits.total).toEqual({ value: 3, relation: 'exact' });
      expect(answer.aggregations).toMatchObject({
        tags: {
          buckets: [
            { key: 'x', doc_count: 3 },
            { key: 'y', doc_count: 1 },
          ],
        },
        n: { count: 4, min: 0.1, max: 2, sum: 4.3 },
      });
    }
  });

  test('under conditions the documents are visited', async () => {
    const narrowed = await ask('t', { filter_query: { term: { tag: 'y' } } });
    expect(fallbacks(narrowed)).toEqual(Array(2).fill('a condition narrows the documents'));
    expect(narrowed.aggregations.n).toMatchObject({ count: 2, sum: 4 });
  });

  test('what the schema does not declare, or counters cannot tell, is visited', async () => {
    const others = {
      free: { type: 'stats', field: 'free' },
      nested: { type: 'terms', field: 'tag', sub_aggregations: { n: { type: 'sum', field: 'n' } } },
      tags: aggregations.tags,
    };
    const answer = await ask('t', { aggregations: others });
    expect(fallbacks(answer)).toEqual([
      'the schema declares no scalar at the path',
      'no counters are kept for this kind of aggregation',
      undefined,
    ]);
    expect(answer.aggregations.free).toMatchObject({ count: 1, sum: 1 });
  });

  test('documents that may have expired are visited', async () => {
    expect(fallbacks(await ask('mortal'))).toEqual(Array(2).fill('documents may have expired'));
  });

  test('without the index nobody counts, and nothing tells of counters', async () => {
    const before = await ask('t');
    expect((await server.send('DELETE', '/db/v1/tables/t/indexes/counters')).status).toBe(204);
    const without = await ask('t');
    expect(without.profile.algebraic).toBeUndefined();
    expect(without.aggregations).toEqual(before.aggregations);
    expect((await server.send('POST', '/db/v1/tables/t/indexes/counters', counters)).status).toBe(201);
    expect((await ask('t')).profile.algebraic).toHaveLength(2);
  });
});

test('the index is as ready as the text index whose counters it shows', async () => {
  const { body } = await server.send<{ status: { index_type: string; doc_count: number; readiness: object } }>(
    'GET',
    '/db/v1/tables/mortal/indexes/counters',
  );
  expect(body.status).toMatchObject({ index_type: 'algebraic', doc_count: 3 });
  expect(body.status.readiness).toMatchObject({ state: 'ready', complete: true });
});
