import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface FoundHits {
  responses: { hits: { hits: { _id: string; _highlight?: unknown }[] } }[];
}

let server: TestServer;
const documents = {
  a: { t: 'An old TV' },
  b: { t: 'The television set' },
  c: { t: 'A laptop' },
  d: { t: 'A notebook computer' },
  e: { t: 'A portable computer for the desk' },
  f: { t: 'The United States of America' },
  g: { t: 'usa today' },
  h: { t: 'states that are united' },
};
const synonyms = [['tv', 'television'], 'laptop => notebook, portable computer', 'USA, United States'];

async function found(request: object): Promise<string[]> {
  const answer = await server.send<FoundHits>('POST', '/db/v1/tables/things/query', request);
  expect(answer).toMatchObject({ status: 200 });
  return (answer.body.responses[0]?.hits.hits ?? []).map((hit) => hit._id).sort();
}

/** Keys that a scan under a filter answers. */
async function scanned(filter: object): Promise<string[]> {
  const answer = await fetch(`${server.url}/db/v1/tables/things/documents`, {
    method: 'POST',
    body: JSON.stringify({ filter_query: filter }),
  });
  return (await answer.text()).split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line)._id as string)));
}

const changeSchema = (schema: object) => server.send('PUT', '/db/v1/tables/things/schema', schema);

beforeAll(async () => {
  server = await startTestServer();
  const created = await server.send('POST', '/db/v1/tables/things', { schema: { synonyms } });
  expect(created.status).toBeLessThan(300);
  const batch = { inserts: documents, sync_level: 'full_text' };
  expect((await server.send('POST', '/db/v1/tables/things/batch', batch)).status).toBe(201);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('synonyms', () => {
  const cases: [query: object, ids: string[]][] = [
    [{ query: 'tv' }, ['a', 'b']],
    [{ query: 't:Television' }, ['a', 'b']],
    [{ query: 'television AND old' }, ['a']],
    [{ match: 'tv set', operator: 'and' }, ['b']],
    [{ match: { t: { query: 'old television', operator: 'and' } } }, ['a']],
    [{ query: 'laptop' }, ['c', 'd', 'e']],
    [{ query: 'notebook' }, ['d']],
    [{ query: 'usa' }, ['f', 'g']],
    [{ match: { t: { query: 'united states', operator: 'and' } } }, ['f', 'g', 'h']],
    [{ match_phrase: 'old television' }, []],
    [{ query: 'NOT tv' }, ['c', 'd', 'e', 'f', 'g', 'h']],
  ];
  for (const [query, ids] of cases) {
    test(`${JSON.stringify(query)} finds ${ids.join(' ')}`, async () => {
      expect(await found({ full_text_search: query })).toEqual(ids);
      expect(await found({ filter_query: query })).toEqual(ids);
      expect(await scanned(query)).toEqual(ids);
    });
  }

  test('are highlighted, and go with slips', async () => {
    expect(await found({ full_text_search: { query: 'televsion' }, typo_tolerance: true })).toEqual(['b']);
    const answer = await server.send<FoundHits>('POST', '/db/v1/tables/things/query', {
      full_text_search: { query: 'laptop' },
      filter_query: { query: 'desk' },
      highlight: true,
    });
    const highlight = { t: ['A <em>portable</em> <em>computer</em> for the desk'] };
    expect(answer.body.responses[0]?.hits.hits[0]?._highlight).toEqual(highlight);
  });

  test('change without a new index', async () => {
    const before = await server.send('GET', '/db/v1/tables/things');
    expect((await changeSchema({ synonyms: [['tv', 'laptop']] })).status).toBe(200);
    expect(await found({ full_text_search: { query: 'tv' } })).toEqual(['a', 'c']);
    expect((await changeSchema({})).status).toBe(200);
    expect(await found({ full_text_search: { query: 'tv' } })).toEqual(['a']);
    const after = await server.send('GET', '/db/v1/tables/things');
    expect(Object.keys(after.body.indexes as object)).toEqual(Object.keys(before.body.indexes as object));
  });

  test('are refused where they cannot be understood', async () => {
    const many = Array.from({ length: 10_001 }, (_, at) => [`a${at}`, `b${at}`]);
    const wrong = [5, 'tv', [['tv']], [['tv', '']], [['tv', 5]], ['a => b => c'], ['=> b'], [['tv', '...']], many];
    for (const value of wrong) {
      const answer = await changeSchema({ synonyms: value });
      expect(answer.status).toBe(400);
      expect(['invalid_schema', 'invalid_request']).toContain(answer.body.code as string);
    }
  });

  test('of ten thousand groups are applied by their words alone', async () => {
    const groups = Array.from({ length: 10_000 }, (_, at) => [`word${at}`, at === 7 ? 'tv' : `other${at}`]);
    expect((await changeSchema({ synonyms: groups })).status).toBe(200);
    expect(await found({ full_text_search: { query: 'word7' } })).toEqual(['a']);
  });
});
