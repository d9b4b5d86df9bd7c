import { type DocumentFrame, rowKind } from '../../lib/document-frame.ts';
import { hasExpired } from '../../lib/ttl.ts';
import { transformBody } from '../../storage/evaluation/transform-document.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';
import type { ReadAssertion } from '../../storage/write-request.ts';
import type { Table } from '../table.ts';

/** The results of a frame's transforms on the documents that are stored now. */
interface ForeseenTransforms {
  /**
   * Row of the transform -> the document's body behind it; undefined for a row that a later one of its document follows.
   * Transforms that come to nothing are left out.
   */
  readonly bodies: ReadonlyMap<number, Uint8Array | undefined>;
  /** The documents that they were applied to: it comes true while these are what is stored. */
  readonly read: readonly ReadAssertion[];
}

/** Applies the transforms of a frame as the writer will at this time, and writes nothing. Fails as the writer does. */
export function foreseeTransforms(
  frame: DocumentFrame,
  stored: RangeReader,
  table: Table,
  at: { readonly timeMs: number; readonly timestamp: string },
): ForeseenTransforms {
  const bodies = new Map<number, Uint8Array | undefined>();
  const read: ReadAssertion[] = [];
  const bound = table.expiredAtOrBeforeMs(at.timeMs);
  /** By key, as the rows so far leave them. */
  const current = new Map<string, { readonly row: number; readonly body: Uint8Array | undefined }>();
  for (let row = 0; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    const key = frame.key(row);
    if (kind === rowKind.put) current.set(key, { row, body: frame.body(row) });
    else if (kind === rowKind.delete) current.set(key, { row, body: undefined });
    if (kind !== rowKind.transform) continue;
    if (!current.has(key)) {
      const document = stored.documents.get(key);
      const live = document && !hasExpired(document.ttlBaseMs, bound) ? document : undefined;
      current.set(key, { row, body: live?.body });
      read.push({ rangeId: stored.rangeId, key, version: live ? stored.versionOf(live) : 0, table: table.name });
    }
    const before = current.get(key);
    const transformed = transformBody(before?.body, frame.body(row), { key, timestamp: at.timestamp });
    if (transformed === undefined || transformed === 'unfit') continue;
    if (before) bodies.set(before.row, undefined);
    bodies.set(row, transformed.body);
    current.set(key, { row, body: transformed.body });
  }
  return { bodies, read };
}
