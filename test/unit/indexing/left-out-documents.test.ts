import { expect, test } from 'bun:test';
import { takePages } from '../../../src/indexing/applier/coalesce-pages.ts';
import { LeftOutDocuments } from '../../../src/indexing/applier/left-out-documents.ts';
import type { ChangePage } from '../../../src/indexing/range-index.ts';
import { FrameBuilder, rowKind } from '../../../src/lib/document-frame.ts';

/** A page of puts of `ordinals`, with tombstones for `damaged`. */
function page(sequence: number, ordinals: number[], damaged: number[] = []): ChangePage {
  const frame = new FrameBuilder();
  for (const ordinal of ordinals)
    frame.setOrdinal(frame.append(rowKind.put, `k${ordinal}`, new Uint8Array(2)), ordinal);
  for (const ordinal of damaged) frame.setOrdinal(frame.append(rowKind.delete, '', new Uint8Array(0)), ordinal);
  return {
    firstSequence: sequence,
    lastSequence: sequence,
    frame: frame.finish(),
    damaged: damaged.map((ordinal) => ({ key: `k${ordinal}`, ordinal, reason: 'does not match' })),
  };
}

test('a damaged document is left out until it is written again, or the index is opened again', () => {
  const leftOut = new LeftOutDocuments();
  leftOut.take(page(1, [1, 2], [3, 4]));
  expect(leftOut.isEmpty).toBe(false);
  leftOut.take(page(2, [1, 3]));
  expect(leftOut.isEmpty).toBe(false);
  leftOut.take(page(3, [4]));
  expect(leftOut.isEmpty).toBe(true);
  leftOut.take(page(4, [], [4]));
  leftOut.isShort = true;
  leftOut.restart();
  expect(leftOut.isEmpty).toBe(true);
});

test('a page with damaged rows is not joined with those behind it', () => {
  const queue = [page(1, [1]), page(2, [2], [3]), page(3, [3]), page(4, [4])];
  const taken = [];
  for (let next = takePages(queue); next !== undefined; next = takePages(queue)) {
    taken.push([next.page.firstSequence, next.page.lastSequence, next.page.damaged?.length ?? 0]);
  }
  expect(taken).toEqual([
    [1, 1, 0],
    [2, 2, 1],
    [3, 4, 0],
  ]);
});
