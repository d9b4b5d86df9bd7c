import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Answer {
  responses: [{ hits: { hits: { _id: string }[] } }];
  message: string;
}

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
  const left = { type: 'string', 'x-service-index': false };
  const body = { type: 'string', 'x-service-types': ['text'] };
  const [code, place] = [{ type: 'string' }, { 'x-service-types': ['geopoint'] }];
  const note = {
    type: 'object',
    properties: {
      secret: left,
      body,
      scan: { type: 'string', 'x-service-types': ['blob'] },
      closed: { type: 'object', 'x-service-index': false, properties: { inside: { type: 'string' } } },
      person: { type: 'object', properties: { name: { type: 'string' } } },
      sometimes: left,
      tags: { type: 'array' },
      code,
      place,
      pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }] },
    },
  };
  const other = { type: 'object', properties: { secret: left, body, scan: left, closed: left, code, place } };
  const document_schemas = { note: { schema: note }, other: { schema: other } };
  await server.send('POST', '/db/v1/tables/notes', { schema: { default_type: 'note', document_schemas } });
  const indexes = { v: { type: 'embeddings', external: true, dimension: 2 } };
  await server.send('POST', '/db/v1/tables/empty', { indexes });
  const inserts = {
    a: {
      secret: 's',
      body: 'some text',
      scan: 'x',
      closed: { inside: 'i' },
      person: { name: 'Ann' },
      tags: ['red', 7],
      pair: ['k', 3],
    },
    b: { _type: 'other', sometimes: 'now' },
  };
  await server.send('POST', '/db/v1/tables/notes/batch', { inserts, sync_level: 'full_index' });
});
afterAll(() => server[Symbol.asyncDispose]());

const ask = (request: object) =>
  server.send<Answer>('POST', '/db/v1/tables/notes/query', { order_by: [{ field: '_id' }], ...request });

async function found(filter_query: object): Promise<string[]> {
  const { body } = await ask({ filter_query });
  return body.responses[0].hits.hits.map(({ _id }) => _id);
}

test.each([
  ['secret', { exclusion_query: { exists: { field: 'secret' } } }],
  ['secret', { full_text_search: { query: 'Ann -secret:s' } }],
  ['secret', { filter_query: { bool: { must_not: [{ range: { secret: { gte: 'a' } } }] } } }],
  ['secret', { order_by: [{ field: 'secret' }] }],
  ['secret', { aggregations: { n: { type: 'count', field: 'secret' } } }],
  [
    'scan',
    {
      aggregations: {
        p: { type: 'terms', field: 'person.name', sub_aggregations: { s: { type: 'terms', field: 'scan' } } },
      },
    },
  ],
  ['scan', { filter_query: { bool: { must_not: [{ prefix: { scan: 'x' } }] } } }],
  ['closed.inside', { exclusion_query: { match: { 'closed.inside': 'i' } } }],
])('a query that leaves out, orders or counts by %s, which is in no index, is refused: %j', async (field, request) => {
  const { status, body } = await ask(request);
  expect([status, body.message]).toEqual([400, expect.stringContaining(`"${field}" is not indexed`)]);
});

test('a range leaves out nothing by a field of words alone, and is refused; its words leave out', async () => {
  const without = (node: object) => ({ filter_query: { bool: { must_not: [node] } } });
  const { status, body } = await ask(without({ range: { body: { gte: 'a' } } }));
  expect([status, body.message]).toEqual([400, expect.stringContaining('"body" is indexed by its words alone')]);
  expect(await found({ range: { body: { gte: 'a' } } })).toEqual([]);
  expect(await found(without({ match: { body: 'some' } }).filter_query)).toEqual(['b']);
});

