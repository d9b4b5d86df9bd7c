import { type DocumentFrame, FrameBuilder, readFrame, rowKind } from '../lib/document-frame.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { type PostImages, type RangeWrite, type ReadAssertion, type WriteCounts, zeroCounts } from './entry-group.ts';
import type { EvaluationContext } from './evaluation-context.ts';
import { hasExpired } from './evaluation-context.ts';
import { evaluateMerge } from './merge-evaluation.ts';
import { fillPlace, putWithImage, removeWithImage } from './post-image.ts';
import type { RangeFile } from './range-file.ts';
import { transformDocument } from './transform-document.ts';

export interface Evaluation {
  counts: WriteCounts;
  images: PostImages | undefined;
}

const encoder = new TextEncoder();

/** Fails with `transaction_conflict` unless the document still has the version that was read. */
export function checkReadAssertion(file: RangeFile, assertion: ReadAssertion, context: EvaluationContext): void {
  const { key, table } = assertion;
  const row = file.find(encoder.encode(key));
  const version = row && !hasExpired(row, context) ? row.sequence : 0;
  if (version === assertion.version) return;
  throw new ServiceError('transaction_conflict', `the document "${key}" has changed since it was read`, {
    details: { key, ...(table === undefined ? {} : { table }) },
  });
}

/** Evaluates and writes one request's rows inside the range's open transaction. */
export function evaluateWrite(file: RangeFile, write: RangeWrite, context: EvaluationContext): Evaluation {
  const counts = zeroCounts();
  const firstSequence = file.state.nextSequence;
  const frame = write.merge ? evaluateMerge(file, write, context, counts) : evaluateRows(file, write, context, counts);
  const lastSequence = file.state.nextSequence - 1;
  if (lastSequence < firstSequence || frame === undefined) return { counts, images: undefined };
  return { counts, images: { frame, firstSequence, lastSequence } };
}

function evaluateRows(
  file: RangeFile,
  write: RangeWrite,
  context: EvaluationContext,
  counts: WriteCounts,
): Uint8Array<ArrayBuffer> | undefined {
  const frame = write.frame === undefined ? undefined : readFrame(write.frame);
  // Puts, and deletes of what is there, are filled in place; another row makes a new frame necessary.
  const filled = frame ? fillInPlace(file, frame, counts) : 0;
  if (frame && filled === frame.rowCount && !write.deleteIf) return filled === 0 ? undefined : frame.bytes;
  const images = new FrameBuilder(frame?.rowCount, frame?.bytes.byteLength);
  for (let row = 0; frame && row < filled; row += 1) images.appendRow(frame, row);
  for (let row = filled; frame && row < frame.rowCount; row += 1) {
    evaluateRow(file, images, frame, row, write, context, counts);
  }
  for (const { key, sequence } of write.deleteIf ?? []) {
    const keyBytes = encoder.encode(key);
    const held = file.find(keyBytes);
    if (held?.sequence !== sequence) counts.skipped += 1;
    else {
      counts.deleted += 1;
      removeWithImage(file, images, keyBytes, held);
    }
  }
  return images.rowCount === 0 ? undefined : images.finish();
}

/** Writes rows up to the first that has no image of its own shape; returns how many. */
function fillInPlace(file: RangeFile, frame: DocumentFrame, counts: WriteCounts): number {
  for (let row = 0; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    if (kind === rowKind.put) {
      const place = file.put(frame.keyBytes(row), frame.body(row), frame.ttlBaseMs(row), frame.crc(row));
      fillPlace(frame, row, place);
      if (place.isNew) counts.inserted += 1;
      else counts.updated += 1;
    } else if (kind === rowKind.delete) {
      const held = file.find(frame.keyBytes(row));
      if (!held) return row;
      fillPlace(frame, row, { ordinal: held.ordinal, sequence: file.remove(held), isNew: false });
      counts.deleted += 1;
    } else return row;
  }
  return frame.rowCount;
}

function evaluateRow(
  file: RangeFile,
  images: FrameBuilder,
  frame: DocumentFrame,
  row: number,
  write: RangeWrite,
  context: EvaluationContext,
  counts: WriteCounts,
): void {
  const key = frame.keyBytes(row);
  const kind = frame.kind(row);
  if (kind === rowKind.put) {
    const document = { key, body: frame.body(row), ttlBaseMs: frame.ttlBaseMs(row), crc: frame.crc(row) };
    if (putWithImage(file, images, document).isNew) counts.inserted += 1;
    else counts.updated += 1;
  } else if (kind === rowKind.delete) {
    const held = file.find(key);
    if (!held) return;
    counts.deleted += 1;
    removeWithImage(file, images, key, held);
  } else {
    const held = file.load(key);
    const live = held && !hasExpired(held, context) ? held : undefined;
    const result = transformDocument(live, frame.body(row), {
      ...context,
      key: frame.key(row),
      ttlField: write.ttlField,
    });
    if (!result) return;
    counts.transformed += 1;
    putWithImage(file, images, { key, ...result }, held ?? null);
  }
}
