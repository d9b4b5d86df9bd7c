import { expect, test } from 'bun:test';
import { expiredAtOrBeforeMs, hasExpired } from '../../../src/lib/ttl.ts';

test('a document expires at the moment at which its base is as old as the TTL, and not before', () => {
  const bound = expiredAtOrBeforeMs(1_000, 400);
  expect([599, 600, 601].map((baseMs) => hasExpired(baseMs, bound))).toEqual([true, true, false]);
});

test('without a TTL, or without a base, a document lives for ever', () => {
  expect(hasExpired(0, expiredAtOrBeforeMs(1_000, undefined))).toBe(false);
  expect(hasExpired(undefined, expiredAtOrBeforeMs(1_000, 400))).toBe(false);
});
