import { expect, test } from 'bun:test';
import { RemovalLog } from '../../../src/indexing/removals/removal-log.ts';

test('says how many rows may have gone after a sequence', () => {
  const log = new RemovalLog(10);
  expect([log.after(10), log.after(7)]).toEqual([0, 3]);
  log.note(15, 0);
  log.note(20, 4);
  log.note(30, 2);
  expect([log.after(30), log.after(25), log.after(10), log.after(8)]).toEqual([0, 2, 6, 8]);
  log.forget(20);
  expect([log.after(20), log.after(30)]).toEqual([2, 0]);
  log.forget(30);
  expect(log.after(20)).toBe(0);
});

test('joins what is old rather than grow, and then says too many, never too few', () => {
  const log = new RemovalLog(0);
  for (let sequence = 1; sequence <= 5_000; sequence += 1) log.note(sequence, 1);
  expect(log.after(0)).toBe(5_000);
  expect(log.after(4_999)).toBe(1);
  for (let sequence = 0; sequence < 5_000; sequence += 37) {
    expect(log.after(sequence)).toBeGreaterThanOrEqual(5_000 - sequence);
  }
});
