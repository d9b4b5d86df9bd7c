import { describe, expect, test } from 'bun:test';
import { ClosedRanges, type SavedRangeFacts } from '../../../src/indexing/closed-ranges.ts';
import type { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import type { RangeFacts } from '../../../src/indexing/range-facts.ts';
import { openRangesFor, RangePool } from '../../../src/indexing/range-pool.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

function factsOf(documents: number): RangeFacts {
  return { head: documents, documents, bytes: 10 * documents, diskBytes: 4_096, indexes: [] };
}

/** A pool of ranges that open at once and close when told to, or at once. Ranges in `busy` are not at rest. */
function poolOf(
  openRangesMax: number,
  parts: { holdsClosings?: boolean; closingMs?: number; saved?: SavedRangeFacts[] } = {},
) {
  const opened: number[] = [];
  const closed: number[] = [];
  const left: number[] = [];
  const closings: (() => void)[] = [];
  const busy = new Set<number>();
  const stamps = new Map<number, string>();
  const saves: SavedRangeFacts[][] = [];
  const clock = new FakeClock();
  const pool = new RangePool({
    async open(rangeId) {
      opened.push(rangeId);
      return {
        rangeId,
        head: 7,
        get isAtRest() {
          return !busy.has(rangeId);
        },
        facts: () => factsOf(100 + rangeId),
        async close() {
          if (parts.holdsClosings) await new Promise<void>((resolve) => closings.push(resolve));
          closed.push(rangeId);
          if (parts.closingMs) await clock.advance(parts.closingMs);
          return factsOf(rangeId);
        },
        discard: async () => void closed.push(rangeId),
        async leave() {
          left.push(rangeId);
          return factsOf(rangeId);
        },
      } as unknown as IndexedRange;
    },
    closed: new ClosedRanges({
      saved: parts.saved ?? [],
      stampOf: (rangeId) => stamps.get(rangeId) ?? 'as it was',
      save: async (facts) => void saves.push(facts),
    }),
    options: { openRangesMax, warmRangesMax: 1, rangeIdleMs: 60_000 },
    clock,
    onCloseFailed: () => undefined,
  });
  const use = async (...rangeIds: number[]) => {
    for (const rangeId of rangeIds) {
      (await pool.lease(rangeId))[Symbol.dispose]();
      await settle();
    }
  };
  return { pool, opened, closed, left, closings, busy, stamps, saves, clock, use };
}

describe('a bound on open ranges', () => {
  test('a range that is asked for while it closes is opened again behind that', async () => {
    const { pool, opened, closings } = poolOf(1, { holdsClosings: true });
    (await pool.lease(1))[Symbol.dispose]();
    using other = await pool.lease(2);
    const again = pool.lease(1);
    const closed = pool.close(1);
    await settle();
    expect([opened, closings.length]).toEqual([[1, 2], 1]);
    closings[0]?.();
    await closed;
    using lease = await again;
    expect([lease.range.rangeId, other.range.rangeId, opened]).toEqual([1, 2, [1, 2, 1]]);
  });

  test('the range unused for longest is closed, one for each that is opened', async () => {
    const { pool, closed, use } = poolOf(3);
    await use(1, 2, 3, 1, 4);
    expect(closed).toEqual([2]);
    await use(5);
    expect([closed, pool.openRanges().length, pool.counts.evicted]).toEqual([[2, 3], 3, 2]);
  });

  test('closings under way do not close more than is needed', async () => {
    const { closings, pool, use } = poolOf(2, { holdsClosings: true });
    await use(1, 2, 3, 4);
    expect([closings.length, pool.openRanges().map(({ rangeId }) => rangeId)]).toEqual([2, [3, 4]]);
  });

  test('a range whose indexes are at work goes after those at rest', async () => {
    const { busy, closed, use } = poolOf(2);
    busy.add(1);
    await use(1, 2, 3);
    expect(closed).toEqual([2]);
  });

  test.each([
    [undefined, 1_024],
    [1_000_000, 1_024],
    [4_096, 448],
    [1_024, 64],
    [256, 16],
  ])('with %p descriptors %p ranges may be open', (descriptors, ranges) => {
    expect(openRangesFor(descriptors, { openRangesMax: 1_024, rangeDescriptors: 8, otherDescriptors: 512 })).toBe(
      ranges,
    );
  });
});

describe('ranges at rest', () => {
  test('are closed after a while, but for the warm ones, those in use and those at work', async () => {
    const { pool, busy, closed, clock, use } = poolOf(100);
    busy.add(2);
    using _lease = await pool.lease(1);
    await use(2, 3, 4, 5);
    await clock.advance(59_999);
    await pool.closeIdle();
    expect(closed).toEqual([]);
    await clock.advance(1);
    await pool.closeIdle();
    expect(closed).toEqual([3, 4]);
  });

  test('upkeep does not keep a range open', async () => {
    const { pool, closed, clock, use } = poolOf(100);
    await use(1, 2);
    await clock.advance(60_000);
    (await pool.lease(1, 'upkeep'))[Symbol.dispose]();
    await pool.closeIdle();
    expect(closed).toEqual([1]);
  });

  test('are told about as they were at their closing, without being opened', async () => {
    const { pool, opened, use } = poolOf(1);
    await use(1, 2);
    expect([await pool.facts(1), await pool.facts(2)]).toEqual([factsOf(1), factsOf(102)]);
    expect(opened).toEqual([1, 2]);
  });

  test('are told about only after their closing while they close', async () => {
    const { pool, closings, use } = poolOf(1, { holdsClosings: true });
    await use(1, 2);
    expect(pool.known(1)).toBeUndefined();
    const facts = pool.facts(1);
    closings[0]?.();
    expect(await facts).toEqual(factsOf(1));
  });
});

describe('what an earlier process saved', () => {
  const saved = [1, 2].map((rangeId) => ({ rangeId, stamp: 'as it was', facts: JSON.stringify(factsOf(rangeId)) }));

  test('holds while the file is as it was then', async () => {
    const { pool, opened } = poolOf(10, { saved });
    expect([await pool.facts(1), opened]).toEqual([factsOf(1), []]);
  });

  test('is not believed when the file has changed: the range is opened', async () => {
    const { pool, opened, stamps } = poolOf(10, { saved });
    stamps.set(1, 'written since');
    expect([await pool.facts(1), opened]).toEqual([factsOf(101), [1]]);
  });

  test('is forgotten when the range is opened', async () => {
    const { pool, use } = poolOf(1, { saved });
    await use(1);
    expect(pool.known(1)).toEqual(factsOf(101));
  });

  test('is replaced at a stop, by all ranges that were open in between', async () => {
    const { pool, saves, use } = poolOf(1, { saved });
    await use(1, 3);
    await pool.closeAll(1_000);
    expect(saves.flat().map(({ rangeId, facts }) => [rangeId, JSON.parse(facts).documents])).toEqual([
      [1, 1],
      [3, 3],
    ]);
  });
});

test('a stop leaves what it has no time to close, and tells of it as of the rest', async () => {
  const { pool, closed, left, saves, use } = poolOf(100, { closingMs: 500 });
  await use(...Array.from({ length: 40 }, (_, at) => at + 1));
  await pool.closeAll(1_000);
  // Those used last come first; none is closed after the time has passed, but for those that had begun.
  expect(closed[0]).toBe(40);
  expect(closed).toHaveLength(2 * 16);
  expect([...closed, ...left].sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, at) => at + 1));
  expect(saves.flat()).toHaveLength(40);
});

test('a range that was written while it was closed is looked at again', async () => {
  const { pool, opened, use } = poolOf(1);
  await use(1, 2);
  pool.changed(1);
  await pool.facts(1);
  expect(opened).toEqual([1, 2, 1]);
});

test('a range that is removed loses what its indexes hold, and tells its head', async () => {
  const { pool, closed, saves, use } = poolOf(10);
  await use(1);
  expect(await pool.discard(1)).toBe(7);
  await pool.closeAll(1_000);
  expect([closed, saves]).toEqual([[1], []]);
});
