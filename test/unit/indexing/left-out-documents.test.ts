import { expect, test } from 'bun:test';
import { takePages } from '../../../src/indexing/applier/coalesce-pages.ts';
import { LeftOutDocuments } from '../../../src/indexing/applier/left-out-documents.ts';
import type { ChangePage } from '../../../src/indexing/range-index.ts';
import { FrameBuilder, type RowKind, rowKind } from '../../../src/lib/document-frame.ts';
import { partDeleteBody } from '../../../src/lib/parts/part-body.ts';

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
  leftOut.opened([]);
  expect(leftOut.isEmpty).toBe(true);
  leftOut.opened([4]);
  expect(leftOut.isEmpty).toBe(false);
});

test('the note has all that is left out, and is made where that has changed', () => {
  const leftOut = new LeftOutDocuments();
  leftOut.opened([1]);
  leftOut.take(page(1, [5]));
  expect(leftOut.toNote()).toBeUndefined();
  leftOut.take(page(2, [5], [2]));
  expect(leftOut.toNote()).toEqual(Uint32Array.of(1, 2));
  expect(leftOut.toNote()).toBeUndefined();
  leftOut.take(page(3, [1, 2]));
  expect(leftOut.toNote()).toEqual(new Uint32Array(0));
});

test('an index of parts takes its own parts and deletions for a repair, and one of documents takes documents', () => {
  const frameOf = (kind: RowKind, partId: number) => {
    const frame = new FrameBuilder();
    const isPart = kind === rowKind.partPut || kind === rowKind.partDelete;
    frame.setOrdinal(frame.append(kind, 'k3', isPart ? partDeleteBody(partId) : new Uint8Array(2)), 3);
    return { ...page(1, []), frame: frame.finish() };
  };
  const mends = (partId: number | undefined, kind: RowKind, partIdOfRow = 0) => {
    const leftOut = new LeftOutDocuments(partId);
    leftOut.opened([3]);
    leftOut.take(frameOf(kind, partIdOfRow));
    return leftOut.isEmpty;
  };
  const { put, delete: deletion, partPut, partDelete } = rowKind;
  expect([mends(7, put), mends(7, deletion), mends(undefined, put), mends(undefined, deletion)]).toEqual([
    false,
    true,
    true,
    true,
  ]);
  expect([mends(7, partPut, 7), mends(7, partDelete, 7)]).toEqual([true, true]);
  expect([mends(7, partPut, 8), mends(7, partDelete, 8), mends(undefined, partPut, 8)]).toEqual([false, false, false]);
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
