import { expect, test } from 'bun:test';
import type { IndexDefinition } from '../../../src/index-kinds/all-kinds.ts';
import { concerns, contentsOf } from '../../../src/indexing/frame-contents.ts';
import { FrameBuilder, type RowKind, rowKind } from '../../../src/lib/document-frame.ts';

const text: IndexDefinition = {
  kind: 'full_text',
  name: 't',
  incarnation: 1,
  partId: 1,
  memOnly: false,
  schema: undefined,
};
const sparse: IndexDefinition = {
  kind: 'sparse',
  name: 's',
  incarnation: 7,
  partId: 2,
  memOnly: false,
  minWeight: 0,
  topK: 10,
};
const dense: IndexDefinition = {
  kind: 'dense',
  name: 'd',
  incarnation: 8,
  partId: 300,
  memOnly: false,
  dimension: 1,
  metric: 'cosine',
};

/** Which of the three indexes a frame of these rows concerns. */
function concerned(...rows: [RowKind, number?][]): boolean[] {
  const builder = new FrameBuilder();
  for (const [kind, indexId = 0] of rows)
    builder.append(kind, 'k', new Uint8Array(new Uint32Array([indexId, 1]).buffer));
  const contents = contentsOf(builder.finish(), new Set([2, 300]));
  return [text, sparse, dense].map((definition) => concerns(definition, contents));
}

test('an index is concerned by its own rows and by documents that are gone', () => {
  expect(concerned([rowKind.put], [rowKind.put])).toEqual([true, false, false]);
  expect(concerned([rowKind.put], [rowKind.partPut, 300])).toEqual([true, false, true]);
  expect(concerned([rowKind.partPut, 2], [rowKind.partDelete, 300])).toEqual([false, true, true]);
  expect(concerned([rowKind.partPut, 7])).toEqual([false, false, false]);
  expect(concerned([rowKind.partPut, 2], [rowKind.put], [rowKind.partPut, 300])).toEqual([true, true, true]);
  // Rows that no index follows do not end the search for those that one follows.
  expect(concerned([rowKind.put], [rowKind.partPut, 7], [rowKind.partPut, 8], [rowKind.partPut, 300])).toEqual([
    true,
    false,
    true,
  ]);
  expect(concerned([rowKind.state], [rowKind.partPut, 2])).toEqual([false, true, false]);
  expect(concerned([rowKind.put], [rowKind.delete])).toEqual([true, true, true]);
});
