import { must } from '../../lib/assert.ts';
import { type DocumentFrame, FrameBuilder, rowKind } from '../../lib/document-frame.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { versionOf } from '../range/range-snapshot.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { RowHead, RowPlace, StoredRow } from '../range/stored-rows.ts';
import {
  type PostImages,
  type RangeWrite,
  type ReadAssertion,
  type WriteCounts,
  zeroCounts,
} from '../write-request.ts';
import { EdgeLists, isEdgeList, isWholeList } from './edge-lists.ts';
import { type EvaluationContext, isExpired, partsMayOutlive } from './evaluation-context.ts';
import { frameOf } from './frame-ttl-bases.ts';
import { evaluateMerge } from './merge-evaluation.ts';
import { restoreRows } from './restore-rows.ts';
import {
  documentOfRow,
  fillPlace,
  putWithImage,
  removeWithImage,
  storeList,
  storePart,
  storePartWithImage,
} from './row-writes.ts';
import { transformDocument, ttlBaseOf } from './transform-document.ts';

export interface Evaluation {
  counts: WriteCounts;
  images: PostImages | undefined;
}

const encoder = new TextEncoder();

/** Fails with `transaction_conflict` unless the document still has the version that was read. */
export function checkReadAssertion(file: RangeWriter, assertion: ReadAssertion, context: EvaluationContext): void {
  const row = file.find(encoder.encode(assertion.key));
  const version = row && !isExpired(row, context) ? versionOf(file, row.sequence) : 0;
  const isSame = ([partId, sequence]: readonly [number, number]) =>
    (row && file.loadPart(row.ordinal, partId)?.sequence) === (sequence || undefined);
  if (version === assertion.version && (assertion.parts ?? []).every(isSame)) return;
  throw changedSinceRead(assertion, version);
}

/** The document has this version now, not the one that was read. */
export function changedSinceRead({ key, table, version }: ReadAssertion, current: number): ServiceError {
  return new ServiceError('transaction_conflict', `the document "${key}" has changed since it was read`, {
    details: {
      key,
      ...(table === undefined ? {} : { table }),
      expected_version: String(version),
      current_version: String(current),
    },
  });
}

/** Evaluates and writes one request's rows inside the range's open transaction. */
export function evaluateWrite(file: RangeWriter, write: RangeWrite, context: EvaluationContext): Evaluation {
  const counts = zeroCounts();
  const firstSequence = file.state.nextSequence;
  const frame = imagesOf(file, write, context, counts);
  if (frame === undefined) return { counts, images: undefined };
  return { counts, images: { frame, firstSequence, lastSequence: file.state.nextSequence - 1 } };
}

function imagesOf(file: RangeWriter, write: RangeWrite, context: EvaluationContext, counts: WriteCounts) {
  if (write.merge) return evaluateMerge(file, write, context, counts);
  if (write.keepsOrdinals) return restoreRows(file, write, counts);
  return evaluateRows(file, write, context, counts);
}

/** The rows of one request on their way into a range. */
interface RowWork {
  file: RangeWriter;
  write: RangeWrite;
  context: EvaluationContext;
  counts: WriteCounts;
  /** Place of the last document put or transformed: the part rows behind it are its own. */
  document: RowPlace | undefined;
  lists: EdgeLists;
}

function evaluateRows(
  file: RangeWriter,
  write: RangeWrite,
  context: EvaluationContext,
  counts: WriteCounts,
): Uint8Array<ArrayBuffer> | undefined {
  const frame = write.frame === undefined ? undefined : frameOf(write, write.frame, context);
  const lists = new EdgeLists(file, write.graphs, context.timeMs);
  const work: RowWork = { file, write, context, counts, document: undefined, lists };
  // Puts, and deletes of what is there, are filled in place; another row makes a new frame necessary.
  const filled = frame ? fillInPlace(work, frame) : 0;
  if (frame && filled === frame.rowCount && !write.deleteIf && !write.edgeUpkeep)
    return filled === 0 ? undefined : frame.bytes;
  const images = new FrameBuilder(frame?.rowCount, frame?.bytes.byteLength);
  for (let row = 0; frame && row < filled; row += 1) images.appendRow(frame, row);
  for (let row = filled; frame && row < frame.rowCount; row += 1) evaluateRow(work, images, frame, row);
  for (const { key, sequence } of write.deleteIf ?? []) {
    const keyBytes = encoder.encode(key);
    const held = file.find(keyBytes);
    if (held?.sequence !== sequence || !isExpired(held, context)) counts.skipped += 1;
    else {
      counts.deleted += 1;
      removeWithImage(file, images, keyBytes, held);
    }
  }
  sweepEdges(work, images);
  return images.rowCount === 0 ? undefined : images.finish();
}

function sweepEdges({ file, write, counts, lists }: RowWork, images: FrameBuilder): void {
  for (const upkeep of write.edgeUpkeep ?? []) {
    for (const name of upkeep.keys) {
      const key = encoder.encode(name);
      const held = file.find(key);
      const list = held && lists.swept(upkeep, held.ordinal);
      if (!held || list === 'same') {
        counts.skipped += 1;
        continue;
      }
      storeList({ file, images }, key, { ordinal: held.ordinal, isNew: false }, upkeep.partId, list);
    }
  }
}

