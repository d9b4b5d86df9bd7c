import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { startTestServer, type TestServer } from '../support/test-server.ts';
import { threadMs } from '../support/thread-time.ts';

/** The longest that one turn of the event loop may take, in milliseconds of the thread's own time. */
const turnMsMax = 20;
/** A turn that compiles code for the first time takes longer than it will ever again. */
const rounds = 8;

let server: TestServer;

const documents = Object.fromEntries(
  Array.from({ length: 400 }, (_, at) => [
    `k${at}`,
    { text: `soup word${at} ${at % 3 === 0 ? 'leek' : 'miso'}`, kind: at % 4 === 0 ? 'open' : 'secret', n: at },
  ]),
);

beforeAll(async () => {
  server = await startTestServer();
  await server.send('POST', '/db/v1/tables/rows', { num_shards: 2 });
  const batch = { inserts: documents, sync_level: 'full_text' };
  expect((await server.send('POST', '/db/v1/tables/rows/batch', batch)).status).toBe(201);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** Sends a body; answers the status, the error's code and the longest turn of the event loop meanwhile. */
async function send(body: string): Promise<{ status: number; code: string | undefined; turnMs: number }> {
  let turnMs = 0;
  const watch = { goesOn: true, lastMs: threadMs() };
  const turn = () => {
    const now = threadMs();
    turnMs = Math.max(turnMs, now - watch.lastMs);
    watch.lastMs = now;
    if (watch.goesOn) setImmediate(turn);
  };
  setImmediate(turn);
  const response = await fetch(`${server.url}/db/v1/tables/rows/query`, { method: 'POST', body });
  const text = await response.text();
  watch.goesOn = false;
  const code = response.ok ? undefined : (JSON.parse(text) as { code?: string }).code;
  return { status: response.status, code, turnMs };
}

describe('I07: queries that ask for too much are refused or bounded, and the event loop goes on', () => {
  const words = (count: number) => Array.from({ length: count }, (_, at) => `word${at}`).join(' OR ');
  const query = (text: string) => JSON.stringify({ full_text_search: { query: text }, limit: 1 });
  const nodes = (count: number) =>
    JSON.stringify({
      full_text_search: { disjuncts: Array.from({ length: count }, (_, at) => ({ match: `w${at}` })) },
    });
  const cases: [what: string, body: string, status: number, code?: string][] = [
    ['a thousand clauses', query(words(1_000)), 200],
    ['ten thousand clauses in a query string', query(words(10_000)), 400, 'limit_exceeded'],
    ['ten thousand nodes', nodes(10_000), 400, 'limit_exceeded'],
    ['a query of three megabytes', nodes(150_000), 400, 'limit_exceeded'],
    ['more than a body may hold', query('x'.repeat(4_300_000)), 413, 'payload_too_large'],
    ['a leading wildcard', query('*o* AND *r*'), 200],
    ['wildcards without end', query(Array.from({ length: 200 }, () => '*a*b*c*').join(' ')), 400, 'limit_exceeded'],
    ['an expression that backtracks elsewhere', query('text:/(a|aa)+(b|bb)*$/'), 200],
    ['an expression that explodes', query('text:/((a{1,100}){1,100}){1,100}/'), 400],
    ['quotes that never close', query('"'.repeat(60_001)), 400],
    ['parentheses that never close', query('('.repeat(60_000)), 400, 'limit_exceeded'],
    ['a text of a million words', JSON.stringify({ full_text_search: { match: 'x '.repeat(500_000) } }), 400],
    ['brackets without end', '['.repeat(2_000_000), 400, 'invalid_json'],
    ['nothing but space before the query', `${' '.repeat(4_000_000)}{}`, 200],
    ['a hundred large queries', Array.from({ length: 100 }, () => query(words(900))).join('\n'), 200],
    ['a limit beyond any page', JSON.stringify({ limit: 1_000_000_000 }), 400],
  ];
  for (const [what, body, status, code] of cases) {
    test(what, async () => {
      let shortest = Number.POSITIVE_INFINITY;
      for (let round = 0; round < rounds && shortest > turnMsMax; round += 1) {
        const answer = await send(body);
        expect(answer.status).toBe(status);
        if (code !== undefined) expect(answer.code).toBe(code);
        shortest = Math.min(shortest, answer.turnMs);
      }
      expect(shortest).toBeLessThan(turnMsMax);
    }, 120_000);
  }
});

describe('I12: nothing in a query gets around a filter', () => {
  const leaf = fc.constantFrom<object>(
    { match_all: {} },
    { query: 'soup' },
    { query: 'kind:secret' },
    { term: 'secret', field: 'kind' },
    { query: 'leek OR NOT miso' },
    { min: 10, field: 'n' },
    { prefix: 'wor', field: 'text' },
    { match_none: {} },
    { ids: ['k1', 'k2', 'k4', 'k5'] },
  );
  const { node } = fc.letrec<{ node: object }>((tie) => {
    const list = fc.array(tie('node'), { minLength: 1, maxLength: 3 });
    const clauses = fc.record({ must: list, should: list, must_not: list, filter: list }, { requiredKeys: [] });
    const bool = fc
      .record({ clauses, least: fc.integer({ min: 0, max: 2 }) })
      .map(({ clauses, least }) => ({ bool: { ...clauses, minimum_should_match: least } }));
    const disjunction = fc
      .record({ disjuncts: list, min: fc.integer({ min: 0, max: 2 }) })
      .map(({ disjuncts, min }) => ({ disjuncts, min: Math.min(min, disjuncts.length) }));
    return { node: fc.oneof({ depthSize: 'small', withCrossShrink: true }, leaf, bool, disjunction) };
  });

  test('hits, counts and aggregations stay inside it', async () => {
    const check = async (search: object, exclude: boolean) => {
      const restriction = exclude
        ? { exclusion_query: { term: 'secret', field: 'kind' } }
        : { filter_query: { term: 'open', field: 'kind' } };
      const request = {
        full_text_search: search,
        ...restriction,
        limit: 400,
        aggregations: { kinds: { type: 'terms', field: 'kind' } },
      };
      type Hits = { total: { value: number }; hits: { _source: { kind: string } }[] };
      type Result = { hits: Hits; aggregations: { kinds: { buckets: { key: string }[] } } };
      const answer = await server.send<{ responses: Result[] }>('POST', '/db/v1/tables/rows/query', request);
      if (answer.status === 400) return;
      expect(answer.status).toBe(200);
      const [result] = answer.body.responses;
      expect(result?.hits.hits.every(({ _source }) => _source.kind === 'open')).toBe(true);
      expect(result?.hits.total.value).toBe(result?.hits.hits.length ?? -1);
      expect(result?.aggregations.kinds.buckets.every(({ key }) => key === 'open')).toBe(true);
    };
    await fc.assert(fc.asyncProperty(node, fc.boolean(), check), { numRuns: 150 });
  }, 120_000);
});
