import { describe, expect, test } from 'bun:test';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { type PlanContext, planQuery } from '../../../src/query/plan/query-plan.ts';

const identity = { incarnation: 1, partId: 1, memOnly: false };
const context: PlanContext = {
  name: 'recipes',
  nowMs: 1_000_000,
  indexes: [
    { ...identity, name: 'full_text_index_v0', kind: 'full_text', schema: undefined },
    { ...identity, name: 'taste', kind: 'dense', dimension: 3, metric: 'cosine' },
    { ...identity, name: 'look', kind: 'dense', dimension: 2, metric: 'l2_squared' },
    { ...identity, name: 'tags', kind: 'sparse', minWeight: 0, topK: 25 },
    { ...identity, name: 'pairs', kind: 'graph', ttlMs: undefined, edgeTypes: [], maxEdges: 0 },
  ],
};
const taste = [0.25, -0.5, 1];
const text = { full_text_search: { match: 'soup' } };

function packed(...values: number[]): string {
  return Buffer.from(Float32Array.from(values).buffer).toString('base64');
}

function packedIndices(...values: number[]): string {
  return Buffer.from(Uint32Array.from(values).buffer).toString('base64');
}

/** The query vectors of a request as numbers: those of dense legs; those of sparse ones as `index:value`. */
function vectorsOf(request: Record<string, unknown>): (number | string)[][] {
  const { plan, vectors } = planQuery(request, context);
  let at = 0;
  return (plan.legs ?? []).map(({ kind, bytes }) => {
    const own = Uint8Array.from(vectors.subarray(at, at + bytes));
    at += bytes;
    if (kind === 'dense') return [...new Float32Array(own.buffer)];
    const values = new Float32Array(own.buffer, bytes / 2);
    return [...new Uint32Array(own.buffer, 0, bytes / 8)].map((index, entry) => `${index}:${values[entry]}`);
  });
}

