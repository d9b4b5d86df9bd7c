import { expect, test } from 'bun:test';
import { MadeThrough } from '../../../src/enrichment/following/made-through.ts';

test('an index shows documents with their parts only when it has read up to the parts', () => {
  const made = new MadeThrough(10, 12);
  expect(made.shownBy(12, 10)).toBe(10);
  expect(made.shownBy(11, 10)).toBe(0);
  // Documents up to 15 have parts, the last of them at 18.
  made.note(15, 18);
  expect(made.shownBy(15, 15)).toBe(10);
  expect(made.shownBy(17, 15)).toBe(10);
  expect(made.shownBy(18, 15)).toBe(15);
  // Documents of which nothing is made are covered without a part; a part that is not read holds them back.
  expect(made.shownBy(20, 20)).toBe(20);
  made.note(20, 22);
  expect(made.shownBy(21, 20)).toBe(15);
  expect(made.shownBy(22, 20)).toBe(20);
});

test('an index that is behind more entries than are remembered shows none of them', () => {
  const made = new MadeThrough(0, 0);
  for (let at = 1; at <= 1_000; at += 1) made.note(at, at + 1);
  expect(made.shownBy(300, 1_000)).toBe(0);
  expect(made.shownBy(901, 1_000)).toBe(900);
  expect(made.shownBy(1_001, 1_000)).toBe(1_000);
});
