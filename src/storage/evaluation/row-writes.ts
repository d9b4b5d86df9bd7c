import { type DocumentFrame, type FrameBuilder, rowKind, rowOrdinalIsNew } from '../../lib/document-frame.ts';
import { partDeleteBody, partIdOfBody } from '../../lib/parts/part-body.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { NewDocument, RowHead, RowPlace } from '../range/stored-rows.ts';
import { type EdgeLists, isEdgeList } from './edge-lists.ts';

const noBytes = new Uint8Array(0);
/** CRC-32 of nothing. */
const noBytesCrc = 0;

/** The document of a put row. */
export function documentOfRow(frame: DocumentFrame, row: number): NewDocument {
  const [key, body, crc] = [frame.keyBytes(row), frame.body(row), frame.crc(row)];
  return { key, body, ttlBaseMs: frame.ttlBaseMs(row), writtenMs: frame.writtenMs(row), crc };
}

/** Fills the place that the writer gave a row of `frame`. */
export function fillPlace(frame: DocumentFrame | FrameBuilder, row: number, place: RowPlace): void {
  frame.setFlags(row, place.isNew ? rowOrdinalIsNew : 0);
  frame.setOrdinal(row, place.ordinal);
  frame.setSequence(row, place.sequence);
}

/** Writes a document and appends its image; `previous` as in `RangeWriter.put`. */
export function putWithImage(
  file: RangeWriter,
  images: FrameBuilder,
  document: NewDocument,
  previous?: RowHead | null,
): RowPlace {
  const { key, body, ttlBaseMs, writtenMs, crc } = document;
  const place = file.put(document, previous);
  const row = images.append(rowKind.put, key, body, crc);
  images.setTtlBaseMs(row, ttlBaseMs);
  images.setWrittenMs(row, writtenMs);
  images.setFlags(row, place.isNew ? rowOrdinalIsNew : 0);
  images.setOrdinal(row, place.ordinal);
  images.setSequence(row, place.sequence);
  return place;
}

/** Writes or deletes the part of a row of `frame`; returns its sequence, undefined when nothing was to be done. */
export function storePart(
  file: RangeWriter,
  frame: DocumentFrame,
  row: number,
  document: Pick<RowPlace, 'ordinal' | 'isNew'>,
): number | undefined {
  const body = frame.body(row);
  if (frame.kind(row) === rowKind.partPut) return file.putPart(document, body, frame.crc(row));
  return document.isNew ? undefined : file.removePart(document.ordinal, partIdOfBody(body));
}

/** As `storePart`, and appends the image. Edges become the list that the document has with them. */
export function storePartWithImage(
  { file, images, lists }: { file: RangeWriter; images: FrameBuilder; lists: EdgeLists },
  frame: DocumentFrame,
  row: number,
  document: Pick<RowPlace, 'ordinal' | 'isNew'>,
): void {
  const body = frame.body(row);
  if (frame.kind(row) === rowKind.partPut && isEdgeList(body)) {
    const list = lists.merged(frame, row, document.isNew ? undefined : document.ordinal);
    storeList({ file, images }, frame.keyBytes(row), document, partIdOfBody(body), list);
    return;
  }
  const sequence = storePart(file, frame, row, document);
  if (sequence === undefined) return;
  const image = images.appendRow(frame, row);
  images.setOrdinal(image, document.ordinal);
  images.setSequence(image, sequence);
}

/** Writes the list of edges of a document, or removes it, and appends the image. */
export function storeList(
  { file, images }: { file: RangeWriter; images: FrameBuilder },
  key: Uint8Array,
  document: Pick<RowPlace, 'ordinal' | 'isNew'>,
  partId: number,
  list: Uint8Array<ArrayBuffer> | undefined,
): void {
  const body = list ?? partDeleteBody(partId);
  const crc = Bun.hash.crc32(body);
  const removed = () => (document.isNew ? undefined : file.removePart(document.ordinal, partId));
  const sequence = list ? file.putPart(document, list, crc) : removed();
  if (sequence === undefined) return;
  const image = images.append(list ? rowKind.partPut : rowKind.partDelete, key, body, crc);
  images.setOrdinal(image, document.ordinal);
  images.setSequence(image, sequence);
}

/** Deletes a document and appends its image. */
export function removeWithImage(file: RangeWriter, images: FrameBuilder, key: Uint8Array, held: RowHead): void {
  appendTombstone(images, key, held.ordinal, file.remove(held));
}

export function appendTombstone(images: FrameBuilder, key: Uint8Array, ordinal: number, sequence: number): void {
  const row = images.append(rowKind.delete, key, noBytes, noBytesCrc);
  images.setOrdinal(row, ordinal);
  images.setSequence(row, sequence);
}