test('a range of numbers or dates leaves out nothing by a field that is declared without any, and is refused', async () => {
  const nodes = {
    numbers: { field: 'code', min: 1 },
    dates: { field: 'code', start: '2024-01-01' },
  };
  for (const [kind, node] of Object.entries(nodes)) {
    expect(await found(node)).toEqual([]);
    for (const request of [{ exclusion_query: node }, { filter_query: { bool: { must_not: [node] } } }]) {
      const { status, body } = await ask(request);
      expect([status, body.message]).toEqual([400, expect.stringContaining(`"code" is indexed without ${kind}`)]);
    }
  }
  const { body } = await ask({ exclusion_query: { field: 'person.age', min: 1 } });
  expect(body.responses[0].hits.hits).toHaveLength(2);
});

test('an order by places is refused', async () => {
  const { status, body } = await ask({ order_by: [{ field: 'place' }] });
  expect([status, body.message]).toEqual([400, '"place" is declared without values to order by']);
});

test('a condition on such a field finds nothing, as the schema says', async () => {
  expect(await found({ term: { secret: 's' } })).toEqual([]);
  expect(await found({ match: { 'closed.inside': 'i' } })).toEqual([]);
  expect(await found({ bool: { should: [{ prefix: { scan: 'x' } }, { match: { 'person.name': 'ann' } }] } })).toEqual([
    'a',
  ]);
});

test('a scan that leaves out by such a field is refused as well', async () => {
  const filter_query = { bool: { must_not: [{ term: { secret: 's' } }] } };
  const { status } = await server.send('POST', '/db/v1/tables/notes/documents', { filter_query });
  expect(status).toBe(400);
});

const long = 'p'.repeat(1_025);
test.each([
  ['_rev', '"_rev" is not indexed: members of a document that begin with "_" are left to the server'],
  ['_links.self', '"_links.self" is not indexed'],
  [long, 'more than 1024 bytes'],
  ['a\u0001b', 'a control character'],
])('a member that no index holds, %j, is refused wherever a query names it', async (field, told) => {
  const requests = [
    { filter_query: { term: { [field]: 'x' } } },
    { filter_query: { exists: { field } } },
    { full_text_search: { match: 'x', field } },
    { exclusion_query: { term: { [field]: 'x' } } },
    { order_by: [{ field }] },
    { order_by: [{ field }], count: true },
    { order_by: [{ field }], limit: 0 },
    { aggregations: { each: { type: 'terms', field } } },
  ];
  for (const request of requests) {
    const { status, body } = await server.send<Answer>('POST', '/db/v1/tables/notes/query', request);
    expect([status, body.message]).toEqual([400, expect.stringContaining(told)]);
  }
  // Whether there are documents or not.
  for (const request of requests.slice(0, 4)) {
    const nearest = { embeddings: { v: [1, 0] }, ...request };
    const { status, body } = await server.send<Answer>('POST', '/db/v1/tables/empty/query', nearest);
    expect([status, body.message]).toEqual([400, expect.stringContaining(told)]);
  }
  expect((await server.send('POST', '/db/v1/tables/notes/lookup', requests[0])).status).toBe(400);
});

test('members beginning with an underscore that the server knows are asked about', async () => {
  expect(await found({ term: { _type: 'other' } })).toEqual(['b']);
  expect(await found({ exists: { field: '_timestamp' } })).toEqual(['a', 'b']);
  expect(await found({ match: 'ann', field: '_all' })).toEqual(['a']);
  expect((await ask({ order_by: [{ field: '_score' }, { field: '_id' }] })).status).toBe(200);
});

test('objects, undeclared fields, and fields that one type indexes are asked about as ever', async () => {
  expect(await found({ exists: { field: 'person' } })).toEqual(['a']);
  expect(await found({ term: { nowhere: 's' } })).toEqual([]);
  expect(await found({ term: { sometimes: 'now' } })).toEqual(['b']);
});

test('the elements of an array of which the schema says nothing are indexed by what they are', async () => {
  expect(await found({ term: { tags: 'red' } })).toEqual(['a']);
  expect(await found({ match: { tags: 'RED' } })).toEqual(['a']);
  expect(await found({ range: { tags: { gte: 7 } } })).toEqual(['a']);
  expect(await found({ term: { pair: 3 } })).toEqual(['a']);
});
