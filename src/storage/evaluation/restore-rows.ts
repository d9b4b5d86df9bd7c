import { type DocumentFrame, FrameBuilder, readFrame, rowKind } from '../../lib/document-frame.ts';
import { arrivedEdges } from '../../lib/parts/edges-part.ts';
import { partDeleteBody } from '../../lib/parts/part-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { RowPlace } from '../range/stored-rows.ts';
import type { RangeWrite, WriteCounts } from '../write-request.ts';
import { EdgeLists, isEdgeList } from './edge-lists.ts';
import { documentOfRow, fillPlace, removeWithImage, storeList, storePart, storePartWithImage } from './row-writes.ts';

const noKey = new Uint8Array(0);

/** The rows of one write of a restore on their way into a range. */
interface RestoreWork {
  file: RangeWriter;
  counts: WriteCounts;
  lists: EdgeLists;
  /** Place of the last document put: the part rows behind it are its own. */
  document: RowPlace | undefined;
}

/**
 * Rows of a backup on their way into a range: documents keep their ordinals and get new sequences. A put has all parts of
 * its document behind it; others that the document had are removed. A delete, of a document or of a part, names an ordinal,
 * which need not be there.
 */
export function restoreRows(
  file: RangeWriter,
  write: RangeWrite,
  counts: WriteCounts,
): Uint8Array<ArrayBuffer> | undefined {
  if (!write.frame) return undefined;
  const frame = readFrame(write.frame);
  const work: RestoreWork = { file, counts, lists: new EdgeLists(file, undefined, 0), document: undefined };
  // Nearly all documents are new, and their rows are filled in place; another row makes a new frame necessary.
  const filled = fillInPlace(work, frame);
  if (filled === frame.rowCount) return filled === 0 ? undefined : frame.bytes;
  const images = new FrameBuilder(frame.rowCount, frame.bytes.byteLength);
  for (let row = 0; row < filled; row += 1) images.appendRow(frame, row);
  restoreRest(work, frame, filled, images);
  return images.rowCount === 0 ? undefined : images.finish();
}

/** Writes rows up to the first that has no image of its own shape, or that might replace a document; returns how many. */
function fillInPlace(work: RestoreWork, frame: DocumentFrame): number {
  const { file, counts } = work;
  for (let row = 0; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    if (kind === rowKind.put) {
      if (file.mayHold(frame.ordinal(row))) return row;
      const place = file.putAt(frame.ordinal(row), documentOfRow(frame, row));
      fillPlace(frame, row, place);
      work.document = place;
      counts.inserted += 1;
    } else if (kind === rowKind.partPut && work.document && !isEdgeList(frame.body(row))) {
      const sequence = storePart(file, frame, row, work.document);
      if (sequence === undefined) return row;
      fillPlace(frame, row, { ordinal: work.document.ordinal, sequence, isNew: false });
    } else if (kind === rowKind.state) {
      file.setNote(frame.keyBytes(row), frame.body(row));
      work.document = undefined;
    } else return row;
  }
  return frame.rowCount;
}

/** Writes the rows from `from` on, and appends their images. */
function restoreRest(work: RestoreWork, frame: DocumentFrame, from: number, images: FrameBuilder): void {
  const { file, counts, lists } = work;
  let { document } = work;
  let rest: number[] = [];
  for (let row = from; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    if (kind === rowKind.partPut && document) {
      const partId = frame.partId(row);
      if (isEdgeList(frame.body(row))) {
        // Deletions before the backup are known by the sequences of that time.
        const place = { list: frame.sequence(row), document: document.sequence };
        const list = arrivedEdges(frame.body(row), place);
        storeList({ file, images }, frame.keyBytes(row), document, partId, list);
      } else storePartWithImage({ file, images, lists }, frame, row, document);
      rest = rest.filter((each) => each !== partId);
      continue;
    }
    if (document) removeParts(file, images, document.ordinal, rest);
    document = undefined;
    if (kind === rowKind.put) {
      const place = file.putAt(frame.ordinal(row), documentOfRow(frame, row));
      const image = images.appendRow(frame, row);
      fillPlace(images, image, place);
      document = place;
      rest = place.isNew ? [] : [...file.state.partIds];
      if (place.isNew) counts.inserted += 1;
      else counts.updated += 1;
    } else if (kind === rowKind.delete) {
      const held = file.findOrdinal(frame.ordinal(row));
      if (held) removeWithImage(file, images, noKey, held);
      if (held) counts.deleted += 1;
    } else if (kind === rowKind.partDelete) {
      removeParts(file, images, frame.ordinal(row), [frame.partId(row)]);
    } else if (kind === rowKind.state) {
      file.setNote(frame.keyBytes(row), frame.body(row));
      images.appendRow(frame, row);
    } else throw new ServiceError('backup_corrupted', 'the backup has a part without its document');
  }
  if (document) removeParts(file, images, document.ordinal, rest);
}

function removeParts(file: RangeWriter, images: FrameBuilder, ordinal: number, partIds: readonly number[]): void {
  for (const partId of partIds) {
    const sequence = file.removePart(ordinal, partId);
    if (sequence === undefined) continue;
    const row = images.append(rowKind.partDelete, noKey, partDeleteBody(partId));
    images.setOrdinal(row, ordinal);
    images.setSequence(row, sequence);
  }
}
