import { afterEach, describe, expect, jest, test } from 'bun:test';
import { commandClock, systemClock } from '../../../src/lib/clock.ts';

const dayMs = 24 * 3_600_000;

/** At most what the runtime takes at a time. */
function advanceDays(days: number): void {
  for (let day = 0; day < days; day += 1) jest.advanceTimersByTime(dayMs);
}

afterEach(() => {
  jest.useRealTimers();
});

describe.each([
  ['of the server', systemClock],
  ['of a command', commandClock],
])('a timer %s', (_, clock) => {
  test('whose delay is more than one timer of the runtime takes fires when it has passed, not at once', () => {
    jest.useFakeTimers();
    const fired: string[] = [];
    const cancelYear = clock.after(365 * dayMs, () => fired.push('a year'));
    clock.after(60 * dayMs, () => fired.push('sixty days'));
    advanceDays(59);
    jest.advanceTimersByTime(dayMs - 1);
    expect(fired).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(fired).toEqual(['sixty days']);
    advanceDays(40);
    cancelYear();
    advanceDays(400);
    expect(fired).toEqual(['sixty days']);
  });
});
