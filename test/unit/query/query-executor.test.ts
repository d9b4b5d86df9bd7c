import { describe, expect, test } from 'bun:test';
import { limits } from '../../../src/config/limits.ts';
import type { IndexDefinition } from '../../../src/index-kinds/all-kinds.ts';
import type { IndexFreshness } from '../../../src/query/execution/index-freshness.ts';
import { executeQuery } from '../../../src/query/execution/query-executor.ts';
import type { NativeHits, QueryTarget } from '../../../src/query/execution/query-target.ts';
import { IndexedBodies } from '../../../src/query/indexed-bodies.ts';
import type { NativePlan } from '../../../src/query/plan/native-plan.ts';
import { planQuery } from '../../../src/query/plan/query-plan.ts';

/** Indexes that show everything. */
const fresh: IndexFreshness = {
  heads: () => [5],
  shown: () => [5],
  removedSince: () => 0,
  hasReplayed: () => true,
  isWhole: () => true,
  waitUntilShown: async () => true,
};

/** Three indexed documents, the first of which has been deleted since. */
const target: QueryTarget = {
  tableName: 'recipes',
  freshness: fresh,
  heldBytes: 0,
  expiredAtOrBeforeMs: undefined,
  ranges: [
    {
      rangeId: 1,
      handle: 7,
      documents: (ordinals: number[]) => ({
        documents: ordinals
          .filter((ordinal) => ordinal > 0)
          .map((ordinal) => ({
            ordinal,
            key: `k${ordinal}`,
            sequence: 1,
            ttlBaseMs: undefined,
            writtenMs: undefined,
            text: '',
          })),
        damaged: new Set(),
      }),
      bodyBytes: () => 0,
      hasNewTexts: () => false,
    },
  ],
  bodies: new IndexedBodies([], { hides: false }),
  vectorHandles: [],
  recheck: async (_, documents) => documents.map(() => true),
  orderPage: async (_, hits) => hits.map((_hit, hit) => ({ hit, sort: [] })),
  highlight: async () => [],
};

const caller = new AbortController();
const indexes: IndexDefinition[] = [
  { name: 'taste', incarnation: 1, partId: 1, memOnly: false, kind: 'dense', dimension: 1, metric: 'l2_squared' },
];

/** `count` hits with the ordinals from 0 on, in the given versions, with what legs score them. */
function nativeHits(
  count: number,
  members: Partial<NativeHits> = {},
  sequences: number[] = [],
  scores: number[][] = [],
): NativeHits {
  const own = (at: number) => [0, at, sequences[at] ?? 1, 0, Number.NaN];
  const byLegs = (at: number) => [...(scores[at] ?? []), ...(scores[at] ?? []).map(() => Number.NaN)];
  const numbers = Array.from({ length: count }, (_, at) => [...own(at), ...byLegs(at)]).flat();
  const counts = { total: 2, totalIsExact: false, maxScore: 1, isPartial: false };
  return { numbers: Float64Array.from(numbers), ...counts, ...members };
}

describe('a page that is filled again', () => {
  test('is aggregated once, and keeps the count of that', async () => {
    const asked: NativePlan[] = [];
    const run = async (_: unknown, plan: NativePlan): Promise<NativeHits> => {
      asked.push(plan);
      const aggregated = { total: 3, totalIsExact: true, aggregations: '{"c":{"value":3}}' };
      return nativeHits(Math.min(3, plan.limit), plan.aggregations ? aggregated : {});
    };
    const request = { limit: 2, full_text_search: { match: 'soup' }, aggregations: { c: { type: 'count' } } };
    const planned = planQuery(request, { name: 'recipes', nowMs: 0 });
    const behind = { ...target, freshness: { ...fresh, waitUntilShown: async () => false } };
    const { hits, ...rest } = await executeQuery(planned, behind, run, caller);
    expect(hits.map((hit) => hit.document.key)).toEqual(['k1', 'k2']);
    expect(rest).toMatchObject({ total: 2, totalIsExact: false, aggregations: '{"c":{"value":3}}' });
    expect(asked.map((plan) => plan.aggregations !== undefined)).toEqual([true, false]);
  });

  test('is aggregated again where the index has lost by then what was counted', async () => {
    let found = 3;
    let searches = 0;
    const run = async (_: unknown, { limit, aggregations }: NativePlan): Promise<NativeHits> => {
      const total = { total: found, totalIsExact: true };
      const hits = nativeHits(Math.min(found, limit), aggregations ? { ...total, aggregations: `${found}` } : total);
      const numbers = found === 3 ? hits.numbers : Float64Array.from([0, 1, 1, 0, Number.NaN]);
      // The deletion of the first document is indexed behind the first search.
      found = 1;
      searches += 1;
      return { ...hits, numbers };
    };
    const request = { limit: 2, full_text_search: { match: 'soup' }, aggregations: { c: { type: 'count' } } };
    const planned = planQuery(request, { name: 'recipes', nowMs: 0 });
    const { hits, ...rest } = await executeQuery(planned, target, run, caller);
    expect(hits.map((hit) => hit.document.key)).toEqual(['k1']);
    expect(rest).toMatchObject({ total: 1, totalIsExact: true, aggregations: '1', isPartial: false });
    expect(searches).toBe(3);
  });

  test('looks at as many hits more of each search', async () => {
    const windows: unknown[] = [];
    const run = async (_: unknown, { limit, fusion }: NativePlan): Promise<NativeHits> => {
      windows.push([limit, fusion?.window]);
      return nativeHits(Math.min(3, limit));
    };
    const request = { limit: 2, embeddings: { taste: [1] }, merge_config: { window_size: 8 } };
    const planned = planQuery(request, { name: 'recipes', nowMs: 0, indexes });
    const { hits } = await executeQuery(planned, target, run, caller);
    expect(hits.map((hit) => hit.document.key)).toEqual(['k1', 'k2']);
    expect(windows).toEqual([
      [2, 8],
      [4, 10],
    ]);
  });
});

