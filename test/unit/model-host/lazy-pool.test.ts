import { describe, expect, test } from 'bun:test';
import { LazyPool, type Opening } from '../../../src/model-host/backends/llama/lazy-pool.ts';
import type { HostMemory } from '../../../src/model-host/child/host-memory.ts';
import { stateLengths } from '../../../src/model-host/state-lengths.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Memory with a bound, and what is open in it. */
function openWorld(bytesMax: number) {
  const clock = new FakeClock();
  const open: string[] = [];
  let used = 0;
  const memory: HostMemory = {
    reserve: async (bytes) => {
      if (used + bytes > bytesMax) return false;
      used += bytes;
      return true;
    },
    release: (bytes) => {
      used -= bytes;
    },
  };
  const state = (key: string, bytes: number, lastStays = true): Opening<string> => ({
    key,
    bytes,
    lastStays,
    open: async () => {
      open.push(key);
      return key;
    },
    close: async () => void open.splice(open.indexOf(key), 1),
  });
  return { clock, open, state, pool: new LazyPool(memory, clock), used: () => used };
}

describe('what a model opens beside its weights', () => {
  test('is opened once for all that want it', async () => {
    const { pool, open, state, used } = openWorld(10);
    const leases = await Promise.all([pool.lease(state('a', 4)), pool.lease(state('a', 4))]);
    expect(leases.map((lease) => lease?.value)).toEqual(['a', 'a']);
    expect([open, used()]).toEqual([['a'], 4]);
  });

  test('goes, the least recently used first, where another one needs its room; one in use never', async () => {
    const { pool, open, state, used } = openWorld(10);
    const a = await pool.lease(state('a', 4));
    (await pool.lease(state('b', 3)))?.release();
    (await pool.lease(state('c', 3)))?.release();
    const d = await pool.lease(state('d', 3));
    expect(open).toEqual(['a', 'c', 'd']);
    expect(await pool.lease(state('e', 7))).toBeUndefined();
    // Idle entries have gone for it in vain, entries in use have not.
    expect([open, used()]).toEqual([['a', 'd'], 7]);
    a?.release();
    d?.release();
    expect((await pool.lease(state('e', 7)))?.value).toBe('e');
  });

  test('goes when it was idle for a minute, but for the last used', async () => {
    const { pool, open, state, clock, used } = openWorld(10);
    (await pool.lease(state('a', 4)))?.release();
    await clock.advance(30_000);
    (await pool.lease(state('b', 4)))?.release();
    await clock.advance(30_000);
    expect(open).toEqual(['b']);
    await clock.advance(600_000);
    expect([open, used()]).toEqual([['b'], 4]);
    // It is the last no more once another one is used.
    (await pool.lease(state('c', 4)))?.release();
    await clock.advance(60_000);
    expect([open, used()]).toEqual([['c'], 4]);
  });

  test('is idle also while it is looked after, and what does not stay goes though it was used last', async () => {
    const { pool, open, state, clock } = openWorld(10);
    (await pool.lease(state('a', 2)))?.release();
    (await pool.lease(state('b', 2)))?.release();
    (await pool.lease(state('draft', 2, false)))?.release();
    for (let second = 0; second < 61; second += 1) {
      const lease = await pool.borrow();
      expect(lease?.value).toBe('b');
      lease?.release();
      await clock.advance(1_000);
    }
    expect(open).toEqual(['b']);
    await pool.close();
    expect(await pool.borrow()).toBeUndefined();
  });

  test('leaves nothing counted where it cannot be opened', async () => {
    const { pool, state, used } = openWorld(10);
    const broken = { ...state('a', 4), open: () => Promise.reject(new Error('no such state')) };
    const outcomes = await Promise.all([1, 2].map(() => pool.lease(broken).catch(String)));
    expect(outcomes).toEqual(['Error: no such state', 'Error: no such state']);
    expect(used()).toBe(0);
    expect((await pool.lease(state('a', 4)))?.value).toBe('a');
  });
});

test('states grow by four from a short one to all that a generation may span', () => {
  expect([100, 512, 513, 8_192, 10_000].map(stateLengths)).toEqual([
    [100],
    [512],
    [512, 513],
    [512, 2_048, 8_192],
    [512, 2_048, 8_192, 10_000],
  ]);
});
