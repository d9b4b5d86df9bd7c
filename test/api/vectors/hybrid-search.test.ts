import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';
import { fused, type RankedHit } from '../../support/vectors/vector-oracle.ts';
import {
  ask,
  createRecipes,
  randomNumbers,
  randomTokens,
  randomVector,
  recipes,
  type VectorResult,
  write,
} from '../../support/vectors/vector-recipes.ts';

let server: TestServer;
const documents = recipes(300);
const random = randomNumbers(23);

beforeAll(async () => {
  server = await startTestServer();
  for (const [table, shards] of [
    ['one', 1],
    ['four', 4],
  ] as const) {
    await createRecipes(server, table, shards);
    await write(server, table, { inserts: documents });
  }
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const text = { full_text_search: { query: 'leek OR soup OR miso' } };

function listOf({ hits }: VectorResult): RankedHit[] {
  return hits.hits.map((hit) => ({ key: hit._id, score: hit._score }));
}

/** The answer of each leg of a request alone. */
async function legsAlone(
  request: { embeddings: Record<string, unknown> },
  more: object,
): Promise<Record<string, RankedHit[]>> {
  const lists: Record<string, RankedHit[]> = { full_text: listOf(await ask(server, 'one', { ...text, ...more })) };
  for (const [name, vector] of Object.entries(request.embeddings)) {
    lists[name] = listOf(await ask(server, 'one', { embeddings: { [name]: vector }, search_effort: 1, ...more }));
  }
  return lists;
}

/** Asks both tables, which must say the same, and returns what they say. */
async function askBoth(request: object): Promise<VectorResult> {
  const [one, four] = [await ask(server, 'one', request), await ask(server, 'four', request)];
  expect(four.hits).toEqual(one.hits);
  return one;
}

function vectorsOf(names: string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, name === 'tags' ? randomTokens(random) : randomVector(random)]));
}

const configs: object[] = [
  {},
  { strategy: 'rrf', rank_constant: 1 },
  { strategy: 'rrf', weights: { full_text: 0.25, angle: 3 } },
  { strategy: 'rrf', weights: { full_text: 0 } },
  { strategy: 'rsf' },
  { strategy: 'rsf', weights: { full_text: 2, angle: 0.5 } },
  { strategy: 'rsf', window_size: 50 },
  { strategy: 'rrf', window_size: 3 },
];

describe('several searches are fused', () => {
  for (const names of [['angle'], ['angle', 'tags'], ['euclid', 'angle', 'dot', 'tags']]) {
    for (const config of configs) {
      for (const restriction of [{}, { filter_query: { query: 'vegan:true AND year:<2030' } }]) {
        const title = `text and ${names.join(', ')} by ${JSON.stringify(config)} under ${JSON.stringify(restriction)}`;
        test(title, async () => {
          const request = { embeddings: vectorsOf(names) };
          const {
            strategy = 'rrf',
            rank_constant = 60,
            window_size = 20,
            weights = {},
          } = config as {
            strategy?: 'rrf' | 'rsf';
            rank_constant?: number;
            window_size?: number;
            weights?: Record<string, number>;
          };
          const lists = await legsAlone(request, { limit: window_size, ...restriction });
          const expected = fused(lists, { strategy, weights, rankConstant: rank_constant });
          const asked = { ...text, ...request, limit: 20, search_effort: 1, merge_config: config, ...restriction };
          const { hits } = await askBoth(asked);
          expect(hits.hits.map((hit) => hit._id)).toEqual(expected.slice(0, 20).map(({ key }) => key));
          expect(hits.total.value).toBe(expected.length);
          expect(hits.max_score).toBe(hits.hits[0]?._score ?? 0);
          for (const [at, hit] of hits.hits.entries()) {
            expect(hit._score).toBeCloseTo(expected[at]?.score ?? Number.NaN, 5);
            for (const [leg, list] of Object.entries(lists)) {
              const alone = list.find(({ key }) => key === hit._id)?.score;
              if (alone === undefined) expect(hit._index_scores).not.toHaveProperty(leg);
              else expect(hit._index_scores?.[leg]).toBeCloseTo(alone, 4);
            }
          }
        });
      }
    }
  }

  test('failover asks for words only where no vector finds anything', async () => {
    const merge_config = { strategy: 'failover' };
    const angle = randomVector(random);
    const alone = await askBoth({ embeddings: { angle }, search_effort: 1 });
    const both = await askBoth({ ...text, embeddings: { angle }, search_effort: 1, merge_config });
    expect(listOf(both)).toEqual(listOf(alone));
    const words = await askBoth({ ...text });
    const nothing = await askBoth({ ...text, embeddings: { tags: { '4000000000': 1 } }, merge_config });
    expect(listOf(nothing)).toEqual(listOf(words));
    expect(nothing.hits.hits[0]?._index_scores).toEqual({ full_text: words.hits.max_score });
  });
});

