import { expect, test } from 'bun:test';
import { slicesWithin } from '../../../src/lib/concurrency/slices-within.ts';

const cut = (words: readonly string[], items: number, bytes: number) => [
  ...slicesWithin(words, (word) => word.length, { items, bytes }),
];

test('a list is cut where the next item would break a bound, and keeps its order', () => {
  expect(cut(['aa', 'bb', 'cc', 'd'], 3, 100)).toEqual([['aa', 'bb', 'cc'], ['d']]);
  expect(cut(['aa', 'bb', 'cc', 'd'], 100, 4)).toEqual([
    ['aa', 'bb'],
    ['cc', 'd'],
  ]);
  expect(cut([], 1, 1)).toEqual([]);
});

test('an item that no bound holds is alone', () => {
  expect(cut(['a', 'bbbbbb', 'c'], 10, 4)).toEqual([['a'], ['bbbbbb'], ['c']]);
});
