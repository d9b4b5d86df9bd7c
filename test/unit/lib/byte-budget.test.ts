import { expect, test } from 'bun:test';
import { ByteBudget } from '../../../src/lib/concurrency/byte-budget.ts';

const holder = () => ({ bytes: 0 });
const never = new Promise<void>(() => undefined);

test('holders together stay within the bound, and what one gives back is there for others', () => {
  const budget = new ByteBudget('bytes', 100);
  const [first, second] = [holder(), holder()];
  expect(budget.take(first, 60)).toBe(true);
  expect(budget.take(second, 60)).toBe(false);
  expect(second.bytes).toBe(0);
  expect(budget.take(second, 40)).toBe(true);
  budget.release(first);
  budget.release(first);
  expect(budget.take(second, 60)).toBe(true);
  expect(budget.take(first, 1)).toBe(false);
});

test('one alone may have any number, however often it asks', () => {
  const budget = new ByteBudget('bytes', 100);
  const [first, second] = [holder(), holder()];
  expect(budget.take(first, 500)).toBe(true);
  expect(budget.take(first, 500)).toBe(true);
  expect(budget.take(second, 1)).toBe(false);
  budget.release(first);
  expect(budget.take(second, 100)).toBe(true);
});

test('those who wait are served in their order, and nobody passes them', async () => {
  const budget = new ByteBudget('bytes', 100);
  const [first, large, small, late] = [holder(), holder(), holder(), holder()];
  const served: string[] = [];
  budget.take(first, 90);
  const waiting = [
    budget.wait(large, 80, never).then((taken) => served.push(`large ${taken}`)),
    budget.wait(small, 10, never).then((taken) => served.push(`small ${taken}`)),
  ];
  expect(budget.take(late, 5)).toBe(false);
  budget.release(first);
  await Promise.all(waiting);
  expect(served).toEqual(['large true', 'small true']);
  expect([large.bytes, small.bytes]).toEqual([80, 10]);
});

test('a wait that is over takes nothing, and those behind it go on', async () => {
  const budget = new ByteBudget('bytes', 100);
  const [first, large, small] = [holder(), holder(), holder()];
  const over = Promise.withResolvers<void>();
  budget.take(first, 50);
  const waits = budget.wait(large, 80, over.promise);
  const behind = budget.wait(small, 20, never);
  over.resolve();
  expect(await waits).toBe(false);
  expect(await behind).toBe(true);
  budget.release(first);
  expect(large.bytes).toBe(0);
  expect(budget.take(first, 80)).toBe(true);
});

test('what was made may be less or more than what was asked for', async () => {
  const budget = new ByteBudget('bytes', 100);
  const [first, second] = [holder(), holder()];
  budget.take(first, 90);
  const waits = budget.wait(second, 60, never);
  budget.settle(first, 30);
  expect(await waits).toBe(true);
  budget.settle(first, 70);
  expect([first.bytes, second.bytes]).toEqual([70, 60]);
  budget.release(second);
  expect(budget.take(second, 30)).toBe(true);
  expect(budget.take(second, 1)).toBe(false);
});