describe('what a pruner leaves', () => {
  const rules: [rule: object, left: (scores: number[]) => number][] = [
    [{ min_absolute_score: 0.03 }, (scores) => scores.filter((score) => score >= 0.03).length],
    [{ min_score_ratio: 0.6 }, (scores) => scores.filter((score) => score >= 0.6 * (scores[0] ?? 0)).length],
    [
      { std_dev_threshold: 0.5 },
      (scores) => {
        const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
        const deviation = Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length);
        return scores.filter((score) => score >= mean - 0.5 * deviation).length;
      },
    ],
    [
      { max_score_gap_percent: 20 },
      (scores) => {
        const span = (scores[0] ?? 0) - (scores.at(-1) ?? 0);
        const gap = scores.findIndex((score, at) => score - (scores[at + 1] ?? score) > span * 0.2);
        return gap < 0 ? scores.length : gap + 1;
      },
    ],
  ];
  const request = { ...text, embeddings: { angle: randomVector(random), tags: randomTokens(random) }, limit: 60 };

  for (const [rule, left] of rules) {
    test(JSON.stringify(rule), async () => {
      const whole = await askBoth({ ...request, merge_config: { window_size: 20 } });
      const pruned = await askBoth({ ...request, merge_config: { window_size: 20 }, pruner: rule });
      const count = left(whole.hits.hits.map((hit) => hit._score));
      expect(count).toBeGreaterThan(0);
      expect(count).toBeLessThan(whole.hits.hits.length);
      expect(listOf(pruned)).toEqual(listOf(whole).slice(0, count));
      expect(pruned.hits.total.value).toBe(count);
    });
  }

  test('require_multi_index', async () => {
    const whole = await askBoth(request);
    const pruned = await askBoth({ ...request, pruner: { require_multi_index: true } });
    const several = whole.hits.hits.filter((hit) => Object.keys(hit._index_scores ?? {}).length > 1);
    expect(several.length).toBeGreaterThan(0);
    expect(pruned.hits.hits).toEqual(several);
  });
});

describe('what a pruner leaves of words alone', () => {
  test('follows their scores', async () => {
    const whole = await askBoth({ ...text, limit: 60 });
    const best = whole.hits.max_score;
    const kept = listOf(whole).filter((_, at) => (whole.hits.hits[at]?._score ?? 0) >= 0.7 * best);
    expect(kept.length).toBeGreaterThan(0);
    expect(kept.length).toBeLessThan(whole.hits.hits.length);
    const pruned = await askBoth({ ...text, limit: 60, pruner: { min_score_ratio: 0.7 } });
    expect(listOf(pruned)).toEqual(kept);
    expect(pruned.hits.total.value).toBe(kept.length);
    expect(await askBoth({ ...text, limit: 60, pruner: {} })).toMatchObject({ hits: whole.hits });
  });
});

