import { expect, test } from 'bun:test';
import { readAhead } from '../../../src/lib/concurrency/read-ahead.ts';

/** Yields 1, 2, 3, notes what it has begun to make, and whether it was ended. */
function source(events: string[], failsAt = 0) {
  return (async function* () {
    try {
      for (let at = 1; at <= 3; at += 1) {
        events.push(`make ${at}`);
        if (at === failsAt) throw new Error(`no ${at}`);
        yield at;
      }
    } finally {
      events.push('ended');
    }
  })();
}

test('the next value is made while one is used', async () => {
  const events: string[] = [];
  for await (const value of readAhead(source(events))) {
    await Promise.resolve();
    events.push(`use ${value}`);
  }
  expect(events).toEqual(['make 1', 'make 2', 'use 1', 'make 3', 'use 2', 'ended', 'use 3']);
});

test('what fails is thrown behind the values before it', async () => {
  const [events, used]: [string[], number[]] = [[], []];
  const reading = (async () => {
    for await (const value of readAhead(source(events, 3))) used.push(value);
  })();
  expect(await reading.catch(String)).toBe('Error: no 3');
  expect(used).toEqual([1, 2]);
});

test('who stops early ends the source', async () => {
  const events: string[] = [];
  for await (const _ of readAhead(source(events))) break;
  expect(events).toEqual(['make 1', 'make 2', 'ended']);
});
