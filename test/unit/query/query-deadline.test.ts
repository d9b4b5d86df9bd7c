import { expect, test } from 'bun:test';
import { pause } from '../../../src/lib/clock.ts';
import type { NativePlan } from '../../../src/query/plan/native-plan.ts';
import { QueryDeadline } from '../../../src/query/query-deadline.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const caller = new AbortController();

test('all searches of a query share its time', async () => {
  const clock = new FakeClock();
  using deadline = new QueryDeadline(clock, 10_000, caller);
  deadline.limitTo(50);
  const timesMs: unknown[] = [];
  const run = deadline.inTime(async (_, { timeout_ms }) => {
    timesMs.push(timeout_ms);
    await clock.advance(30);
    return {} as never;
  });
  for (let search = 0; search < 3; search += 1) await run({} as never, { timeout_ms: 50 } as NativePlan, caller);
  expect(timesMs).toEqual([50, 20, 1]);
  expect(() => deadline.check()).toThrow('the time of the query was over');
});

test('a wait that a request asks for is a part of the time that it gives itself, and not of the bound of the server', async () => {
  const clock = new FakeClock();
  using deadline = new QueryDeadline(clock, 100, caller);
  const wait = async (ms: number) => {
    const waiting = deadline.waiting((msMax) => pause(clock, Math.min(ms, msMax), caller.signal));
    await clock.advance(ms);
    await waiting;
  };
  const { signal } = { signal: deadline.signal() };
  await wait(500);
  expect([deadline.leftMs, deadline.signal().aborted]).toEqual([100, false]);
  expect(signal).not.toBe(deadline.signal());
  deadline.limitTo(550);
  expect(deadline.leftMs).toBe(50);
  const beganMs = clock.monotonicMs();
  let endedMs = 0;
  const waiting = deadline
    .waiting((msMax) => pause(clock, Math.min(60_000, msMax), caller.signal))
    .then(() => (endedMs = clock.monotonicMs()));
  await clock.advance(60_000);
  await waiting;
  expect(endedMs - beganMs).toBe(50);
  expect(() => deadline.check()).toThrow('the time of the query was over');
});