/** Writes rows up to the first that has no image of its own shape; returns how many. */
function fillInPlace(work: RowWork, frame: DocumentFrame): number {
  const { file, context, counts } = work;
  const mayInherit = partsMayOutlive(file.state, context);
  for (let row = 0; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    if (kind === rowKind.put) {
      const held = mayInherit ? (file.find(frame.keyBytes(row)) ?? null) : undefined;
      if (held && isExpired(held, context)) return row;
      const place = file.put(documentOfRow(frame, row), held);
      fillPlace(frame, row, place);
      work.document = place;
      if (place.isNew) counts.inserted += 1;
      else counts.updated += 1;
    } else if (kind === rowKind.delete) {
      const held = file.find(frame.keyBytes(row));
      if (!held) return row;
      fillPlace(frame, row, { ordinal: held.ordinal, sequence: file.remove(held), isNew: false });
      countDeleted(work, held);
    } else if (kind === rowKind.transform) return row;
    else if (kind === rowKind.state) file.setNote(frame.keyBytes(row), frame.body(row));
    else {
      const document = documentOf(work, frame, row);
      const body = frame.body(row);
      if (kind === rowKind.partPut && isEdgeList(body) && !(document?.isNew && isWholeList(body))) return row;
      const sequence = document && storePart(file, frame, row, document);
      if (!document || sequence === undefined) return row;
      fillPlace(frame, row, { ordinal: document.ordinal, sequence, isNew: false });
    }
  }
  return frame.rowCount;
}

function evaluateRow(work: RowWork, images: FrameBuilder, frame: DocumentFrame, row: number): void {
  const { file, write, context, counts } = work;
  const key = frame.keyBytes(row);
  const kind = frame.kind(row);
  if (kind === rowKind.put) {
    const previous = partsMayOutlive(file.state, context) ? toReplace(work, images, key, file.find(key)) : undefined;
    work.document = putWithImage(file, images, documentOfRow(frame, row), previous);
    if (work.document.isNew) counts.inserted += 1;
    else counts.updated += 1;
  } else if (kind === rowKind.delete) {
    const held = file.find(key);
    if (!held) return;
    countDeleted(work, held);
    removeWithImage(file, images, key, held);
  } else if (kind === rowKind.transform) {
    const held = file.load(key);
    if (write.ttlBasesOnly) {
      rewriteTtlBase(work, images, frame.key(row), held);
      return;
    }
    const live = held && !isExpired(held, context) ? held : undefined;
    const result = transformDocument(live, frame.body(row), {
      ...context,
      rangeId: file.rangeId,
      key: frame.key(row),
      ttlField: context.ttlField ?? write.ttlField,
    });
    work.document = undefined;
    if (!result) return;
    if (result === 'unfit') {
      counts.failed += 1;
      return;
    }
    counts.transformed += 1;
    const place = putWithImage(file, images, { key, ...result }, toReplace(work, images, key, held));
    work.document = place;
    for (const [partId, list] of work.lists.afterTransform(live, result.body, frame.key(row))) {
      storeList({ file, images }, key, place, partId, list);
    }
  } else if (kind === rowKind.state) {
    file.setNote(key, frame.body(row));
    images.appendRow(frame, row);
  } else {
    const document = documentOf(work, frame, row);
    if (document) storePartWithImage({ file, images, lists: work.lists }, frame, row, document);
    else counts.skipped += 1;
  }
}

/** Stores the document as it is with its new TTL base; nothing when the base has not changed. */
function rewriteTtlBase(work: RowWork, images: FrameBuilder, name: string, held: StoredRow | undefined): void {
  const { file, write, context, counts } = work;
  if (!held) return;
  const ttlBaseMs = ttlBaseOf(held, { ...context, rangeId: file.rangeId, key: name, ttlField: write.ttlField });
  if (ttlBaseMs === held.ttlBaseMs) {
    counts.skipped += 1;
    return;
  }
  counts.updated += 1;
  const { body, crc, writtenMs } = held;
  putWithImage(file, images, { key: encoder.encode(name), body, crc, writtenMs, ttlBaseMs }, held);
}

/** To its caller an expired document was not there. */
function countDeleted({ counts, context }: RowWork, held: RowHead): void {
  if (!isExpired(held, context)) counts.deleted += 1;
}

/**
 * The document of a part row: the one put or transformed before it, or the stored one that has the sequence that the
 * row requires; undefined when that has changed, expired or gone.
 */
function documentOf(work: RowWork, frame: DocumentFrame, row: number): Pick<RowPlace, 'ordinal' | 'isNew'> | undefined {
  const sequence = frame.requiredSequence(row);
  if (sequence === 0) return must(work.document, 'a part row without the document that it belongs to');
  const held = work.file.find(frame.keyBytes(row));
  if (held?.sequence !== sequence || isExpired(held, work.context)) return undefined;
  return { ordinal: held.ordinal, isNew: false };
}

/** The row that a put replaces: an expired document with its parts is deleted first, so that its successor begins without. */
function toReplace(work: RowWork, images: FrameBuilder, key: Uint8Array, held: RowHead | undefined): RowHead | null {
  const { file, context } = work;
  if (!held || !partsMayOutlive(file.state, context) || !isExpired(held, context)) return held ?? null;
  removeWithImage(file, images, key, held);
  return null;
}
