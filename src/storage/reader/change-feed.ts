import type { Database, Statement } from 'bun:sqlite';
import { FrameBuilder, type RowKind, rowKind } from '../../lib/document-frame.ts';
import { vectorDeleteBody } from '../../lib/vector-body.ts';
import { appendTombstone } from '../evaluation/row-writes.ts';
import { type ReadSource, reading } from '../storage-error.ts';
import type { PostImages } from '../write-request.ts';

/**
 * Bounds of a page: rows, and bytes after which no further row is added. A page is read in one go on the main thread,
 * so it has to fit well into the 20 ms for which that may be held.
 */
const pageRowsMax = 1_024;
const pageBytesMax = 1_024 * 1_024;

interface Change {
  sequence: number;
  ordinal: number;
  deleted: number;
  /** Of a vector's change; null for a document's. */
  indexId: number | null;
  key: Uint8Array | null;
  /** Sequence, checksum and body of what is stored now. */
  storedSequence: number | null;
  crc: number | null;
  body: Uint8Array | null;
  /** Of documents only. */
  ttlBaseMs?: number | null;
  writtenMs?: number | null;
}

/** Post-images read back, and the documents among them that are damaged. */
interface FeedPage extends PostImages {
  damaged: { key: string; reason: string }[];
}

const noBytes = new Uint8Array(0);

/**
 * The changes of one range in sequence order, as far as they are still true: a change that a later one superseded
 * does not appear, and tombstones carry no key. What has been purged is older than every index's checkpoint.
 */
export class ChangeFeed {
  readonly #documents: Statement;
  readonly #vectors: Statement;
  readonly #source: ReadSource;

  constructor(database: Database, source: ReadSource) {
    this.#source = source;
    const changes = 'SELECT c.sequence, c.ordinal, c.deleted, c.part_id AS indexId, d.key';
    this.#documents = database.prepare(
      `${changes}, d.sequence AS storedSequence, d.ttl_base_ms AS ttlBaseMs, d.written_ms AS writtenMs, d.crc, ` +
        'd.body FROM changes c ' +
        'LEFT JOIN documents d ON d.ordinal = c.ordinal AND c.deleted = 0 AND c.part_id IS NULL ' +
        'WHERE c.sequence > ? ORDER BY c.sequence',
    );
    this.#vectors = database.prepare(
      `${changes}, v.sequence AS storedSequence, v.crc, v.body FROM changes c ` +
        'LEFT JOIN parts v ON v.id = c.part_id * 4294967296 + c.ordinal AND c.deleted = 0 AND c.part_id = ?1 ' +
        'LEFT JOIN documents d ON d.ordinal = c.ordinal AND c.deleted = 0 AND c.part_id = ?1 ' +
        'WHERE c.sequence > ?2 ORDER BY c.sequence',
    );
  }

  /**
   * The next page after `afterSequence`, or undefined when there is nothing after it: documents, or with an `indexId` the
   * vectors of that embeddings index and the tombstones of documents. A page that covers nothing of these has an empty
   * frame; `lastSequence` says how far it reaches. What does not match its checksum appears as deleted and is named, so
   * that one damaged row does not keep all others from an index.
   */
  read(afterSequence: number, indexId?: number): FeedPage | undefined {
    const page = reading(this.#source, () =>
      indexId === undefined
        ? readPage(this.#documents.iterate(afterSequence), appendDocumentChange)
        : readPage(this.#vectors.iterate(indexId, afterSequence), (page, change) =>
            appendVectorChange(page, change, indexId),
          ),
    );
    for (const { key } of page?.damaged ?? []) this.#source.documentDamaged?.(key);
    return page;
  }

  close(): void {
    this.#documents.finalize();
    this.#vectors.finalize();
  }
}

/** `append` answers what is wrong with the stored row, if anything is. */
function readPage(
  changes: Iterable<unknown>,
  append: (page: FrameBuilder, change: Change) => string | undefined,
): FeedPage | undefined {
  const page = new FrameBuilder(256, 256 * 1_024);
  const damaged: FeedPage['damaged'] = [];
  let firstSequence = 0;
  let lastSequence = 0;
  let seen = 0;
  for (const found of changes) {
    const change = found as Change;
    if (seen === 0) firstSequence = change.sequence;
    else if (page.rowCount >= pageRowsMax || seen >= 4 * pageRowsMax || page.byteLength >= pageBytesMax) break;
    lastSequence = change.sequence;
    seen += 1;
    const reason = append(page, change);
    if (reason === undefined) continue;
    const key = change.key === null ? `(ordinal ${change.ordinal})` : Buffer.from(change.key).toString();
    damaged.push({ key, reason });
  }
  return seen === 0 ? undefined : { frame: page.finish(), firstSequence, lastSequence, damaged };
}

function appendDocumentChange(page: FrameBuilder, change: Change): string | undefined {
  if (change.indexId !== null) return undefined;
  if (change.deleted === 1) appendTombstone(page, noBytes, change.ordinal, change.sequence);
  else if (change.storedSequence === change.sequence && !appendStored(page, rowKind.put, change)) {
    appendTombstone(page, noBytes, change.ordinal, change.sequence);
    return 'the stored document does not match its checksum';
  }
  return undefined;
}

function appendVectorChange(page: FrameBuilder, change: Change, indexId: number): string | undefined {
  if (change.indexId === null) {
    if (change.deleted === 1) appendTombstone(page, noBytes, change.ordinal, change.sequence);
    return undefined;
  }
  if (change.indexId !== indexId) return undefined;
  if (change.deleted === 1) appendVectorDelete(page, change);
  else if (change.storedSequence === change.sequence && !appendStored(page, rowKind.vectorPut, change)) {
    appendVectorDelete(page, change);
    return 'the stored vector does not match its checksum';
  }
  return undefined;
}

/** False, and nothing appended, when the row is damaged. */
function appendStored(page: FrameBuilder, kind: RowKind, change: Change): boolean {
  const { key, body, crc } = change;
  if (key === null || body === null || crc === null || Bun.hash.crc32(body) !== crc) return false;
  const row = page.append(kind, key, body, crc);
  page.setOrdinal(row, change.ordinal);
  page.setSequence(row, change.sequence);
  page.setTtlBaseMs(row, change.ttlBaseMs ?? 0);
  page.setWrittenMs(row, change.writtenMs ?? 0);
  return true;
}

function appendVectorDelete(page: FrameBuilder, { indexId, ordinal, sequence }: Change): void {
  const row = page.append(rowKind.vectorDelete, noBytes, vectorDeleteBody(indexId ?? 0));
  page.setOrdinal(row, ordinal);
  page.setSequence(row, sequence);
}
