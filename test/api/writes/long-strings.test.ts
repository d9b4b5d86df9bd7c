import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Answer {
  responses: [{ hits: { hits: { _id: string }[] } }];
  message: string;
}

/** Longer than a word of the index, and than a string that it keeps whole. */
const word = 'w'.repeat(400);
const umlauts = 'ü'.repeat(200);
const whole = `https://example.org/${'a/'.repeat(118)}`;
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
  await server.send('POST', '/db/v1/tables/long', { num_shards: 2 });
  const inserts = {
    alone: { text: 'the end of it' },
    before: { text: `${word} end`, url: whole },
    umlauts: { text: `${umlauts} end`, url: `${whole}/` },
  };
  await server.send('POST', '/db/v1/tables/long/batch', { inserts, sync_level: 'full_index' });
});
afterAll(() => server[Symbol.asyncDispose]());

const ask = (filter_query: object) =>
  server.send<Answer>('POST', '/db/v1/tables/long/query', { filter_query, order_by: [{ field: '_id' }], fields: [] });

async function found(filter_query: object): Promise<string[]> {
  const { body } = await ask(filter_query);
  return body.responses[0].hits.hits.map(({ _id }) => _id);
}

test('a word that is too long to be kept is found by its beginning, alone, among others and in phrases', async () => {
  expect(await found({ match: word, field: 'text' })).toEqual(['before']);
  expect(await found({ match: word.toUpperCase(), field: 'text' })).toEqual(['before']);
  expect(await found({ match: umlauts, field: 'text' })).toEqual(['umlauts']);
  expect(await found({ match: `${word} end`, field: 'text', operator: 'and' })).toEqual(['before']);
  expect(await found({ match_phrase: `${word} end`, field: 'text' })).toEqual(['before']);
  expect(await found({ match_phrase: `${umlauts} end`, field: 'text' })).toEqual(['umlauts']);
  expect(await found({ match_phrase: `${'v'.repeat(400)} end`, field: 'text' })).toEqual([]);
});

test('a value that is too long to be indexed whole is refused, and found by its words', async () => {
  expect(Buffer.byteLength(whole)).toBe(256);
  expect(await found({ term: { url: whole } })).toEqual(['before']);
  for (const filter of [
    { term: { url: `${whole}/` } },
    { terms: { url: [whole, `${whole}/`] } },
    { prefix: { url: `${whole}/` } },
    { term: { url: 'ü'.repeat(129) } },
  ]) {
    const { status, body } = await ask(filter);
    expect([status, body.message]).toEqual([400, expect.stringContaining('above 256 bytes')]);
  }
  expect(await found({ match_phrase: `${whole}/`, field: 'url' })).toEqual(['before', 'umlauts']);
  expect(await found({ term: { _id: 'k'.repeat(300) } })).toEqual([]);
});

test('a declared keyword is a whole value up to 8,192 bytes, in conditions, orders and buckets', async () => {
  const url = { type: 'string', 'x-service-types': ['keyword'] };
  const schema = {
    document_schemas: { page: { schema: { type: 'object', properties: { url } } } },
    default_type: 'page',
  };
  await server.send('POST', '/db/v1/tables/pages', { schema });
  const [shorter, longest, longer] = [8_191, 8_192, 8_193].map((length) => 'u'.repeat(length));
  const inserts = { a: { url: `${longest}` }, b: { url: shorter }, c: { url: longer }, d: { url: `${whole}/` } };
  await server.send('POST', '/db/v1/tables/pages/batch', { inserts, sync_level: 'full_index' });
  const of = async (request: object) =>
    (await server.send<Answer>('POST', '/db/v1/tables/pages/query', { fields: [], ...request })).body;
  const ids = async (request: object) => (await of(request)).responses[0].hits.hits.map(({ _id }) => _id);
  expect(await ids({ filter_query: { term: { url: longest } } })).toEqual(['a']);
  expect(await ids({ filter_query: { term: { url: `${whole}/` } } })).toEqual(['d']);
  expect(await ids({ filter_query: { prefix: { url: shorter } }, order_by: [{ field: 'url' }] })).toEqual(['b', 'a']);
  expect(await ids({ full_text_search: { match_all: {} }, order_by: [{ field: 'url' }] })).toEqual([
    'd',
    'b',
    'a',
    'c',
  ]);
  expect((await of({ filter_query: { term: { url: longer } } })).message).toContain('above 8192 bytes');
});
