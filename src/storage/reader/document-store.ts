import type { Database, Statement } from 'bun:sqlite';
import { openReader } from '../connection.ts';
import { StoredBodies } from '../packing/stored-bodies.ts';
import { damagedRow, type ReadSource, reading } from '../storage-error.ts';
import { keyTextOf } from './key-text.ts';

/** A stored document. */
export interface StoredDocument {
  ordinal: number;
  key: string;
  /** The row's sequence: the document's version. */
  sequence: number;
  /** TTL base, milliseconds since 1970; undefined when it has none. */
  ttlBaseMs: number | undefined;
  /** When it was written, milliseconds since 1970; undefined where the body says so itself (`_timestamp`). */
  writtenMs: number | undefined;
  /** UTF-8 JSON object, exactly as it was written. */
  body: Uint8Array<ArrayBuffer>;
}

/** A stored document whose body is wanted as text. */
interface StoredText extends Omit<StoredDocument, 'body'> {
  /** The JSON object, exactly as it was written. */
  text: string;
}

/** Key interval of a page. */
interface KeyBounds {
  fromKey: string;
  fromInclusive: boolean;
  /** null for the end of the range. */
  toKey: string | null;
  toInclusive: boolean;
}

/** A row whose body does not match its checksum, or whose key is not UTF-8. */
interface DamagedDocument {
  ordinal: number;
  key: string;
  sequence: number;
}

/** Documents read by their ordinals. */
interface StoredTexts {
  /** In no promised order. */
  documents: StoredText[];
  /** Ordinals of damaged rows. */
  damaged: ReadonlySet<number>;
}

export interface DocumentPage {
  documents: StoredDocument[];
  damaged: DamagedDocument[];
  /** Where the page ends: that of a document or of a damaged row; undefined when there are neither. */
  lastKey: string | undefined;
  /** There may be more behind `lastKey`. */
  more: boolean;
}

/** A page of rows whose checksums were compared. */
export interface ScrubPage {
  rows: number;
  /** Go on after it. */
  lastRow: number;
  /** Keys of the documents that are damaged, or whose vector is. */
  damagedKeys: string[];
}

interface Row {
  ordinal: number;
  key: Uint8Array;
  sequence: number;
  ttlBaseMs: number;
  writtenMs: number;
  crc: number;
  rawBytes: number | null;
  body: Uint8Array<ArrayBuffer>;
}

export const pageRowsMax = 256;
export const pageBytesMax = 1_024 * 1_024;

/** A row of `textColumns`, in their order. */
type TextRow = [
  ordinal: number,
  key: string,
  sequence: number,
  ttlBaseMs: number,
  writtenMs: number,
  crc: number,
  rawBytes: number | null,
  /** Bytes where the body is packed. */
  body: string | Uint8Array<ArrayBuffer>,
];

const times = 'coalesce(ttl_base_ms, 0) AS ttlBaseMs, coalesce(written_ms, 0) AS writtenMs';
const textColumns = `ordinal, CAST(key AS TEXT), sequence, ${times}, crc, raw_bytes, iif(raw_bytes IS NULL, CAST(body AS TEXT), body)`;
const columns = `ordinal, key, sequence, ${times}, crc, raw_bytes AS rawBytes, body`;
/** Nothing behind the body, which may lie on many pages that lead to the next column. */
const keyColumns = `ordinal, key, sequence, coalesce(ttl_base_ms, 0) AS ttlBaseMs, 0 AS writtenMs, 0 AS crc, NULL AS rawBytes, x'' AS body`;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const noneDamaged: ReadonlySet<number> = new Set();

/**
 * Reads documents of one range on the calling thread. Every call sees all that was committed before it and leaves no
 * statement open. A damaged row fails a read of its key with `data_corrupted`; in a page it is named beside the others.
 */
export class DocumentStore {
  readonly bodies: StoredBodies;
  readonly #source: ReadSource;
  readonly #database: Database;
  readonly #byKey: Statement;
  readonly #sequence: Statement;
  readonly #byOrdinal: Statement;
  readonly #byOrdinals: Statement;
  readonly #bodyBytes: Statement;
  readonly #after: Statement;
  readonly #from: Statement;
  readonly #keysAfter: Statement;
  readonly #keysFrom: Statement;
  readonly #expired: Statement;
  readonly #scrubbed: Statement;
  readonly #ordinals: Statement;

