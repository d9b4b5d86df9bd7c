import type { Database, Statement } from 'bun:sqlite';
import { FrameBuilder, type RowKind, rowIsAgain, rowKind } from '../../lib/document-frame.ts';
import { partDeleteBody } from '../../lib/parts/part-body.ts';
import { appendTombstone } from '../evaluation/row-writes.ts';
import type { StoredBodies } from '../packing/stored-bodies.ts';
import { deletionsForgottenThrough } from '../range/change-purge.ts';
import { partRowId } from '../range/part-rows.ts';
import { type ReadSource, reading } from '../storage-error.ts';
import type { FeedPage } from '../write-request.ts';

/**
 * Bounds of a page: rows, and bytes after which no further row is added. A page is read in one go on the main thread,
 * so it has to fit well into the 20 ms for which that may be held.
 */
const pageRowsMax = 1_024;
const pageBytesMax = 1_024 * 1_024;

/**
 * The changes that a reader of the feed asks for, beside the tombstones of documents, which everybody gets: documents, or
 * these parts, or documents joined with these parts. Joined, a document comes with all of these parts that it has, also
 * when only one of them has changed: then the document has its own sequence and the flag `rowIsAgain`.
 */
export interface FeedRows {
  documents?: boolean;
  parts?: readonly number[];
}

interface Change {
  sequence: number;
  ordinal: number;
  deleted: number;
  /** Of a part's change; null for a document's. */
  partId: number | null;
}

/** A document or a part as it is stored now. */
interface StoredRow {
  sequence: number;
  crc: number;
  body: Uint8Array<ArrayBuffer>;
}

interface DocumentRow extends StoredRow {
  key: Uint8Array;
  ttlBaseMs: number | null;
  writtenMs: number | null;
  rawBytes: number | null;
}

const noBytes = new Uint8Array(0);
const everything: FeedRows = { documents: true };

/**
 * The changes of one range in sequence order, as far as they are still true: a change that a later one superseded
 * does not appear, and tombstones carry no key. What has been purged is older than every index's checkpoint.
 */
export class ChangeFeed {
  readonly #changes: Statement;
  readonly #document: Statement;
  readonly #part: Statement;
  readonly #key: Statement;
  readonly #last: Statement;
  readonly #source: ReadSource;
  readonly #database: Database;
  readonly #bodies: StoredBodies;