test('a page that is not full though there are more hits is partial, unless the indexes show by then what has gone', async () => {
  const ask = async (waits: boolean) => {
    let isShown = false;
    const waitUntilShown = async () => {
      isShown = waits;
      return waits;
    };
    const [range] = target.ranges;
    const documents = (ordinals: number[]) =>
      isShown && range ? range.documents(ordinals) : { documents: [], damaged: new Set<number>() };
    const behind = {
      ...target,
      freshness: { ...fresh, waitUntilShown },
      ranges: range ? [{ ...range, documents }] : [],
    };
    const planned = planQuery({ limit: 1, full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
    const run = async (_: unknown, { limit }: NativePlan) => nativeHits(limit);
    const { hits, isPartial } = await executeQuery(planned, behind, run, caller);
    return { keys: hits.map(({ document }) => document.key), isPartial };
  };
  expect(await ask(false)).toEqual({ keys: [], isPartial: true });
  expect(await ask(true)).toEqual({ keys: ['k1'], isPartial: false });
});

test.each([
  [0, 0, false],
  [1, 0, true],
  [1, 5, false],
])(
  'with an offset of %p and indexes that show %p of 5 after a wait, an answer is partial: %p',
  async (offset, shows, partial) => {
    let shown = 0;
    const waitUntilShown = async () => {
      shown = shows;
      return shows === 5;
    };
    const freshness = { ...fresh, shown: () => [shown], removedSince: () => 1, waitUntilShown };
    const planned = planQuery({ offset, full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
    const { isPartial } = await executeQuery(planned, { ...target, freshness }, async () => nativeHits(0), caller);
    expect(isPartial).toBe(partial);
  },
);

test('an answer is partial by how the indexes were when they were searched', async () => {
  const ask = async (before: boolean) => {
    let replayed = before;
    const freshness = { ...fresh, hasReplayed: () => replayed, shown: () => [before ? 5 : 4] };
    const planned = planQuery({ full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
    const run = async () => {
      replayed = !before;
      return { ...nativeHits(0), totalIsExact: true };
    };
    const { isPartial, totalIsExact } = await executeQuery(planned, { ...target, freshness }, run, caller);
    return { isPartial, totalIsExact };
  };
  expect(await ask(false)).toEqual({ isPartial: true, totalIsExact: false });
  expect(await ask(true)).toEqual({ isPartial: false, totalIsExact: true });
});

test.each([
  ['is mended meanwhile', [false, true]],
  ['meets damage meanwhile', [true, false]],
])('an answer from an index that %s is partial', async (_, wholes) => {
  const freshness = { ...fresh, isWhole: () => wholes.shift() ?? false };
  const planned = planQuery({ full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
  const run = async () => ({ ...nativeHits(0), totalIsExact: true });
  const { isPartial, totalIsExact } = await executeQuery(planned, { ...target, freshness }, run, caller);
  expect({ isPartial, totalIsExact }).toEqual({ isPartial: true, totalIsExact: false });
});

test('a page whose documents do not fit into memory together is refused before all of them are read', async () => {
  const text = 'x'.repeat(limits.documentBytesMax);
  let read = 0;
  const [range] = target.ranges;
  const documents = (ordinals: number[]) => {
    read += ordinals.length;
    const found = ordinals.map((ordinal) => ({ ordinal, key: `k${ordinal}`, sequence: 1, text }));
    return {
      documents: found.map((each) => ({ ...each, ttlBaseMs: undefined, writtenMs: undefined })),
      damaged: new Set<number>(),
    };
  };
  const bodyBytes = (ordinals: number[]) => ordinals.length * text.length;
  const long: QueryTarget = { ...target, ranges: range ? [{ ...range, documents, bodyBytes }] : [] };
  const ask = async (limit: number) => {
    const planned = planQuery({ limit, full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
    return executeQuery(planned, long, async (_, plan) => nativeHits(plan.limit), caller);
  };
  const fitting = limits.queryDocumentBytesMax / limits.documentBytesMax;
  expect((await ask(fitting)).hits).toHaveLength(fitting);
  read = 0;
  await expect(ask(limits.queryLimitMax)).rejects.toMatchObject({
    code: 'limit_exceeded',
    message: expect.stringContaining('ask for fewer at a time by "limit"'),
  });
  expect(read).toBeLessThan(4 * fitting);
});

describe('a page of large documents', () => {
  const text = 'x'.repeat(limits.smallAnswerBytesMax);
  const [range] = target.ranges;
  const pageOf = (loaded: number[][]): QueryTarget => {
    const documents = (ordinals: number[]) => {
      loaded.push(ordinals);
      const found = ordinals.map((ordinal) => ({ ordinal, key: `k${ordinal}`, sequence: 1, text }));
      return {
        documents: found.map((each) => ({ ...each, ttlBaseMs: undefined, writtenMs: undefined })),
        damaged: new Set<number>(),
      };
    };
    const bodyBytes = (ordinals: number[]) => ordinals.length * text.length;
    return { ...target, ranges: range ? [{ ...range, documents, bodyBytes }] : [] };
  };
  const ask = async (limit: number, loaded: number[][], holdAnswer: (bytes: number) => Promise<void> | undefined) => {
    const planned = planQuery({ limit, full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
    const run = async (_: unknown, plan: NativePlan) => nativeHits(plan.limit);
    return executeQuery(planned, pageOf(loaded), run, { signal: caller.signal, holdAnswer });
  };

  test('is counted once before all of it is read, and a small one never', async () => {
    const held: number[] = [];
    const hold = (bytes: number) => void held.push(bytes);
    expect((await ask(1, [], hold)).hits).toHaveLength(1);
    expect(held).toEqual([]);
    const loaded: number[][] = [];
    expect((await ask(200, loaded, hold)).hits).toHaveLength(200);
    expect(held).toEqual([200 * text.length]);
    expect(loaded.flat()).toHaveLength(200);
  });

  test('holds nothing while it waits for others', async () => {
    const loaded: number[][] = [];
    const room = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const page = ask(200, loaded, () => {
      asked.resolve();
      return room.promise;
    });
    await asked.promise;
    expect(loaded.flat().length).toBeLessThan(200);
    loaded.length = 0;
    room.resolve();
    expect((await page).hits).toHaveLength(200);
    expect(loaded.flat()).toHaveLength(200);
  });

  test('that does not fit is refused before it is read', async () => {
    const loaded: number[][] = [];
    const full = new Error('full');
    await expect(ask(200, loaded, () => Promise.reject(full))).rejects.toBe(full);
    expect(loaded.flat().length).toBeLessThan(200);
  });
});

describe('a document that has changed since it was indexed', () => {
  test('is matched as a whole when only text found it, by the filters alone when a vector did', async () => {
    const asked: [query: string | undefined, keys: string[], hasLegs: boolean][] = [];
    const changed: QueryTarget = {
      ...target,
      recheck: async ({ query, legs }, documents) => {
        asked.push([query?.kind, documents.map(({ key }) => key), legs !== undefined]);
        return documents.map(() => false);
      },
    };
    const none = Number.NaN;
    const scores = [
      [none, none],
      [1, none],
      [none, 1],
      [1, 0.5],
      [none, 0.25],
    ];
    const run = async () => nativeHits(5, { legs: ['full_text', 'taste'] }, [1, 0, 0, 7, 1], scores);
    const request = { full_text_search: { match: 'soup' }, embeddings: { taste: [1] } };
    const hitsOf = async (filters: object) => {
      asked.length = 0;
      const planned = planQuery({ ...request, ...filters }, { name: 'recipes', nowMs: 0, indexes });
      return (await executeQuery(planned, changed, run, caller)).hits.map((hit) => hit.document.key);
    };
    expect(await hitsOf({})).toEqual(['k2', 'k3', 'k4']);
    expect(asked).toEqual([['match', ['k1'], false]]);
    expect(await hitsOf({ filter_query: { match: 'vegan' } })).toEqual(['k4']);
    expect(asked).toEqual([
      ['match', ['k1'], false],
      [undefined, ['k2', 'k3'], true],
    ]);
  });
});

describe('an answer while writes are on their way to the indexes', () => {
  const planOf = (request: object) => planQuery(request, { name: 'recipes', nowMs: 0 });
  const exact = { total: 3, totalIsExact: true };
  const runOf = (...hits: NativeHits[]) => {
    let call = 0;
    return async () => hits[Math.min(call++, hits.length - 1)] ?? nativeHits(0);
  };

  test('is exact when everything was shown that was written before it', async () => {
    expect(await executeQuery(planOf({}), target, runOf(nativeHits(0, exact)), caller)).toMatchObject({
      ...exact,
      isPartial: false,
    });
  });

  test('is a lower bound when not, less what may have gone since', async () => {
    const freshness = { ...fresh, shown: () => [3], removedSince: (shown: readonly number[]) => 5 - (shown[0] ?? 0) };
    const run = runOf(nativeHits(0, { ...exact, total: 10 }));
    expect(await executeQuery(planOf({}), { ...target, freshness }, run, caller)).toMatchObject({
      total: 8,
      totalIsExact: false,
      isPartial: false,
    });
  });

  test('is that lower bound also where the indexes have caught up by the end of the search', async () => {
    let shown = 3;
    const removedSince = () => (shown === 5 ? 0 : 2);
    const run = async () => {
      shown = 5;
      return nativeHits(0, { ...exact, total: 10 });
    };
    const freshness = { ...fresh, shown: () => [shown], removedSince };
    expect(await executeQuery(planOf({}), { ...target, freshness }, run, caller)).toMatchObject({ total: 8 });
  });

  test('is partial while an index has yet to show what it showed before', async () => {
    const freshness = { ...fresh, shown: () => [2], hasReplayed: () => false };
    const run = runOf(nativeHits(0, exact));
    expect(await executeQuery(planOf({}), { ...target, freshness }, run, caller)).toMatchObject({
      total: 3,
      totalIsExact: false,
      isPartial: true,
    });
  });

  test('has the greatest score of what is left when the best hit is gone', async () => {
    const scored = (count: number, members: Partial<NativeHits> = {}) => {
      const hits = nativeHits(count, { ...exact, maxScore: 9, ...members });
      for (let hit = 0; hit < count; hit += 1) hits.numbers[hit * 5 + 3] = 9 - hit;
      return hits;
    };
    const answer = await executeQuery(planOf({ full_text_search: { match: 'x' } }), target, runOf(scored(3)), caller);
    expect(answer.hits.map(({ score }) => score)).toEqual([8, 7]);
    expect(answer).toMatchObject({ maxScore: 8, total: 2, totalIsExact: false });
    const elsewhere = await executeQuery(planOf({}), target, runOf(scored(3, { maxScore: 20 })), caller);
    expect(elsewhere.maxScore).toBe(20);
  });

  test('with aggregations over a row that is gone: waits for the indexes and runs again', async () => {
    const waited: (readonly number[])[] = [];
    const freshness = {
      ...fresh,
      waitUntilShown: async (heads: readonly number[]) => {
        waited.push(heads);
        return true;
      },
    };
    const stale = nativeHits(3, { ...exact, aggregations: 'stale' });
    const current = { ...nativeHits(3, { ...exact, aggregations: 'current', total: 2 }) };
    current.numbers = current.numbers.slice(5);
    const plan = planOf({ full_text_search: { match: 'x' }, aggregations: { c: { type: 'count' } } });
    const answer = await executeQuery(plan, { ...target, freshness }, runOf(stale, current), caller);
    expect(answer).toMatchObject({ aggregations: 'current', total: 2, totalIsExact: true, isPartial: false });
    expect(waited).toEqual([[5]]);
    const never = { ...fresh, waitUntilShown: async () => false };
    const late = await executeQuery(plan, { ...target, freshness: never }, runOf(stale), caller);
    expect(late).toMatchObject({ aggregations: 'stale', total: 2, totalIsExact: false, isPartial: true });
  });

  test('that is only a count waits first', async () => {
    const steps: string[] = [];
    const freshness = {
      ...fresh,
      waitUntilShown: async () => {
        steps.push('waited');
        return true;
      },
    };
    const run = async () => {
      steps.push('run');
      return nativeHits(0, exact);
    };
    await executeQuery(planOf({ count: true }), { ...target, freshness }, run, caller);
    expect(steps).toEqual(['waited', 'run']);
  });
});