function failure(request: unknown): ServiceError {
  try {
    planQuery(request, context);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('did not fail');
}

describe('planning a search by vectors', () => {
  test('one vector is one leg, and as many of its hits are looked at as are wanted', () => {
    const { plan } = planQuery({ embeddings: { taste }, limit: 7 }, context);
    expect(plan).toMatchObject({
      legs: [{ name: 'taste', kind: 'dense', bytes: 12, weight: 1, effort: 0.5 }],
      fusion: { strategy: 'rrf', rank_constant: 60, window: 7 },
      limit: 7,
    });
    for (const name of ['query', 'text_weight', 'pruner', 'distance_under', 'distance_over', 'profile']) {
      expect(plan).not.toHaveProperty(name);
    }
    expect(JSON.parse(JSON.stringify(plan))).toStrictEqual(plan);
  });

  test('a request without vectors has none of it', () => {
    const { plan, vectors } = planQuery({ ...text, search_effort: 1, merge_config: { strategy: 'rsf' } }, context);
    expect(plan).toStrictEqual(planQuery(text, context).plan);
    expect(vectors).toHaveLength(0);
  });

  test('every member finds its place in the plan', () => {
    const { plan } = planQuery(
      {
        ...text,
        embeddings: { taste, tags: { '5': 1 } },
        filter_query: { term: { vegan: true } },
        filter_prefix: 'soup:',
        search_effort: 0,
        distance_under: 0.5,
        distance_over: -0.5,
        merge_config: {
          strategy: 'rsf',
          weights: { full_text: 0, taste: 2.5 },
          rank_constant: 0.5,
          window_size: 10_000,
        },
        pruner: {
          require_multi_index: true,
          min_absolute_score: -1,
          min_score_ratio: 0.5,
          std_dev_threshold: 2,
          max_score_gap_percent: 30,
        },
        profile: true,
        explain: true,
        timeout_ms: 50,
      },
      context,
    );
    expect(plan).toMatchObject({
      legs: [
        { name: 'taste', kind: 'dense', bytes: 12, weight: 2.5, effort: 0 },
        { name: 'tags', kind: 'sparse', bytes: 8, weight: 1 },
      ],
      text_weight: 0,
      fusion: { strategy: 'rsf', rank_constant: 0.5, window: 10_000 },
      distance_under: 0.5,
      distance_over: -0.5,
      pruner: {
        require_multi_index: true,
        min_absolute_score: -1,
        min_score_ratio: 0.5,
        std_dev_threshold: 2,
        max_score_gap_percent: 30,
      },
      query: { kind: 'match' },
      filter: [{ kind: 'term' }],
      key_prefix: 'soup:',
      profile: true,
      explain: true,
      timeout_ms: 50,
      allows_partial: true,
      exact_total: false,
    });
    expect(plan.legs?.[1]).not.toHaveProperty('effort');
  });

  test('text is a leg when it scores', () => {
    expect(planQuery({ ...text, embeddings: { taste } }, context).plan.text_weight).toBe(1);
    for (const silent of [{ match_all: {} }, { bool: { filter: [{ match: 'a' }] } }]) {
      const { plan } = planQuery({ full_text_search: silent, embeddings: { taste } }, context);
      expect(plan).not.toHaveProperty('text_weight');
    }
  });

  test('the window is the limit, ten without a page, and never below the page of a single leg', () => {
    const windowOf = (request: object) => planQuery({ embeddings: { taste }, ...request }, context).plan.fusion?.window;
    expect(windowOf({})).toBe(10);
    expect(windowOf({ limit: 0 })).toBe(10);
    expect(windowOf({ limit: 30 })).toBe(30);
    // As far as counting goes.
    expect(windowOf({ limit: 30, count: true })).toBe(10_000);
    expect(windowOf({ limit: 30, merge_config: { window_size: 4 } })).toBe(30);
    expect(windowOf({ limit: 30, merge_config: { window_size: 40 } })).toBe(40);
    expect(windowOf({ ...text, limit: 30, merge_config: { window_size: 4 } })).toBe(4);
  });

  test('a sparse index that is searched alone brings its own limit', () => {
    const limitOf = (request: object) => planQuery(request, context).plan.limit;
    const tags = { '5': 1 };
    expect(limitOf({ embeddings: { tags } })).toBe(25);
    expect(limitOf({ embeddings: { tags, taste }, indexes: ['tags'] })).toBe(25);
    expect(limitOf({ embeddings: { tags }, limit: 3 })).toBe(3);
    expect(limitOf({ embeddings: { tags, taste } })).toBe(10);
    expect(limitOf({ ...text, embeddings: { tags } })).toBe(10);
  });

  test('indexes chooses among the vectors, in its order', () => {
    const embeddings = { taste, look: [1, 2] };
    expect(planQuery({ embeddings }, context).plan.legs?.map(({ name }) => name)).toEqual(['taste', 'look']);
    expect(vectorsOf({ embeddings, indexes: ['look', 'taste'] })).toEqual([[1, 2], taste]);
    expect(vectorsOf({ embeddings, indexes: ['look'] })).toEqual([[1, 2]]);
    expect(vectorsOf({ embeddings, indexes: [] })).toEqual([taste, [1, 2]]);
  });

  test('an order of nothing and an offset of nothing do no harm', () => {
    expect(vectorsOf({ embeddings: { taste }, offset: 0, order_by: [] })).toEqual([taste]);
  });
});

describe('forms of a query vector', () => {
  const unpadded = packed(...taste).replace(/=+$/, '');
  const urlSafe = packed(1, -2).replaceAll('+', '-').replaceAll('/', '_');
  const dense: [embeddings: object, vectors: number[][]][] = [
    [{ taste }, [taste]],
    [{ taste: packed(...taste) }, [taste]],
    [{ taste: unpadded }, [taste]],
    [{ look: urlSafe }, [[1, -2]]],
    [{ look: [1, 2], taste: packed(...taste) }, [[1, 2], taste]],
    [{ look: [0, 0] }, [[0, 0]]],
  ];
  const entries = ['3:0.5', '7:-2', '4294967295:1'];
  const sparse: object[] = [
    { indices: [3, 7, 4294967295], values: [0.5, -2, 1] },
    { indices: [4294967295, 3, 7], values: [1, 0.5, -2] },
    { '3': 0.5, '4294967295': 1, '7': -2 },
    { packed_indices: packedIndices(7, 3, 4294967295), packed_values: packed(-2, 0.5, 1) },
    { indices: [3, 5, 7, 4294967295], values: [0.5, 0, -2, 1] },
  ];
  for (const [embeddings, vectors] of dense) {
    test(JSON.stringify(embeddings), () => expect(vectorsOf({ embeddings })).toEqual(vectors));
  }
  for (const tags of sparse) {
    test(JSON.stringify(tags), () => expect(vectorsOf({ embeddings: { tags } })).toEqual([entries]));
  }

  test('a sparse vector may be empty', () => {
    for (const tags of [{}, { indices: [], values: [] }, { '1': 0 }]) {
      expect(vectorsOf({ embeddings: { tags } })).toEqual([[]]);
    }
  });

  test('a sparse vector has a bounded number of entries', () => {
    const tags = { indices: Array.from({ length: 65_537 }, (_, at) => at), values: Array(65_537).fill(1) };
    expect(failure({ embeddings: { tags } })).toMatchObject({ code: 'limit_exceeded' });
  });
});

describe('a search by vectors that is refused', () => {
  const embeddings = { taste };
  const refused: [request: object, words: string][] = [
    [{ embeddings: [] }, 'embeddings: must be an object'],
    [{ embeddings: {} }, 'embeddings: names no index'],
    [{ embeddings: { tast: taste } }, 'embeddings: the table has no embeddings index "tast". Did you mean "taste"?'],
    [{ embeddings: { full_text_index_v0: taste } }, 'embeddings: "full_text_index_v0" is a full-text index'],
    [{ embeddings: { pairs: taste } }, 'embeddings: "pairs" is a graph index; search it with "graph_searches"'],
    [{ embeddings: { taste: null } }, 'embeddings.taste: index "taste" is dense'],
    [{ embeddings: { taste: { '1': 1 } } }, 'embeddings.taste: index "taste" is dense'],
    [{ embeddings: { taste: [1, 2] } }, 'embeddings.taste: the vector has 2 values, but index "taste" has 3'],
    [{ embeddings: { taste: packed(1, 2) } }, 'embeddings.taste: the vector has 2 values'],
    [{ embeddings: { taste: [1, 2, '3'] } }, 'embeddings.taste: the values of a vector must be numbers'],
    [{ embeddings: { taste: [1, 2, 1e39] } }, 'embeddings.taste: the values must be finite'],
    [{ embeddings: { taste: packed(1, Number.NaN, 1) } }, 'embeddings.taste: the values must be finite'],
    [{ embeddings: { taste: packed(1, Number.POSITIVE_INFINITY, 1) } }, 'embeddings.taste: the values must be finite'],
    [{ embeddings: { taste: [0, 0, 0] } }, 'embeddings.taste: a vector of zeros has no direction'],
    [{ embeddings: { taste: 'not base64!' } }, 'embeddings.taste: is not base64'],
    [{ embeddings: { taste: `${packed(1, 2, 3).slice(0, -1)}*` } }, 'embeddings.taste: is not base64'],
    [{ embeddings: { taste: packed(1, 2, 3).slice(0, -3) } }, 'embeddings.taste: is not base64'],
    [{ embeddings: { tags: [1, 2] } }, 'embeddings.tags: index "tags" is sparse'],
    [{ embeddings: { tags: { '-1': 1 } } }, 'embeddings.tags: "-1" is not a token'],
    [{ embeddings: { tags: { '4294967296': 1 } } }, 'embeddings.tags: the indices'],
    [{ embeddings: { tags: { '5': '1' } } }, 'embeddings.tags: the values of a vector must be numbers'],
    [{ embeddings: { tags: { '5': 1, '05': 1 } } }, 'embeddings.tags: index 5 is given twice'],
    [{ embeddings: { tags: { indices: [1, 1], values: [1, 2] } } }, 'embeddings.tags: index 1 is given twice'],
    [{ embeddings: { tags: { indices: [1], values: [1, 2] } } }, 'has 1 indices and 2 values'],
    [{ embeddings: { tags: { indices: [1.5], values: [1] } } }, 'embeddings.tags: the indices'],
    [{ embeddings: { tags: { indices: [1] } } }, '"indices" and "values" must both be arrays'],
    [{ embeddings: { tags: { indices: [1], valus: [1] } } }, 'Did you mean "values"?'],
    [{ embeddings: { tags: { packed_indices: 'AAAA' } } }, 'must both be base64 strings'],
    [{ embeddings: { tags: { indices: [1], values: [1e39] } } }, 'embeddings.tags: the values must be finite'],
    [{ indexes: ['taste'] }, '"indexes" needs "embeddings"'],
    [{ embeddings, indexes: ['look'] }, 'indexes: "look" has no vector'],
    [{ embeddings, indexes: ['tste'] }, 'indexes: the table has no embeddings index "tste". Did you mean "taste"?'],
    [{ embeddings, indexes: ['taste', 'taste'] }, 'indexes: "taste" is named twice'],
    [{ embeddings, indexes: 'taste' }, 'indexes: must be an array of strings'],
    [{ semantic_search: 'soup', indexes: ['taste'] }, '"semantic_search" needs an index with an embedder'],
    [{ embedding_template: '{{this}}' }, '"embedding_template" needs an index with an embedder'],
    [{ embeddings, search_effort: 1.1 }, '"search_effort" must be a number from 0 to 1'],
    [{ embeddings, search_effort: '1' }, '"search_effort"'],
    [{ distance_under: 1 }, '"distance_under" needs "embeddings"'],
    [{ embeddings, distance_over: 'far' }, '"distance_over" must be a number from -3.4e+38 to 3.4e+38'],
    [{ embeddings, distance_under: 1e300 }, '"distance_under" must be a number from -3.4e+38'],
    [{ embeddings: { look: [8e18, 8e18] } }, 'embeddings.look: the vector is too long'],
    [{ embeddings, distance_over: 1, distance_under: 0.5 }, '"distance_over" is above "distance_under"'],
    [{ embeddings: { tags: { '5': 1 } }, distance_over: 1 }, '"distance_over" needs a dense index'],
    [{ embeddings, pruner: [] }, 'pruner: must be an object'],
    [{ embeddings, pruner: { min_score: 1 } }, 'pruner: unknown member "min_score"'],
    [{ embeddings, pruner: { require_multi_index: 1 } }, 'pruner: "require_multi_index"'],
    [{ embeddings, pruner: { min_score_ratio: 2 } }, 'pruner: "min_score_ratio" must be a number from 0 to 1'],
    [{ embeddings, pruner: { std_dev_threshold: -1 } }, 'pruner: "std_dev_threshold" must be a number from 0'],
    [{ embeddings, pruner: { max_score_gap_percent: 101 } }, 'pruner: "max_score_gap_percent"'],
    [{ embeddings, merge_config: 'rrf' }, 'merge_config: must be an object'],
    [{ embeddings, merge_config: { strategy: 'rfr' } }, 'Did you mean "rrf"?'],
    [{ embeddings, merge_config: { stratgy: 'rrf' } }, 'Did you mean "strategy"?'],
    [{ embeddings, merge_config: { rank_constant: 0 } }, 'merge_config: "rank_constant" must be above 0'],
    [{ embeddings, merge_config: { rank_constant: -1 } }, 'merge_config: "rank_constant"'],
    [
      { embeddings, merge_config: { window_size: 0 } },
      'merge_config: "window_size" must be an integer from 1 to 10000',
    ],
    [{ embeddings, merge_config: { window_size: 10_001 } }, 'merge_config: "window_size"'],
    [{ embeddings, merge_config: { weights: [1] } }, 'merge_config.weights: must be an object'],
    [{ embeddings, merge_config: { weights: { taste: -1 } } }, 'merge_config.weights: "taste" must be a number from 0'],
    [{ embeddings, merge_config: { weights: { look: 1 } } }, 'merge_config.weights: "look" is not searched'],
    [{ embeddings, merge_config: { weights: { full_text: 1 } } }, 'merge_config.weights: "full_text" is not searched'],
    [{ embeddings, offset: 1 }, '"offset" cannot go with "embeddings"'],
    [{ embeddings, order_by: [{ field: 'year' }] }, '"order_by" cannot go with "embeddings"'],
    [{ embeddings, order_by: [{ field: 'year' }], search_after: [1, 'x'] }, '"order_by" cannot go'],
  ];
  for (const [request, words] of refused) {
    test(`${JSON.stringify(request)}: ${words}`, () => {
      const error = failure(request);
      expect(error.code).toBe('invalid_query');
      expect(error.message).toContain(words);
    });
  }
});