describe('what a pruner leaves of matches that all score alike', () => {
  const filter_query = { query: 'vegan:true' };

  test('is all of them or none', async () => {
    for (const request of [{ filter_query }, { full_text_search: { match_all: {} }, filter_query }]) {
      const whole = await askBoth({ ...request, limit: 200 });
      expect(whole.hits.hits.length).toBeGreaterThan(0);
      const kept = { min_absolute_score: 1, min_score_ratio: 1, std_dev_threshold: 0, max_score_gap_percent: 0 };
      const pruned = await askBoth({ ...request, limit: 200, pruner: kept });
      expect(listOf(pruned)).toEqual(listOf(whole));
      expect(pruned.hits.total).toEqual(whole.hits.total);
      for (const pruner of [{ min_absolute_score: 1.5 }, { require_multi_index: true }]) {
        expect((await askBoth({ ...request, pruner })).hits).toMatchObject({ hits: [], total: { value: 0 } });
      }
    }
  });

  test('goes by the boost of match_all', async () => {
    const full_text_search = { match_all: { boost: 2 } };
    const pruned = await askBoth({ full_text_search, limit: 3, pruner: { min_absolute_score: 1.5 } });
    expect(pruned.hits.hits.map((hit) => hit._score)).toEqual([2, 2, 2]);
  });
});

describe('everything else of a query goes with vectors', () => {
  const angle = randomVector(random);
  const request = { ...text, embeddings: { angle }, search_effort: 1, limit: 8 };

  test('count, an empty page and aggregations over the window', async () => {
    const { hits } = await askBoth({ ...request, limit: 1000 });
    const counted = await askBoth({ ...request, limit: 1000, count: true });
    expect(counted.hits).toMatchObject({ total: { value: hits.total.value }, hits: [] });
    expect((await askBoth({ ...request, count: true })).hits.total).toEqual({
      value: hits.total.value,
      relation: 'exact',
    });
    const aggregations = { vegans: { type: 'count', field: 'vegan' }, oldest: { type: 'min', field: 'year' } };
    const page = await askBoth(request);
    const { hits: none, aggregations: over } = await askBoth({
      ...request,
      limit: 0,
      merge_config: { window_size: 8 },
      aggregations,
    });
    expect(none.hits).toEqual([]);
    expect(none.total).toEqual(page.hits.total);
    const all = (await askBoth({ ...request, limit: 16, merge_config: { window_size: 8 } })).hits.hits;
    expect(over?.vegans?.value).toBe(all.length);
    expect(over?.oldest?.value).toBe(Math.min(...all.map((hit) => hit._source.year as number)));
  });

  test('fields, highlights and explanations', async () => {
    const { hits } = await askBoth({ ...request, fields: ['title'], highlight: true, explain: true });
    const [first] = hits.hits;
    expect(Object.keys(first?._source ?? {})).toEqual(['title']);
    expect(first?._explanation?.value).toBeCloseTo(first?._score ?? Number.NaN, 6);
    const legs = Object.keys(first?._index_scores ?? {}).sort();
    const explained = first?._explanation?.details.map(({ description }) => description.split(':')[0] ?? '');
    expect(explained?.sort()).toEqual(legs);
  });

  test('a profile says how each search went', async () => {
    for (const table of ['one', 'four']) {
      const { profile } = await ask(server, table, { ...request, profile: true });
      expect(profile).toMatchObject({
        shards: { total: table === 'one' ? 1 : 4, failed: 0 },
        merge: { strategy: 'rrf', full_text_hits: 8, semantic_hits: 8 },
        legs: [
          { name: 'full_text', kind: 'full_text', hits: 8 },
          { name: 'angle', kind: 'dense', hits: 8 },
        ],
      });
    }
  });

  test('several queries in a body, one of which is refused', async () => {
    const body = [request, { embeddings: { angle: [1] } }, { embeddings: { tags: { '1': 1 } } }];
    const answer = await server.send<{ responses: VectorResult[] }>('POST', '/db/v1/tables/four/query', body);
    expect(answer.body.responses.map(({ status, code }) => [status, code])).toEqual([
      [200, undefined],
      [400, 'invalid_query'],
      [200, undefined],
    ]);
  });

  test('what cannot be searched for is refused, and says why', async () => {
    for (const [refused, words] of [
      [{ embeddings: { angel: angle } }, 'Did you mean "angle"?'],
      [{ embeddings: { full_text_index_v0: angle } }, 'is a full-text index'],
      [{ embeddings: { angle: angle.map(() => 0) } }, 'has no direction'],
      [{ semantic_search: 'soup', indexes: ['angle'] }, 'needs an index with an embedder'],
    ] as const) {
      const answer = await server.send('POST', '/db/v1/tables/four/query', refused);
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
      expect(answer.body.error).toContain(words);
    }
  });
});