  constructor(database: Database, bodies: StoredBodies, source: ReadSource) {
    this.#bodies = bodies;
    this.#source = source;
    this.#database = database;
    this.#changes = database.prepare(
      'SELECT sequence, ordinal, deleted, part_id AS partId FROM changes WHERE sequence > ? ORDER BY sequence',
    );
    this.#document = database.prepare(
      'SELECT sequence, key, crc, raw_bytes AS rawBytes, body, ttl_base_ms AS ttlBaseMs, written_ms AS writtenMs ' +
        'FROM documents WHERE ordinal = ?',
    );
    // Two statements, because a join of the two takes five times as long.
    this.#part = database.prepare('SELECT sequence, crc, body FROM parts WHERE id = ?');
    this.#key = database.prepare('SELECT key FROM documents WHERE ordinal = ?');
    this.#last = database.prepare('SELECT coalesce(max(sequence), 0) AS sequence FROM changes');
  }

  /**
   * The next page after `afterSequence`, or undefined when there is nothing after it. A page that covers nothing of what is
   * wanted has an empty frame; `lastSequence` says how far it reaches. What does not match its checksum appears as deleted
   * and is named, so that one damaged row does not keep all others from an index. `through` is the last sequence that is
   * looked at.
   */
  read(
    afterSequence: number,
    rows: FeedRows = everything,
    through: number = Number.MAX_SAFE_INTEGER,
  ): FeedPage | undefined {
    const page = reading(this.#source, () => this.#page(afterSequence, rows, through));
    for (const { key } of page?.damaged ?? []) this.#source.documentDamaged?.(key);
    return page;
  }

  /** The last one that is committed and still there; 0 where there is none. */
  lastSequence(): number {
    return reading(this.#source, () => (this.#last.get() as { sequence: number }).sequence);
  }

  /** Superseded changes and tombstones up to this sequence are gone. */
  purgedThrough(): number {
    const sql = 'SELECT purged_through AS purged FROM range_identity';
    return reading(this.#source, () => (this.#database.query(sql).get() as { purged: number }).purged);
  }

  /** Deletions, of documents and of parts, up to this sequence may be gone; behind it there are all. */
  deletionsForgottenThrough(): number {
    return reading(this.#source, () => deletionsForgottenThrough(this.#database)) ?? this.purgedThrough();
  }

  close(): void {
    for (const statement of [this.#changes, this.#document, this.#part, this.#key, this.#last]) statement.finalize();
  }

  #page(afterSequence: number, wanted: FeedRows, through: number): FeedPage | undefined {
    const page = new PageBuilder();
    const append = wanted.documents && wanted.parts ? this.#joined(wanted.parts) : this.#plain(wanted);
    let [firstSequence, lastSequence, seen] = [0, 0, 0];
    for (const found of this.#changes.iterate(afterSequence)) {
      const change = found as Change;
      if (change.sequence > through) break;
      if (seen === 0) firstSequence = change.sequence;
      else if (page.isFull || seen >= 4 * pageRowsMax) break;
      lastSequence = change.sequence;
      seen += 1;
      if (change.partId === null && change.deleted === 1) page.tombstone(change);
      else append(page, change);
    }
    return seen === 0 ? undefined : { ...page.finish(), firstSequence, lastSequence };
  }

  /** Each row by itself, where it is still what the change says. */
  #plain({ documents = false, parts = [] }: FeedRows) {
    return (page: PageBuilder, change: Change) => {
      if (change.partId === null) {
        if (!documents) return;
        const row = this.#document.get(change.ordinal) as DocumentRow | null;
        if (row?.sequence === change.sequence) page.document(change.ordinal, this.#withBody(row));
      } else if (parts.includes(change.partId)) {
        const row = change.deleted === 1 ? undefined : this.#partRow(change.partId, change.ordinal);
        if (row === undefined) page.partDelete(change, change.partId);
        else if (row?.sequence === change.sequence) {
          const document = this.#key.get(change.ordinal) as Pick<DocumentRow, 'key'> | null;
          if (document) page.part(change.ordinal, change.partId, row, document.key);
        }
      }
    };
  }

  /** Each document once, with the parts that it has now. */
  #joined(parts: readonly number[]) {
    const seen = new Set<number>();
    return (page: PageBuilder, change: Change) => {
      const { ordinal, partId } = change;
      if ((partId !== null && !parts.includes(partId)) || seen.has(ordinal)) return;
      const row = this.#document.get(ordinal) as DocumentRow | null;
      // Of a document that was written again or deleted since, a later change tells.
      if (row === null || row.sequence > change.sequence) return;
      if (partId !== null && change.deleted === 0 && this.#partRow(partId, ordinal)?.sequence !== change.sequence)
        return;
      seen.add(ordinal);
      if (!page.document(ordinal, this.#withBody(row), row.sequence < change.sequence)) return;
      for (const each of parts) {
        const part = this.#partRow(each, ordinal);
        if (part) page.part(ordinal, each, part, row.key);
      }
    };
  }

  #withBody(row: DocumentRow): DocumentRow {
    row.body = this.#bodies.unpacked(row);
    return row;
  }

  /** null: there is none. */
  #partRow(partId: number, ordinal: number): StoredRow | null {
    return this.#part.get(partRowId(partId, ordinal)) as StoredRow | null;
  }
}

/** The rows of a page, and what is wrong with some of them. */
class PageBuilder {
  readonly #frame = new FrameBuilder(256, 256 * 1_024);
  readonly #damaged: FeedPage['damaged'] = [];

  get isFull(): boolean {
    return this.#frame.rowCount >= pageRowsMax || this.#frame.byteLength >= pageBytesMax;
  }

  tombstone({ ordinal, sequence }: Pick<Change, 'ordinal' | 'sequence'>): void {
    appendTombstone(this.#frame, noBytes, ordinal, sequence);
  }

  /** False for a damaged one. */
  document(ordinal: number, row: DocumentRow, isAgain = false): boolean {
    const at = this.#stored(rowKind.put, ordinal, row, row.key);
    if (at === undefined) {
      this.tombstone({ ordinal, sequence: row.sequence });
      this.#damage(ordinal, row.key, 'the stored document does not match its checksum');
      return false;
    }
    this.#frame.setTtlBaseMs(at, row.ttlBaseMs ?? 0);
    this.#frame.setWrittenMs(at, row.writtenMs ?? 0);
    if (isAgain) this.#frame.setFlags(at, rowIsAgain);
    return true;
  }

  /** `key`: of the document. */
  part(ordinal: number, partId: number, row: StoredRow, key: Uint8Array): void {
    if (this.#stored(rowKind.partPut, ordinal, row, key) !== undefined) return;
    this.partDelete({ ordinal, sequence: row.sequence }, partId);
    this.#damage(ordinal, key, 'a stored part, such as a vector, does not match its checksum');
  }

  partDelete({ ordinal, sequence }: Pick<Change, 'ordinal' | 'sequence'>, partId: number): void {
    const row = this.#frame.append(rowKind.partDelete, noBytes, partDeleteBody(partId));
    this.#frame.setOrdinal(row, ordinal);
    this.#frame.setSequence(row, sequence);
  }

  finish(): Pick<FeedPage, 'frame' | 'damaged'> {
    return { frame: this.#frame.finish(), damaged: this.#damaged };
  }

  /** The number of the row; undefined, and nothing appended, for a damaged one. */
  #stored(kind: RowKind, ordinal: number, { body, crc, sequence }: StoredRow, key: Uint8Array): number | undefined {
    if (Bun.hash.crc32(body) !== crc) return undefined;
    const row = this.#frame.append(kind, key, body, crc);
    this.#frame.setOrdinal(row, ordinal);
    this.#frame.setSequence(row, sequence);
    return row;
  }

  #damage(ordinal: number, key: Uint8Array, reason: string): void {
    this.#damaged.push({ key: Buffer.from(key).toString(), ordinal, reason });
  }
}
