import { expect, test } from 'bun:test';
import { must } from '../../src/lib/assert.ts';
import { FrameBuilder, readFrame, rowKind, rowOrdinalIsNew } from '../../src/lib/document-frame.ts';
import { denseBody } from '../../src/lib/parts/dense-part.ts';
import { createTable, group, openTestStorage, temporaryDirectory } from './storage-fixture.ts';

const encoder = new TextEncoder();

/** A document of a backup; `parts` by part id. */
function put(frame: FrameBuilder, [ordinal, key]: [number, string], parts: Record<number, number>): void {
  frame.setOrdinal(frame.append(rowKind.put, key, encoder.encode(`{"k":"${key}"}`)), ordinal);
  for (const [id, value] of Object.entries(parts)) {
    frame.append(rowKind.partPut, key, denseBody(Number(id), new Float32Array([value])));
  }
}

test('rows of a backup keep their ordinals, and a document that comes again behind new ones loses its other parts', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  await using closing = new AsyncDisposableStack();
  closing.defer(() => storage.close());
  const table = await createTable(storage, 'things', 1, ['v0', 'v1']);
  const { rangeId } = must(table.ranges[0], 'a range');
  const range = await storage.openRange(rangeId);
  const restore = async (build: (frame: FrameBuilder) => void) => {
    const frame = new FrameBuilder();
    build(frame);
    const [applied] = await storage.append(group([{ rangeId, frame: frame.finish(), keepsOrdinals: true }]));
    const { counts, images } = must(applied, 'an answer');
    const { frame: bytes, firstSequence } = must(images, 'images');
    const rows = readFrame(bytes);
    const shown = Array.from({ length: rows.rowCount }, (_, row) => {
      const isState = rows.kind(row) === rowKind.state;
      const sequence = isState ? undefined : rows.sequence(row) - firstSequence;
      return [rows.kind(row), rows.ordinal(row), sequence, rows.flags(row)];
    });
    return { counts, shown };
  };

  const first = await restore((frame) => {
    put(frame, [3, 'a'], { 1: 1, 2: 2 });
    put(frame, [7, 'b'], {});
    frame.append(rowKind.state, 'place', encoder.encode('1'));
  });
  expect(first.counts).toMatchObject({ inserted: 2, updated: 0, deleted: 0 });
  expect(first.shown).toEqual([
    [rowKind.put, 3, 0, rowOrdinalIsNew],
    [rowKind.partPut, 3, 1, 0],
    [rowKind.partPut, 3, 2, 0],
    [rowKind.put, 7, 3, rowOrdinalIsNew],
    [rowKind.state, 0, undefined, 0],
  ]);

  const second = await restore((frame) => {
    put(frame, [9, 'c'], { 1: 3 });
    put(frame, [3, 'a'], { 2: 4 });
    frame.setOrdinal(frame.append(rowKind.delete, '', new Uint8Array(0)), 7);
  });
  expect(second.counts).toMatchObject({ inserted: 1, updated: 1, deleted: 1 });
  expect(second.shown).toEqual([
    [rowKind.put, 9, 0, rowOrdinalIsNew],
    [rowKind.partPut, 9, 1, 0],
    [rowKind.put, 3, 2, 0],
    [rowKind.partPut, 3, 3, 0],
    [rowKind.partDelete, 3, 4, 0],
    [rowKind.delete, 7, 5, 0],
  ]);
  expect(range.documents.ordinalsAfter(0, 10)).toEqual([3, 9]);
  expect(range.parts.ordinalsAfter(1, 0, 10)).toEqual([9]);
  expect(range.parts.ordinalsAfter(2, 0, 10)).toEqual([3]);
});

test('a part of a backup without its document, and one key under two numbers, are refused', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  await using closing = new AsyncDisposableStack();
  closing.defer(() => storage.close());
  const table = await createTable(storage, 'things', 1, ['v0']);
  const { rangeId } = must(table.ranges[0], 'a range');
  const refused = async (build: (frame: FrameBuilder) => void) => {
    const frame = new FrameBuilder();
    build(frame);
    const writes = [{ rangeId, frame: frame.finish(), keepsOrdinals: true }];
    return storage.append(group(writes)).then(
      () => 'taken',
      (error: { code: string }) => error.code,
    );
  };
  const part = denseBody(1, new Float32Array([1]));
  expect(await refused((frame) => frame.append(rowKind.partPut, 'a', part))).toBe('backup_corrupted');
  const twice = (frame: FrameBuilder) => {
    put(frame, [1, 'a'], {});
    put(frame, [2, 'a'], {});
  };
  expect(await refused(twice)).toBe('backup_corrupted');
  expect((await storage.openRange(rangeId)).documents.ordinalsAfter(0, 10)).toEqual([]);
});
