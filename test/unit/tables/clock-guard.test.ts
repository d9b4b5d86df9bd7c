import { describe, expect, test } from 'bun:test';
import { limits } from '../../../src/config/limits.ts';
import { hourMs, minuteMs } from '../../../src/lib/units.ts';
import type { Table } from '../../../src/tables/table.ts';
import { ClockGuard } from '../../../src/tables/upkeep/clock-guard.ts';
import { TtlSweeper } from '../../../src/tables/upkeep/ttl-sweeper.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function guarded(notedMs = 0) {
  const clock = new FakeClock();
  const jumps: number[] = [];
  const guard = new ClockGuard({ clock, limits, notedMs, onJump: (jumpMs) => void jumps.push(jumpMs) });
  return { clock, guard, jumps };
}

describe('the time that deletes go by', () => {
  test.each([24 * hourMs, -24 * hourMs])('is kept back for ten minutes from a jump of %d ms on', async (jumpMs) => {
    const { clock, guard, jumps } = guarded();
    await clock.advance(hourMs);
    expect(guard.trustedMs()).toBe(clock.nowMs());
    clock.jump(jumpMs);
    expect([guard.trustedMs(), guard.trustedMs(), jumps]).toEqual([undefined, undefined, [jumpMs]]);
    await clock.advance(10 * minuteMs - 1);
    expect(guard.trustedMs()).toBeUndefined();
    await clock.advance(1);
    expect(guard.trustedMs()).toBe(clock.nowMs());
  });

  test('is that of the clock while both clocks go on alike, and a time server corrects it', async () => {
    const { clock, guard, jumps } = guarded();
    await clock.advance(30 * 24 * hourMs);
    clock.jump(-30 * minuteMs);
    expect([guard.trustedMs(), jumps]).toEqual([clock.nowMs(), []]);
  });

  test.each([1, -1])('is kept back at a start that is %d days from the time that was noted last', (days) => {
    const { guard, jumps } = guarded(new FakeClock().nowMs() - days * 24 * hourMs);
    expect([guard.trustedMs(), jumps]).toEqual([undefined, [days * 24 * hourMs]]);
  });
});

test('a sweep that the clock jumps under removes nothing any more', async () => {
  const { clock, guard } = guarded();
  const asked: number[] = [];
  const table = {
    name: 't',
    ttlDurationMs: hourMs,
    closing: new AbortController().signal,
    ranges: [{ rangeId: 1 }],
    expiredAtOrBeforeMs: (nowMs: number) => nowMs - hourMs,
    oldestTtlBaseMs(rangeId: number) {
      asked.push(rangeId);
      return Number.POSITIVE_INFINITY;
    },
  };
  const sweeper = new TtlSweeper({
    tables: () => [table as unknown as Table],
    noteWallClock: async () => clock.jump(24 * hourMs),
    log: undefined as never,
    clock,
    guard,
    limits,
    onSwept: () => undefined,
    onFailed: (_table, error) => {
      throw error;
    },
  });
  expect(await sweeper.sweep()).toEqual({ removed: 0, leavesSome: false });
  expect(asked).toEqual([]);
});
