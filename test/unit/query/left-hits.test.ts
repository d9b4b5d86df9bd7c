import { expect, test } from 'bun:test';
import type { NativeHits, QueryTarget } from '../../../src/query/execution/query-target.ts';
import type { WholeSearch } from '../../../src/query/inputs/bring-inputs.ts';
import { LeftHits } from '../../../src/query/join/left-hits.ts';
import type { NativePlan } from '../../../src/query/plan/native-plan.ts';
import { planQuery } from '../../../src/query/plan/query-plan.ts';
import { QueryDeadline } from '../../../src/query/query-deadline.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const hits = 1_000;

/** Reads all hits, whose documents have `chars` characters; the indexes show `writes` changes more before each window. */
async function read({ chars = 0, writes = 0 }: { chars?: number; writes?: number }) {
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
  const run = async (_: unknown, { limit, offset }: NativePlan): Promise<NativeHits> => {
    if (windows.length > 0) head += writes;
    const count = Math.min(limit, hits - offset);
    windows.push(count);
    const numbers = Array.from({ length: count }, (_hit, at) => [0, offset + at, 1, 1, Number.NaN]).flat();
    return { numbers: Float64Array.from(numbers), total: hits, totalIsExact: true, isPartial: false, maxScore: 1 };
  };
  const caller = new AbortController();
  const clock = new FakeClock();
  using deadline = new QueryDeadline(clock, 10_000, caller);
  const { plan } = planQuery({ full_text_search: { match: 'soup' } }, { name: 'recipes', nowMs: 0 });
  const search = { plan, vectors: new Uint8Array(0) } as unknown as WholeSearch;
  const left = new LeftHits({ search, target, run, caller, deadline });
  let read = 0;
  for await (const window of left.windows(Number.POSITIVE_INFINITY)) read += window.length;
  return { read, windows, isSteady: left.isSteady };
}

test('the windows of hits hold no more of long documents at a time', async () => {
  expect(await read({})).toMatchObject({ read: hits, windows: [256, 744] });
  const long = await read({ chars: 1_000_000 });
  expect(long.read).toBe(hits);
  expect(Math.max(...long.windows.slice(1))).toBe(67);
});

test('hits of windows between which the indexes have shown something new are not said to be all', async () => {
  expect(await read({})).toMatchObject({ isSteady: true });
  expect(await read({ writes: 1 })).toMatchObject({ isSteady: false });
});
