import type { Database, Statement } from 'bun:sqlite';
import { sourceHashOf } from '../../lib/parts/part-body.ts';
import { partRowId, placeOfPart } from '../range/part-rows.ts';
import { type ReadSource, reading } from '../storage-error.ts';
import type { ScrubPage } from './document-store.ts';

interface Row {
  id: number;
  crc: number;
  body: Uint8Array;
}

interface ReadParts {
  /** Ordinal -> index id -> body (`lib/parts/part-body.ts`). */
  found: Map<number, Map<number, Uint8Array>>;
  /** Ordinals of documents that have a damaged part. */
  damaged: Set<number>;
}

/** Rows of a scrub page; a part has a few kilobytes. */
const scrubRows = 256;

/** Reads stored parts of one range on the calling thread. */
export class PartStore {
  readonly #source: ReadSource;
  readonly #byIds: Statement;
  readonly #after: Statement;
  readonly #keyOf: Statement;
  readonly #heads: Statement;
  readonly #idsBetween: Statement;
  readonly #sequences: Statement;

  constructor(database: Database, source: ReadSource) {
    this.#source = source;
    this.#byIds = database.prepare(
      'SELECT id, crc, body FROM parts WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id',
    );
    this.#after = database.prepare('SELECT id, crc, body FROM parts WHERE id > ? ORDER BY id LIMIT ?');
    this.#keyOf = database.prepare('SELECT key FROM documents WHERE ordinal = ?');
    this.#idsBetween = database.prepare('SELECT id FROM parts WHERE id > ? AND id < ? ORDER BY id LIMIT ?');
    this.#sequences = database.prepare('SELECT id, sequence FROM parts WHERE id IN (SELECT value FROM json_each(?))');
    this.#heads = database.prepare(
      'SELECT id, substr(body, 1, 24) AS head FROM parts WHERE id IN (SELECT value FROM json_each(?))',
    );
  }

  /** By which change these documents have got this part: ordinal -> sequence. */
  sequences(ordinals: readonly number[], partId: number): Map<number, number> {
    const ids = JSON.stringify(ordinals.map((ordinal) => partRowId(partId, ordinal)));
    const rows = reading(this.#source, () => this.#sequences.all(ids)) as { id: number; sequence: number }[];
    return new Map(rows.map(({ id, sequence }) => [placeOfPart(id).ordinal, sequence]));
  }

  /**
   * The bodies (`lib/parts/part-body.ts`) of the vectors that these documents have for these indexes: ordinal -> index id ->
   * body. A vector that does not match its checksum is left out, and its document named as damaged.
   */
  read(ordinals: readonly number[], partIds: readonly number[]): ReadParts {
    const found = new Map<number, Map<number, Uint8Array>>();
    const damaged = new Set<number>();
    if (ordinals.length === 0 || partIds.length === 0) return { found, damaged };
    const ids = partIds.flatMap((partId) => ordinals.map((ordinal) => partRowId(partId, ordinal)));
    for (const row of reading(this.#source, () => this.#byIds.all(JSON.stringify(ids))) as Row[]) {
      const { partId, ordinal } = placeOfPart(row.id);
      if (!isIntact(row)) {
        this.#source.documentDamaged?.(this.#key(ordinal));
        damaged.add(ordinal);
        continue;
      }
      const own = found.get(ordinal) ?? new Map<number, Uint8Array>();
      found.set(ordinal, own.set(partId, row.body));
    }
    return { found, damaged };
  }

  /** The sources of the parts of these documents: ordinal -> source hash, undefined where nobody has said it. */
  sourceHashes(ordinals: readonly number[], partId: number): Map<number, Uint8Array | undefined> {
    const ids = JSON.stringify(ordinals.map((ordinal) => partRowId(partId, ordinal)));
    const rows = reading(this.#source, () => this.#heads.all(ids)) as { id: number; head: Uint8Array }[];
    return new Map(rows.map(({ id, head }) => [placeOfPart(id).ordinal, sourceHashOf(head)]));
  }

  /** Checks the parts after a row id (-1 for all), a page of them; undefined when there are none. */
  scrubPage(afterId: number): ScrubPage | undefined {
    const rows = reading(this.#source, () => this.#after.all(afterId, scrubRows)) as Row[];
    const last = rows.at(-1);
    if (!last) return undefined;
    const damaged = rows.filter((row) => !isIntact(row));
    const damagedKeys = damaged.map(({ id }) => this.#key(placeOfPart(id).ordinal));
    return { rows: rows.length, lastRow: last.id, damagedKeys };
  }

  /** Ordinals after one, ascending, of the documents that have a part: a page of at most `rowsMax`. */
  ordinalsAfter(partId: number, afterOrdinal: number, rowsMax: number): number[] {
    const bounds = [partRowId(partId, afterOrdinal), partRowId(partId + 1, 0), rowsMax];
    return reading(this.#source, () =>
      this.#idsBetween.values(...bounds).map(([id]) => placeOfPart(Number(id)).ordinal),
    );
  }

  close(): void {
    const statements = [this.#idsBetween, this.#byIds, this.#after, this.#keyOf, this.#heads, this.#sequences];
    for (const statement of statements) statement.finalize();
  }

  #key(ordinal: number): string {
    const row = reading(this.#source, () => this.#keyOf.get(ordinal)) as { key: Uint8Array } | null;
    return row === null ? `(ordinal ${ordinal})` : Buffer.from(row.key).toString();
  }
}

function isIntact({ crc, body }: Row): boolean {
  return Bun.hash.crc32(body) === crc;
}
