import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import { FrameBuilder, readFrame } from '../../lib/document-frame.ts';
import { compareKeys } from '../../lib/key-order.ts';
import type { KeyInterval } from '../initial-ranges.ts';

/** The position of the interval that holds `key`; intervals are in key order and leave no gap. */
export function intervalOf(key: string, intervals: readonly KeyInterval[]): number {
  let low = 0;
  let high = intervals.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (compareKeys(key, intervals[middle]?.startKey ?? '') >= 0) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Cuts a document frame by intervals, keeping the order of rows; an interval without rows gets undefined. */
export async function splitFrame(
  bytes: Uint8Array<ArrayBuffer>,
  intervals: readonly KeyInterval[],
): Promise<(Uint8Array<ArrayBuffer> | undefined)[]> {
  const frame = readFrame(bytes);
  if (frame.rowCount === 0) return intervals.map(() => undefined);
  if (intervals.length === 1) return [bytes];
  const builders = intervals.map(() => new FrameBuilder());
  await forEachYielding(frame.rowCount, (row) => {
    builders[intervalOf(frame.key(row), intervals)]?.appendRow(frame, row);
  });
  return builders.map((builder) => (builder.rowCount === 0 ? undefined : builder.finish()));
}
