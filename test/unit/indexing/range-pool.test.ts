import { describe, expect, test } from 'bun:test';
import { ClosedRanges, type SavedRangeFacts } from '../../../src/indexing/at-rest/closed-ranges.ts';
import type { JointDisk } from '../../../src/indexing/at-rest/joint-closing.ts';
import type { RangeFacts } from '../../../src/indexing/at-rest/range-facts.ts';
import type { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { openRangesFor, RangePool } from '../../../src/indexing/range-pool.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

function factsOf(documents: number): RangeFacts {
  return { head: documents, documents, bytes: 10 * documents, diskBytes: 4_096, indexes: [] };
}

/** A pool of ranges that open at once and close when told to, or at once. Ranges in `busy` are not at rest. */
function poolOf(
  openRangesMax: number,
  parts: {
    holdsClosings?: boolean;
    /** How long a range takes to be prepared for its closing, in milliseconds. */
    preparingMs?: (rangeId: number) => number;
    /** The outcome of the checkpoint of the range's index; it has none without this. */
    checkpoint?: (rangeId: number) => Promise<'done' | 'failed' | 'left'>;
    saved?: SavedRangeFacts[];
    warmRangesMax?: number;
  } = {},
) {
  const opened: number[] = [];
  const closed: number[] = [];
  const left: number[] = [];
  const checkpointed: number[] = [];
  /** Closed without a sync of their own. */
  const synced: number[] = [];
  /** Indexes that were made durable together. */
  const together: number[][] = [];
  const closings: (() => void)[] = [];
  const busy = new Set<number>();
  const stamps = new Map<number, string>();
  const saves: SavedRangeFacts[][] = [];
  const clock = new FakeClock();
  const disk: JointDisk = {
    async checkpoint(indexes) {
      together.push(indexes.map(({ handle }) => handle));
      const outcomes = await Promise.all(indexes.map(({ handle }) => parts.checkpoint?.(handle)));
      return outcomes.map((outcome) => {
        if (outcome === 'failed') return new Error('no room');
        return outcome === 'done' ? { sequence: 7, bytes: 1 } : undefined;
      });
    },
    [Symbol.dispose]() {},
  };
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
        async prepareClose() {
          const ms = parts.preparingMs?.(rangeId) ?? 0;
          if (ms > 0) await new Promise<void>((resolve) => clock.after(ms, resolve));
          return true;
        },
        undurable: () =>
          parts.checkpoint ? [{ undurable: { handle: rangeId }, checkpointed: () => checkpointed.push(rangeId) }] : [],
        async close(isSynced = false) {
          if (parts.holdsClosings) await new Promise<void>((resolve) => closings.push(resolve));
          closed.push(rangeId);
          if (isSynced) synced.push(rangeId);
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
    options: { openRangesMax, warmRangesMax: parts.warmRangesMax ?? 1, rangeIdleMs: 60_000 },
    clock,
    openDisk: () => disk,
    onCloseFailed: () => undefined,
  });
  const use = async (...rangeIds: number[]) => {
    for (const rangeId of rangeIds) {
      (await pool.lease(rangeId))[Symbol.dispose]();
      await settle();
    }
  };
  return { pool, opened, closed, left, checkpointed, synced, together, closings, busy, stamps, saves, clock, use };
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

  test('are not kept warm beyond the bound on open ranges', async () => {
    const { pool, closed, clock } = poolOf(2, { warmRangesMax: 10 });
    for (const lease of await Promise.all([1, 2, 3, 4].map((rangeId) => pool.lease(rangeId)))) lease[Symbol.dispose]();
    await clock.advance(60_000);
    await pool.closeIdle();
    expect(closed).toEqual([1, 2]);
  });

  test('upkeep does not keep a range open', async () => {
    const { pool, closed, clock, use } = poolOf(100);
    await use(1, 2);
    await clock.advance(60_000);
    (await pool.lease(1, 'upkeep'))[Symbol.dispose]();
    await pool.closeIdle();
    expect(closed).toEqual([1]);
  });

  test('are not kept warm where only upkeep has looked at them', async () => {
    const { pool, closed, use } = poolOf(100);
    for (const rangeId of [1, 2, 3]) (await pool.lease(rangeId, 'upkeep'))[Symbol.dispose]();
    using held = await pool.lease(4, 'upkeep');
    await use(2);
    await pool.closeIdle();
    expect([closed, held.range.head]).toEqual([[1, 3], 7]);
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

  test('is not used when the file has changed: the range is opened', async () => {
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

describe('ranges that are closed together', () => {
  test('at a stop are made durable with one sync, and closed without any of their own', async () => {
    const { pool, together, synced, left, saves, use } = poolOf(100, { checkpoint: async () => 'done' });
    await use(1, 2, 3);
    await pool.closeAll(1_000);
    expect([together, synced, left]).toEqual([[[1, 2, 3]], [1, 2, 3], []]);
    expect(saves.flat()).toHaveLength(3);
  });

  test('at a stop are left as they are when they are not ready in time', async () => {
    const { pool, together, closed, left, saves, clock, use } = poolOf(100, {
      preparingMs: (rangeId) => (rangeId === 2 ? 1_500 : 0),
      checkpoint: async () => 'done',
    });
    await use(1, 2, 3);
    const stop = pool.closeAll(1_000);
    await settle();
    expect(together).toEqual([]);
    await clock.advance(1_000);
    await clock.advance(500);
    await stop;
    expect([together, closed, left]).toEqual([[[1, 3]], [1, 3], [2]]);
    // The facts that are told of it later are those known now.
    expect(saves.flat()).toHaveLength(3);
  });

  test('at a stop are left as they are when their index could not be made durable', async () => {
    const outcomes = ['done', 'failed', 'left'] as const;
    const { pool, closed, left, checkpointed, use } = poolOf(100, {
      checkpoint: async (rangeId) => outcomes[rangeId - 1] ?? 'left',
    });
    await use(1, 2, 3);
    await pool.closeAll(1_000);
    // A failure is told to the index.
    expect([closed, left, checkpointed]).toEqual([[1], [2, 3], [1, 2]]);
  });

  test('are all left when the disk cannot be synced', async () => {
    const { pool, closed, left, use } = poolOf(100, { checkpoint: () => Promise.reject(new Error('no room')) });
    await use(1, 2);
    await pool.closeAll(1_000);
    expect([closed, left]).toEqual([[], [1, 2]]);
  });

  test('because nobody uses them are closed by themselves when they could not be made durable together', async () => {
    const { pool, together, closed, synced, left, clock, use } = poolOf(100, {
      checkpoint: async (rangeId) => (rangeId === 2 ? 'failed' : 'done'),
    });
    await use(1, 2, 3, 4, 5);
    await clock.advance(60_000);
    await pool.closeIdle();
    expect([together, synced, closed.sort(), left]).toEqual([[[1, 2, 3, 4]], [1, 3, 4], [1, 2, 3, 4], []]);
  });
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
