import type { Database, Statement } from 'bun:sqlite';
import { FrameBuilder, rowKind } from '../lib/document-frame.ts';
import type { PostImages, RangeId } from './entry-group.ts';
import { appendTombstone } from './post-image.ts';
import { reading } from './storage-error.ts';

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
  documentSequence: number | null;
  ttlBaseMs: number | null;
  crc: number | null;
  key: Uint8Array | null;
  body: Uint8Array | null;
}

/** Post-images read back, and the documents among them that cannot be believed. */
export interface FeedPage extends PostImages {
  damaged: { key: string; reason: string }[];
}

const noBytes = new Uint8Array(0);

/**
 * The changes of one range in sequence order, as far as they are still true: a change that a later one superseded
 * does not appear, and tombstones carry no key. What has been purged is older than every index's checkpoint.
 */
export class ChangeFeed {
  readonly #after: Statement;

  readonly #name: string;

  constructor(database: Database, rangeId: RangeId) {
    this.#name = `range ${rangeId}`;
    this.#after = database.prepare(
      'SELECT c.sequence, c.ordinal, c.deleted, d.sequence AS documentSequence, d.ttl_base_ms AS ttlBaseMs, d.crc, ' +
        'd.key, d.body FROM changes c LEFT JOIN documents d ON d.ordinal = c.ordinal AND c.deleted = 0 ' +
        'WHERE c.sequence > ? ORDER BY c.sequence',
    );
  }

  /**
   * The next page after `afterSequence`, or undefined when there is nothing after it. A page that covers superseded
   * changes only has an empty frame; `lastSequence` says how far it reaches. A document that does not match its
   * checksum appears as a tombstone and is named, so that one damaged row does not keep all others from an index.
   */
  read(afterSequence: number): FeedPage | undefined {
    return reading(this.#name, () => this.#page(afterSequence));
  }

  #page(afterSequence: number): FeedPage | undefined {
    const page = new FrameBuilder(256, 256 * 1_024);
    const damaged: FeedPage['damaged'] = [];
    let firstSequence = 0;
    let lastSequence = 0;
    let seen = 0;
    for (const found of this.#after.iterate(afterSequence)) {
      const change = found as Change;
      if (seen === 0) firstSequence = change.sequence;
      else if (page.rowCount >= pageRowsMax || seen >= 4 * pageRowsMax || page.byteLength >= pageBytesMax) break;
      lastSequence = change.sequence;
      seen += 1;
      if (change.deleted === 1) appendTombstone(page, noBytes, change.ordinal, change.sequence);
      else if (change.documentSequence === change.sequence && !appendPut(page, change)) {
        appendTombstone(page, noBytes, change.ordinal, change.sequence);
        const key = change.key === null ? `(ordinal ${change.ordinal})` : Buffer.from(change.key).toString();
        damaged.push({ key, reason: 'the stored document does not match its checksum' });
      }
    }
    return seen === 0 ? undefined : { frame: page.finish(), firstSequence, lastSequence, damaged };
  }

  close(): void {
    this.#after.finalize();
  }
}

/** False, and nothing appended, when the document is damaged. */
function appendPut(page: FrameBuilder, change: Change): boolean {
  const { key, body, crc } = change;
  if (key === null || body === null || crc === null || Bun.hash.crc32(body) !== crc) return false;
  const row = page.append(rowKind.put, key, body, crc);
  page.setOrdinal(row, change.ordinal);
  page.setSequence(row, change.sequence);
  page.setTtlBaseMs(row, change.ttlBaseMs ?? 0);
  return true;
}
