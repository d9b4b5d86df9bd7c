import { must } from '../../lib/assert.ts';
import { type DocumentFrame, FrameBuilder, type RowKind, rowKind } from '../../lib/document-frame.ts';
import { hasOrdinal } from '../../lib/ordinal-bits.ts';
import { isPartDelete, partIdOfBody } from '../../lib/parts/part-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { KeyedRow } from '../range/stored-rows.ts';
import { deletedIdsMax, type MergeWindow, type RangeWrite, type WriteCounts } from '../write-request.ts';
import { EdgeLists, isEdgeList } from './edge-lists.ts';
import { type EvaluationContext, isExpired, partsMayOutlive } from './evaluation-context.ts';
import { frameOf } from './frame-ttl-bases.ts';
import { documentOfRow, putWithImage, removeWithImage, storePartWithImage } from './row-writes.ts';
import { jsonEquals } from './transforms.ts';

/** Stored rows are compared in pages of this many. */
const pageRows = 256;

const encoder = new TextEncoder();
/** No UTF-8 has this byte. */
const behindAllKeys = Uint8Array.of(0xff);
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Makes the keys in (`afterKey`, `toKey`], null for the end, equal to the frame's puts: new and changed documents are
 * written, equal ones left alone, absent ones deleted. Of an equal document only the parts that differ are written.
 * Counts in a dry run say what would be deleted and skipped; nothing is written.
 */
export function evaluateMerge(
  file: RangeWriter,
  write: RangeWrite,
  context: EvaluationContext,
  counts: WriteCounts,
): Uint8Array<ArrayBuffer> | undefined {
  const window = must(write.merge, 'a merge without its window');
  const frame = write.frame ? frameOf(write, write.frame, context) : undefined;
  const missing = new Map<string, number>();
  for (let row = 0; frame && row < frame.rowCount; row += 1) {
    if (frame.kind(row) === rowKind.put) missing.set(frame.key(row), row);
  }
  const images = new FrameBuilder();
  const lists = new EdgeLists(file, write.graphs, context.timeMs);
  const stored = { file, images, lists };

  const upsert = (row: number, held: KeyedRow | null) => {
    if (window.dryRun || !frame) return;
    counts.upserted += 1;
    const expired = held !== null && partsMayOutlive(file.state, context) && isExpired(held, context);
    // Its parts must not pass to its successor.
    if (expired) removeWithImage(file, images, held.key, held);
    const place = putWithImage(file, images, documentOfRow(frame, row), expired ? null : held);
    for (const part of partsOf(frame, row)) storePartWithImage(stored, frame, part, place);
  };
  const upsertParts = (rows: number[], { ordinal }: KeyedRow) => {
    if (window.dryRun || !frame) return;
    counts.upserted += 1;
    for (const row of rows) storePartWithImage(stored, frame, row, { ordinal, isNew: false });
  };
  const visit = (held: KeyedRow) => {
    const key = decoder.decode(held.key);
    const row = missing.get(key);
    const isGone = isExpired(held, context);
    if (!isGone && isThere(held, key, window)) counts.keysScanned += 1;
    else if (row === undefined) return;
    else if (!isGone) throw lookedAtBefore(key);
    if (!frame || row === undefined) {
      counts.deleted += 1;
      if (!window.dryRun) removeWithImage(file, images, held.key, held);
      else if (counts.deletedIds.length < deletedIdsMax) counts.deletedIds.push(key);
      return;
    }
    missing.delete(key);
    // A body that does not match its checksum is replaced, whatever it seems to say.
    const isIntact = Bun.hash.crc32(held.body) === held.crc;
    const isKept = isIntact && !isGone && documentsEqual(held.body, frame.body(row));
    if (!isKept) return upsert(row, held);
    const changed = partsOf(frame, row).filter((part) => !partEquals(stored, held.ordinal, frame, part));
    if (changed.length === 0) counts.skipped += 1;
    else upsertParts(changed, held);
  };

  if (window.permitted?.withParts && file.state.nextSequence - 1 > window.permitted.throughSequence)
    throw lookedAtBefore();
  let after: Uint8Array = encoder.encode(window.afterKey);
  const to = window.toKey === null ? behindAllKeys : encoder.encode(window.toKey);
  for (;;) {
    const page = file.window(after, to, pageRows);
    for (const held of page) visit(held);
    if (page.length < pageRows) break;
    after = must(page[page.length - 1], 'a full page without a last row').key;
  }
  for (const row of missing.values()) upsert(row, null);
  return images.rowCount === 0 ? undefined : images.finish();
}

/** Whether the row is there for whoever merges. Fails with `transaction_conflict` where it has changed since it was looked at. */
function isThere(held: KeyedRow, key: string, { permitted }: MergeWindow): boolean {
  if (!permitted) return true;
  if (held.sequence > permitted.throughSequence) throw lookedAtBefore(key);
  return hasOrdinal(permitted.ordinals, held.ordinal);
}

function lookedAtBefore(key = ''): ServiceError {
  const message = 'documents between the keys of the merge have changed meanwhile; send it again';
  return new ServiceError('transaction_conflict', message, { details: { key } });
}

/** The part rows that lie behind a put. */
function partsOf(frame: DocumentFrame, put: number): number[] {
  const rows: number[] = [];
  for (let row = put + 1; row < frame.rowCount && isPart(frame.kind(row)); row += 1) rows.push(row);
  return rows;
}

function isPart(kind: RowKind): boolean {
  return kind === rowKind.partPut || kind === rowKind.partDelete;
}

/** Whether the stored part is what this row's body says. */
function partEquals(
  { file, lists }: { file: RangeWriter; lists: EdgeLists },
  ordinal: number,
  frame: DocumentFrame,
  row: number,
): boolean {
  const wanted = frame.body(row);
  const held = file.loadPart(ordinal, partIdOfBody(wanted))?.body;
  if (isPartDelete(wanted)) return held === undefined;
  if (isEdgeList(wanted)) return lists.equals(frame, row, ordinal);
  return held !== undefined && Buffer.compare(held, wanted) === 0;
}

/** Equality of two bodies, the time at which the server saw them left aside. */
function documentsEqual(left: Uint8Array, right: Uint8Array): boolean {
  if (Buffer.compare(left, right) === 0) return true;
  return jsonEquals(withoutTimestamp(left), withoutTimestamp(right));
}

function withoutTimestamp(body: Uint8Array): unknown {
  const document = JSON.parse(decoder.decode(body)) as Record<string, unknown>;
  delete document._timestamp;
  return document;
}
