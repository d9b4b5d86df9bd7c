import { FrameBuilder, readFrame, rowKind } from '../../lib/document-frame.ts';
import { removedTargetsBytes, removedTargetsKey } from '../../lib/parts/edge-notes.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { GraphWrites } from '../write-request.ts';

const encoder = new TextEncoder();

/**
 * Edges to a deleted document may lie in any range, and no write reaches them all: a note, in the transaction of the
 * deletion, says that they are gone. Answers the images with the note, if something was deleted.
 */
export function noteRemovedTargets(
  file: RangeWriter,
  images: Uint8Array<ArrayBuffer>,
  { heads }: GraphWrites,
): Uint8Array<ArrayBuffer> {
  const frame = readFrame(images);
  const keys = new Set<string>();
  for (let row = 0; row < frame.rowCount; row += 1) if (frame.kind(row) === rowKind.delete) keys.add(frame.key(row));
  if (keys.size === 0) return images;
  const name = encoder.encode(removedTargetsKey(file.state.nextSequence - 1));
  const value = removedTargetsBytes({ through: [...heads], keys: [...keys] });
  file.setNote(name, value);
  const noted = new FrameBuilder(frame.rowCount + 1, images.byteLength + value.byteLength);
  for (let row = 0; row < frame.rowCount; row += 1) noted.appendRow(frame, row);
  noted.append(rowKind.state, name, value);
  return noted.finish();
}
