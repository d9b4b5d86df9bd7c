import { expect, test } from 'bun:test';
import type { OpenRange } from '../../src/indexing/open-range.ts';
import { RangePool } from '../../src/indexing/range-pool.ts';

/** A pool of ranges that open at once and close when told to. */
function poolOf(openMax: number) {
  const opened: number[] = [];
  const closings: (() => void)[] = [];
  const pool = new RangePool((rangeId) => {
    opened.push(rangeId);
    const close = () => new Promise<void>((resolve) => closings.push(resolve));
    return Promise.resolve({ rangeId, close } as unknown as OpenRange);
  }, openMax);
  return { pool, opened, closings };
}

test('a range that is asked for while it closes is opened again behind that', async () => {
  const { pool, opened, closings } = poolOf(1);
  (await pool.lease(1))[Symbol.dispose]();
  using other = await pool.lease(2);
  const again = pool.lease(1);
  const closed = pool.close(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect([opened, closings.length]).toEqual([[1, 2], 1]);
  closings[0]?.();
  await closed;
  using lease = await again;
  expect([lease.range.rangeId, other.range.rangeId, opened]).toEqual([1, 2, [1, 2, 1]]);
});
