import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { type DocumentFrame, rowKind } from '../../lib/document-frame.ts';
import { hasExpired } from '../../lib/ttl.ts';
import { documentOfRow } from '../../storage/evaluation/row-writes.ts';
import { type TransformedDocument, transformDocument } from '../../storage/evaluation/transform-document.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';
import type { ReadAssertion } from '../../storage/write-request.ts';
import type { Table } from '../table.ts';

/** The results of a frame's transforms on the documents that are stored now. */
interface ForeseenTransforms {
  /**
   * Row of the transform -> the document behind it; undefined for a row that a later one of its document follows.
   * Transforms that come to nothing are left out.
   */
  readonly documents: ReadonlyMap<number, TransformedDocument | undefined>;
  /** The documents that they were applied to: it comes true while these are what is stored. */
  readonly read: readonly ReadAssertion[];
}

/** Bytes of documents and operations that are worked on before others get a turn. */
const turnBytes = 256 * 1_024;

/** The cost of a row beside its bytes. */
const rowBytes = 256;

/**
 * Applies the transforms of a frame, or those of some of its documents, as the writer will at this time, and writes nothing.
 * `rows`: in their order, all rows of each document. Fails as the writer does.
 */
export async function foreseeTransforms(
  frame: DocumentFrame,
  stored: RangeReader,
  table: Table,
  at: { readonly timeMs: number; readonly timestamp: string },
  rows: Iterable<number> = Array(frame.rowCount).keys(),
): Promise<ForeseenTransforms> {
  const documents = new Map<number, TransformedDocument | undefined>();
  const read: ReadAssertion[] = [];
  const bound = table.expiredAtOrBeforeMs(at.timeMs);
  const { rangeId } = stored;
  const context = { ...at, rangeId, ttlField: table.ttlField };
  /** By key, as the rows so far leave them. */
  const current = new Map<string, { readonly row: number; readonly document: TransformedDocument | undefined }>();
  let turn = 0;
  for (const row of rows) {
    if (turn >= turnBytes) {
      await yieldToEventLoop();
      turn = 0;
    }
    turn += rowBytes;
    const kind = frame.kind(row);
    const key = frame.key(row);
    if (kind === rowKind.put) current.set(key, { row, document: documentOfRow(frame, row) });
    else if (kind === rowKind.delete) current.set(key, { row, document: undefined });
    if (kind !== rowKind.transform) continue;
    if (!current.has(key)) {
      const document = stored.documents.get(key);
      const live = document && !hasExpired(document.ttlBaseMs, bound) ? document : undefined;
      current.set(key, { row, document: live && asHeld(live) });
      read.push({ rangeId, key, version: live ? stored.versionOf(live) : 0, table: table.name });
    }
    const before = current.get(key);
    const held = before?.document;
    turn += frame.body(row).byteLength + (held?.body.byteLength ?? 0);
    const isLive = held && !hasExpired(held.ttlBaseMs || undefined, bound);
    const document = transformDocument(isLive ? held : undefined, frame.body(row), { ...context, key });
    if (document === undefined || document === 'unfit') continue;
    if (before) documents.set(before.row, undefined);
    documents.set(row, document);
    current.set(key, { row, document });
  }
  return { documents, read };
}

/** The reader has compared the checksum of what it has found. */
function asHeld({ body, ttlBaseMs = 0, writtenMs = 0 }: StoredDocument): TransformedDocument {
  return { body, ttlBaseMs, writtenMs, crc: Bun.hash.crc32(body) };
}
