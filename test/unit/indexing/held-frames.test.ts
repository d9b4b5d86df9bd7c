import { expect, test } from 'bun:test';
import { smallPageBytes } from '../../../src/indexing/applier/coalesce-pages.ts';
import { letFrameGo } from '../../../src/indexing/applier/held-frames.ts';
import { PageQueue } from '../../../src/indexing/applier/page-queue.ts';
import { systemClock } from '../../../src/lib/clock.ts';

const options = { queueBytesMax: 16 * 1_024 * 1_024, gatherMs: 0 };
const pageOf = (bytes: number) => ({ firstSequence: 1, lastSequence: 1, frame: new Uint8Array(bytes) });

test('a frame keeps its memory until the last index that has queued it is done, and then gives it back', () => {
  const page = pageOf(smallPageBytes + 1);
  const [first, second] = [new PageQueue(options, systemClock), new PageQueue(options, systemClock)];
  expect([first.push(page), second.push(page)]).toEqual([true, true]);
  letFrameGo(first.take()?.page.frame ?? new Uint8Array(0));
  expect(page.frame.byteLength).toBe(smallPageBytes + 1);
  second.clear();
  expect(page.frame.byteLength).toBe(0);
});

test('a small frame, which others may go on reading, is left as it is', () => {
  const page = pageOf(smallPageBytes);
  letFrameGo(page.frame);
  expect(page.frame.byteLength).toBe(smallPageBytes);
});
