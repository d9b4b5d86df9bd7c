import { expect, test } from 'bun:test';
import { WriterUpkeep } from '../../../src/storage/writer-upkeep.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Upkeep whose steps answer these in turn: milliseconds until the next, or an error. */
function upkeepOf(...answers: readonly (number | undefined | Error)[]) {
  const clock = new FakeClock();
  const left = [...answers];
  const failures: unknown[] = [];
  let steps = 0;
  const upkeep = new WriterUpkeep({
    step() {
      steps += 1;
      const answer = left.shift();
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    clock,
    onFailed: (...failure) => failures.push(failure),
  });
  return { upkeep, clock, failures, steps: () => steps };
}

test('a step follows the one before after the time that it asks for, until nothing is left', async () => {
  const { upkeep, clock, steps } = upkeepOf(5_000, 10, undefined);
  upkeep.wake();
  upkeep.wake();
  await clock.advance(4_999);
  expect(steps()).toBe(1);
  await clock.advance(11);
  expect(steps()).toBe(3);
  await clock.advance(60_000);
  expect(steps()).toBe(3);
  upkeep.wake();
  await clock.advance(0);
  expect(steps()).toBe(4);
});

test('a wake ends the wait for the next step', async () => {
  const { upkeep, clock, steps } = upkeepOf(30_000, 30_000, undefined);
  upkeep.wake();
  await clock.advance(0);
  upkeep.wake();
  await clock.advance(0);
  expect([steps(), clock.pending]).toEqual([2, 1]);
  await clock.advance(30_000);
  expect([steps(), clock.pending]).toEqual([3, 0]);
});

test('a step that fails is named and done again after a pause', async () => {
  const fault = new Error('the file is locked');
  const { upkeep, clock, failures, steps } = upkeepOf(fault, fault, undefined);
  upkeep.wake();
  await clock.advance(0);
  expect([steps(), failures]).toEqual([1, [['upkeep of the writer', fault, 1]]]);
  await clock.advance(60_000);
  expect([steps(), failures.length]).toEqual([3, 2]);
  expect(clock.pending).toBe(0);
});

test('a stop ends what waits, and nothing begins behind it', async () => {
  const { upkeep, clock, steps } = upkeepOf(1_000, undefined);
  upkeep.wake();
  await clock.advance(0);
  await upkeep.stop();
  upkeep.wake();
  await clock.advance(5_000);
  expect([steps(), clock.pending]).toEqual([1, 0]);
});
