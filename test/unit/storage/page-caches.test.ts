import { expect, test } from 'bun:test';
import { PageCaches } from '../../../src/storage/writer/page-caches.ts';

function files(count: number, dropped: number[]) {
  return Array.from({ length: count }, (_, at) => ({ dropPages: () => void dropped.push(at) }));
}

test('the file used longest ago drops its pages when there are too many with some', () => {
  const dropped: number[] = [];
  const [first, second, third] = files(3, dropped);
  const caches = new PageCaches(2);
  if (!first || !second || !third) throw new Error('three files');
  caches.use(first);
  caches.use(second);
  caches.use(first);
  expect(dropped).toEqual([]);
  caches.use(third);
  expect(dropped).toEqual([1]);
  caches.use(second);
  expect(dropped).toEqual([1, 0]);
});

test('a file that is closed is not asked any more, and makes room', () => {
  const dropped: number[] = [];
  const [first, second, third] = files(3, dropped);
  const caches = new PageCaches(2);
  if (!first || !second || !third) throw new Error('three files');
  caches.use(first);
  caches.use(second);
  caches.forget(first);
  caches.use(third);
  expect(dropped).toEqual([]);
});