  constructor(path: string, source: ReadSource) {
    this.#source = source;
    this.#database = openReader(path);
    this.bodies = new StoredBodies(this.#database);
    this.#byKey = this.#database.prepare(`SELECT ${columns} FROM documents WHERE key = ?`);
    this.#sequence = this.#database.prepare('SELECT sequence FROM documents WHERE key = ?');
    this.#byOrdinal = this.#database.prepare(`SELECT ${textColumns} FROM documents WHERE ordinal = ?`);
    this.#byOrdinals = this.#database.prepare(
      // A join, because IN would first sort the numbers into a table of its own: a tenth of the time of ten rows.
      `SELECT ${textColumns} FROM (SELECT value FROM json_each(?)) CROSS JOIN documents ON ordinal = value`,
    );
    this.#bodyBytes = this.#database.prepare(
      // The length of a body is known without it; `raw_bytes` lies behind it, so that its pages are walked, and not copied.
      `SELECT total(coalesce(raw_bytes, length(body))) FROM (SELECT value FROM json_each(?)) CROSS JOIN documents ON ordinal = value`,
    );
    this.#after = this.#database.prepare(`SELECT ${columns} FROM documents WHERE key > ? ORDER BY key`);
    this.#from = this.#database.prepare(`SELECT ${columns} FROM documents WHERE key >= ? ORDER BY key`);
    this.#keysAfter = this.#database.prepare(`SELECT ${keyColumns} FROM documents WHERE key > ? ORDER BY key`);
    this.#keysFrom = this.#database.prepare(`SELECT ${keyColumns} FROM documents WHERE key >= ? ORDER BY key`);
    this.#expired = this.#database.prepare('SELECT key, sequence FROM documents WHERE ttl_base_ms <= ? LIMIT ?');
    this.#ordinals = this.#database.prepare('SELECT ordinal FROM documents WHERE ordinal > ? ORDER BY ordinal LIMIT ?');
    this.#scrubbed = this.#database.prepare(
      `SELECT ${columns} FROM documents WHERE ordinal > ? ORDER BY ordinal LIMIT ?`,
    );
  }

  get(key: string): StoredDocument | undefined {
    const row = reading(this.#source, () => {
      const found = this.#byKey.get(encoder.encode(key)) as Row | null;
      return found && this.#withBody(found);
    });
    if (!row) return undefined;
    if (!isIntact(row)) throw damagedRow(this.#source, 'the stored document', key);
    const { ordinal, sequence, ttlBaseMs, writtenMs, body } = row;
    return { ordinal, key, sequence, ttlBaseMs: stated(ttlBaseMs), writtenMs: stated(writtenMs), body };
  }

  /** That of the document of a key, whose body is not read: whether it is damaged is not known. Undefined where there is none. */
  sequenceOf(key: string): number | undefined {
    const row = reading(this.#source, () => this.#sequence.get(encoder.encode(key))) as { sequence: number } | null;
    return row?.sequence;
  }

  /** The rows that exist. As text, because a page of them is about to become text. */
  byOrdinals(ordinals: readonly number[]): StoredTexts {
    const [first] = ordinals;
    if (first === undefined) return { documents: [], damaged: noneDamaged };
    const rows = reading(this.#source, () =>
      ordinals.length === 1 ? this.#byOrdinal.values(first) : this.#byOrdinals.values(JSON.stringify(ordinals)),
    );
    const documents: StoredText[] = [];
    const textOf = (rawBytes: number | null, body: Uint8Array<ArrayBuffer>) =>
      decoder.decode(reading(this.#source, () => this.bodies.unpacked({ rawBytes, body })));
    let damaged: Set<number> | undefined;
    for (const [ordinal, key, sequence, ttlBaseMs, writtenMs, crc, rawBytes, body] of rows as TextRow[]) {
      const text = typeof body === 'string' ? body : textOf(rawBytes, body);
      // Bytes that are not UTF-8 have become others, so that their checksum does not match either.
      if (Bun.hash.crc32(text) === crc)
        documents.push({ ordinal, key, sequence, ttlBaseMs: stated(ttlBaseMs), writtenMs: stated(writtenMs), text });
      else {
        this.#source.documentDamaged?.(key);
        damaged ??= new Set();
        damaged.add(ordinal);
      }
    }
    return { documents, damaged: damaged ?? noneDamaged };
  }

  /** Bytes of the bodies of these rows, as they were written. */
  bodyBytes(ordinals: readonly number[]): number {
    return reading(this.#source, () => Number(this.#bodyBytes.values(JSON.stringify(ordinals))[0]?.[0]));
  }

  /**
   * Documents in key order from the lower bound on, until a bound is met: at most `rowsMax` rows, and no further row
   * once `bytesMax` bytes of bodies are reached. Go on with the last key, exclusive.
   */
  page(bounds: KeyBounds, rowsMax = pageRowsMax, bytesMax = pageBytesMax): DocumentPage {
    const statement = bounds.fromInclusive ? this.#from : this.#after;
    return reading(this.#source, () => this.#page(statement, bounds, rowsMax, bytesMax));
  }

  /** The same without reading the bodies, which are empty: whether they are damaged is not known. */
  keyPage(bounds: KeyBounds, rowsMax: number): DocumentPage {
    const statement = bounds.fromInclusive ? this.#keysFrom : this.#keysAfter;
    return reading(this.#source, () => this.#page(statement, bounds, rowsMax, Number.POSITIVE_INFINITY));
  }

  #page(statement: Statement, bounds: KeyBounds, rowsMax: number, bytesMax: number): DocumentPage {
    const to = bounds.toKey === null ? undefined : encoder.encode(bounds.toKey);
    const page: DocumentPage = { documents: [], damaged: [], lastKey: undefined, more: false };
    let bytes = 0;
    for (const found of statement.iterate(encoder.encode(bounds.fromKey))) {
      const row = this.#withBody(found as Row);
      if (to) {
        const order = Buffer.compare(row.key, to);
        if (order > 0 || (order === 0 && !bounds.toInclusive)) return page;
      }
      if (page.documents.length + page.damaged.length >= rowsMax || bytes >= bytesMax) return { ...page, more: true };
      this.#add(page, row);
      bytes += row.body.byteLength;
    }
    return page;
  }

  #add(page: DocumentPage, row: Row): void {
    const { ordinal, sequence, ttlBaseMs, writtenMs, body } = row;
    const key = keyTextOf(row.key);
    page.lastKey = key ?? Buffer.from(row.key).toString();
    if (key !== undefined && isIntact(row)) {
      page.documents.push({ ordinal, key, sequence, ttlBaseMs: stated(ttlBaseMs), writtenMs: stated(writtenMs), body });
    } else {
      this.#source.documentDamaged?.(page.lastKey);
      page.damaged.push({ ordinal, key: page.lastKey, sequence });
    }
  }

  /** Checks the rows after an ordinal, a page of them; undefined when there are none. */
  scrubPage(afterOrdinal: number): ScrubPage | undefined {
    const rows = reading(this.#source, () => this.#scrubbed.all(afterOrdinal, pageRowsMax)) as Row[];
    const last = rows.at(-1);
    if (!last) return undefined;
    const isDamaged = (row: Row) => !isIntact(this.#withBody(row));
    const damaged = reading(this.#source, () => rows.filter(isDamaged));
    const damagedKeys = damaged.map((row) => Buffer.from(row.key).toString());
    return { rows: rows.length, lastRow: last.ordinal, damagedKeys };
  }

  #withBody(row: Row): Row {
    row.body = this.bodies.unpacked(row);
    return row;
  }

  /** Ordinals after one, ascending: a page of at most `rowsMax`. */
  ordinalsAfter(afterOrdinal: number, rowsMax: number): number[] {
    return reading(this.#source, () =>
      this.#ordinals.values(afterOrdinal, rowsMax).map(([ordinal]) => Number(ordinal)),
    );
  }

  /** Some documents whose TTL base is at or before `boundMs`, with their versions. */
  expired(boundMs: number, rowsMax: number): { key: string; sequence: number }[] {
    const rows = reading(
      this.#source,
      () => this.#expired.all(boundMs, rowsMax) as { key: Uint8Array; sequence: number }[],
    );
    return rows.flatMap(({ key, sequence }) => {
      const text = keyTextOf(key);
      return text === undefined ? [] : [{ key: text, sequence }];
    });
  }

  /** Least TTL base, milliseconds since 1970; null when no document has one. Needs the index of TTL bases. */
  oldestTtlBaseMs(): number | null {
    const sql = 'SELECT min(ttl_base_ms) AS oldest FROM documents WHERE ttl_base_ms IS NOT NULL';
    return reading(this.#source, () => {
      using statement = this.#database.prepare(sql);
      return (statement.get() as { oldest: number | null }).oldest;
    });
  }

  get database(): Database {
    return this.#database;
  }

  close(): void {
    for (const statement of this.#statements()) {
      statement.finalize();
    }
    this.bodies.close();
    this.#database.close();
  }

  #statements(): Statement[] {
    const keys = [this.#keysAfter, this.#keysFrom];
    const pages = [this.#bodyBytes, this.#after, this.#from, this.#expired, this.#scrubbed, this.#ordinals];
    return [this.#byKey, this.#sequence, this.#byOrdinal, this.#byOrdinals, ...keys, ...pages];
  }
}

/** A time of a document: its column has 0 where the document has none. */
function stated(timeMs: number): number | undefined {
  return timeMs || undefined;
}

function isIntact({ body, crc }: Row): boolean {
  return Bun.hash.crc32(body) === crc;
}
