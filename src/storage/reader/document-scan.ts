import type { Database, Statement } from 'bun:sqlite';
import type { StoredBodies } from '../packing/stored-bodies.ts';
import { partRowId, placeOfPart } from '../range/part-rows.ts';
import { damagedRow, type ReadSource, reading } from '../storage-error.ts';
import { keyTextOf } from './key-text.ts';

interface ScannedPart {
  sequence: number;
  /** As `lib/parts/part-body.ts` has it. */
  body: Uint8Array;
}

/** A document with some of its parts. */
interface ScannedDocument {
  ordinal: number;
  key: string;
  sequence: number;
  /** Milliseconds since 1970; 0 for none. */
  ttlBaseMs: number;
  /** Milliseconds since 1970; 0 where the body says so itself. */
  writtenMs: number;
  /** UTF-8 JSON object. */
  body: Uint8Array<ArrayBuffer>;
  parts: ScannedPart[];
}

interface DocumentRow extends Omit<ScannedDocument, 'key' | 'parts'> {
  key: Uint8Array;
  crc: number;
  rawBytes: number | null;
}

interface PartRow extends ScannedPart {
  id: number;
  crc: number;
}

const documentsAfter =
  'SELECT ordinal, key, sequence, coalesce(ttl_base_ms, 0) AS ttlBaseMs, coalesce(written_ms, 0) AS writtenMs, crc, ' +
  'raw_bytes AS rawBytes, body FROM documents WHERE ordinal > ? ORDER BY ordinal';
const partsBetween = 'SELECT id, sequence, crc, body FROM parts WHERE id > ? AND id < ? ORDER BY id';

/**
 * The documents behind an ordinal, in the order of their ordinals, with the parts of these ids that they have: the order in
 * which both lie in the file, so that a row costs two microseconds. No row is held but the one that is given out. While the
 * scan is under way it keeps the write-ahead log from being emptied. Throws `data_corrupted` where something does not match its
 * checksum, with the document's key in the details.
 */
export function* scanDocuments(
  { database, bodies }: { database: Database; bodies: StoredBodies },
  source: ReadSource,
  afterOrdinal: number,
  partIds: readonly number[],
): Generator<ScannedDocument, void> {
  const documents = new RowCursor<DocumentRow>(database, source, documentsAfter, [afterOrdinal]);
  const parts = partIds.map((partId) => {
    const bounds = [partRowId(partId, afterOrdinal), partRowId(partId + 1, 0)];
    return new PartCursor(database, source, partsBetween, bounds);
  });
  try {
    for (let row = documents.next(); row; row = documents.next()) {
      const { ordinal, sequence, ttlBaseMs, writtenMs } = row;
      const body = reading(source, () => bodies.unpacked(row));
      const key = keyTextOf(row.key);
      if (key === undefined || Bun.hash.crc32(body) !== row.crc) {
        throw damagedRow(source, 'the stored document', key ?? Buffer.from(row.key).toString());
      }
      const own: ScannedPart[] = [];
      for (const each of parts) {
        const part = each.seek(ordinal);
        if (part === undefined || placeOfPart(part.id).ordinal !== ordinal) continue;
        if (Bun.hash.crc32(part.body) !== part.crc) throw damagedRow(source, 'a part of', key);
        own.push(part);
      }
      yield { ordinal, key, sequence, ttlBaseMs, writtenMs, body, parts: own };
    }
  } finally {
    for (const cursor of [documents, ...parts]) cursor.close();
  }
}

/** Rows of a statement one by one; closed, it holds no instant of the database any more. */
class RowCursor<Row> {
  readonly #source: ReadSource;
  readonly #statement: Statement;
  readonly #rows: Iterator<unknown>;
  protected current: Row | undefined;

  constructor(database: Database, source: ReadSource, sql: string, bounds: number[]) {
    this.#source = source;
    this.#statement = database.prepare(sql);
    this.#rows = this.#statement.iterate(...bounds);
  }

  next(): Row | undefined {
    const { done, value } = reading(this.#source, () => this.#rows.next());
    this.current = done ? undefined : (value as Row);
    return this.current;
  }

  close(): void {
    this.#statement.finalize();
  }
}

class PartCursor extends RowCursor<PartRow> {
  /** The first part from the current one on that belongs to a document of this ordinal or a later one. */
  seek(ordinal: number): PartRow | undefined {
    let row = this.current ?? this.next();
    while (row && placeOfPart(row.id).ordinal < ordinal) row = this.next();
    return row;
  }
}
