import { FrameBuilder, readFrame, rowKind } from '../../lib/document-frame.ts';
import { removedTargetsBytes, removedTargetsKey } from '../../lib/parts/edge-notes.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { GraphWrites, PostImages, RangeId } from '../write-request.ts';

const encoder = new TextEncoder();

/**
 * Edges to a deleted document may lie in any range, and no write reaches them all: notes, in the transaction of the
 * deletion, say that they are gone. So are those that the same commit writes: `written` has the last sequence of each range
 * that it writes to. A document that the commit deletes and writes again, as one that had expired, keeps them. Answers the
 * images with the notes, if something was deleted.
 */
export function noteRemovedTargets(
  file: RangeWriter,
  images: PostImages,
  { heads, rangeIds }: GraphWrites,
  written: ReadonlyMap<RangeId, number>,
): PostImages {
  const frame = readFrame(images.frame);
  const [gone, again] = deletedKeys(images.frame);
  const all = [
    { keys: gone, at: images.lastSequence, through: rangeIds.map((id, at) => written.get(id) ?? heads[at] ?? 0) },
    { keys: again, at: images.firstSequence, through: [...heads] },
  ];
  const notes = all.filter(({ keys }) => keys.size > 0);
  if (notes.length === 0) return images;
  const noted = new FrameBuilder(frame.rowCount + notes.length, images.frame.byteLength * 2);
  for (let row = 0; row < frame.rowCount; row += 1) noted.appendRow(frame, row);
  for (const { keys, at, through } of notes) {
    const name = encoder.encode(removedTargetsKey(at));
    const value = removedTargetsBytes({ through, keys: [...keys] });
    file.setNote(name, value);
    noted.append(rowKind.state, name, value);
  }
  return { ...images, frame: noted.finish() };
}

/** Keys of the documents that are deleted, and of those among them that are there again behind it. */
function deletedKeys(images: Uint8Array<ArrayBuffer>): [gone: Set<string>, again: Set<string>] {
  const frame = readFrame(images);
  const [gone, again] = [new Set<string>(), new Set<string>()];
  for (let row = 0; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    if (kind !== rowKind.delete && kind !== rowKind.put) continue;
    const key = frame.key(row);
    if (kind === rowKind.delete) gone.add(key);
    else if (gone.delete(key)) again.add(key);
  }
  return [gone, again];
}
