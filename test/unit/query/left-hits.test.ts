import { expect, test } from 'bun:test';
import type { NativeHits, QueryTarget } from '../../../src/query/execution/query-target.ts';
import type { WholeSearch } from '../../../src/query/inputs/bring-inputs.ts';
import { LeftHits } from '../../../src/query/join/left-hits.ts';
import type { NativePlan } from '../../../src/query/plan/native-plan.ts';
import { planQuery } from '../../../src/query/plan/query-plan.ts';

const hits = 1_000;

/**
 * Reads all hits, whose documents have `chars` characters; before each window but the first the indexes show `writes`
 * changes more, and the first `gone` hits have gone.
 */
async function read({ chars = 0, writes = 0, gone = 0 }: { chars?: number; writes?: number; gone?: number }) {
  let head = 5;
  const textOf = 'x'.repeat(chars);
  const target = {
    freshness: {
      heads: () => [head],
      shown: () => [head],
      removedSince: () => 0,
      hasReplayed: () => true,
      isWhole: () => true,
      waitUntilShown: async () => true,
    },
    expiredAtOrBeforeMs: undefined,
    heldBytes: 0,
    vectorHandles: [],
    ranges: [
      {
        rangeId: 1,
        handle: 7,
        documents: (ordinals: number[]) => ({
          documents: ordinals.map((ordinal) => ({ ordinal, key: `k${ordinal}`, sequence: 1, text: textOf })),
          damaged: new Set<number>(),
        }),
        bodyBytes: (ordinals: number[]) => ordinals.length * chars,
        hasNewTexts: () => false,
      },
    ],
  } as unknown as QueryTarget;
  const windows: number[] = [];
  let first = 0;
  const run = async (_: unknown, { limit, offset, sort, cursor }: NativePlan): Promise<NativeHits> => {
    if (windows.length > 0) [head, first] = [head + writes, gone];
    const from = cursor ? Number(cursor.position) + 1 : first + offset;
    const count = Math.min(limit, hits - from);
    windows.push(count);
    const ordinals = Array.from({ length: count }, (_hit, at) => from + at);
    const numbers = Float64Array.from(ordinals.flatMap((ordinal) => [0, ordinal, 1, 1, Number.NaN]));
    const places = sort.length > 0 && { sort: JSON.stringify(ordinals.map((ordinal) => [[1], `${ordinal}`])) };
    return { numbers, total: hits, totalIsExact: true, isPartial: false, maxScore: 1, ...places };
  };
  const caller = new AbortController();
  const { plan } = planQuery({ full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
  const search = { plan, vectors: new Uint8Array(0) } as unknown as WholeSearch;
  const left = new LeftHits({ search, target, run, caller });
  let read = 0;
  for await (const window of left.windows(Number.POSITIVE_INFINITY)) read += window.length;
  return { read, windows, isSteady: left.isSteady };
}

test('the windows of hits hold no more of long documents at a time', async () => {
  expect(await read({})).toMatchObject({ read: hits, windows: [256, hits] });
  const long = await read({ chars: 1_000_000 });
  expect(long.read).toBe(hits);
  expect(long.windows.slice(1, -1)).toEqual(new Array(14).fill(67));
});

test('hits of windows between which the indexes have shown something new are not said to be all', async () => {
  expect(await read({})).toMatchObject({ isSteady: true });
  expect(await read({ writes: 1 })).toMatchObject({ isSteady: false });
});

test('hits that have gone between two windows cost none of those behind them', async () => {
  expect(await read({ gone: 40 })).toMatchObject({ read: hits });
});
