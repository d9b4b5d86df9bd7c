import { expect, test } from 'bun:test';
import { openOnce } from '../../../src/lib/concurrency/open-once.ts';

test('what could not be opened is tried again by the next caller, and opened once for all callers', async () => {
  let calls = 0;
  const open = openOnce(async () => {
    calls += 1;
    if (calls === 1) throw new Error('too many open files');
    return calls;
  });
  const [first, second] = await Promise.allSettled([open(), open()]);
  expect([first?.status, second?.status, calls]).toEqual(['rejected', 'rejected', 1]);
  expect(await Promise.all([open(), open()])).toEqual([2, 2]);
  expect(await open()).toBe(2);
});
