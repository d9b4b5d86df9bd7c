import type { Database, Statement } from 'bun:sqlite';

/** A part's row id is its part id times this, plus its document's ordinal. Part ids stay below 2^20. */
const idsPerPart = 2 ** 32;

/** Row id in `parts`. */
export function partRowId(partId: number, ordinal: number): number {
  return partId * idsPerPart + ordinal;
}

export function placeOfPart(rowId: number): { partId: number; ordinal: number } {
  return { partId: Math.floor(rowId / idsPerPart), ordinal: rowId % idsPerPart };
}

/** A stored part without its body. */
interface PartHead {
  sequence: number;
  bodyBytes: number;
}

/** A stored part, whose checksum nobody has compared. */
export interface StoredPart {
  sequence: number;
  crc: number;
  body: Uint8Array;
}

const headColumns = 'sequence, length(body) AS bodyBytes';

/** The writer's side of the parts of a range: one for each document and definition. */
export class PartRows {
  readonly #database: Database;
  readonly #find: Statement;
  readonly #load: Statement;
  readonly #put: Statement;
  readonly #remove: Statement;
  readonly #removeSome: Statement;

  constructor(database: Database) {
    this.#database = database;
    this.#find = database.prepare(`SELECT ${headColumns} FROM parts WHERE id = ?`);
    this.#load = database.prepare('SELECT sequence, crc, body FROM parts WHERE id = ?');
    this.#put = database.prepare('INSERT OR REPLACE INTO parts (id, sequence, crc, body) VALUES (?, ?, ?, ?)');
    this.#remove = database.prepare(`DELETE FROM parts WHERE id = ? RETURNING ${headColumns}`);
    this.#removeSome = database.prepare(
      'DELETE FROM parts WHERE id IN (SELECT id FROM parts WHERE id >= ? AND id < ? ORDER BY id LIMIT ?) ' +
        `RETURNING ${headColumns}`,
    );
  }

  /** The definitions that have parts here, ascending. */
  partIds(): number[] {
    const next = this.#database.prepare('SELECT id FROM parts WHERE id >= ? ORDER BY id LIMIT 1');
    const ids: number[] = [];
    for (let from = 0; ; ) {
      const found = next.get(from) as { id: number } | null;
      if (!found) break;
      const { partId } = placeOfPart(found.id);
      ids.push(partId);
      from = partRowId(partId + 1, 0);
    }
    next.finalize();
    return ids;
  }

  find(partId: number, ordinal: number): PartHead | undefined {
    return (this.#find.get(partRowId(partId, ordinal)) as PartHead | null) ?? undefined;
  }

  load(partId: number, ordinal: number): StoredPart | undefined {
    return (this.#load.get(partRowId(partId, ordinal)) as StoredPart | null) ?? undefined;
  }

  put(partId: number, ordinal: number, sequence: number, crc: number, body: Uint8Array): void {
    this.#put.run(partRowId(partId, ordinal), sequence, crc, body);
  }

  /** Removes a part if it is there, and answers what it was. */
  remove(partId: number, ordinal: number): PartHead | undefined {
    return (this.#remove.get(partRowId(partId, ordinal)) as PartHead | null) ?? undefined;
  }

  /** Removes the first rows of a part. */
  removeSome(partId: number, rowsMax: number): PartHead[] {
    return this.#removeSome.all(partRowId(partId, 0), partRowId(partId + 1, 0), rowsMax) as PartHead[];
  }

  close(): void {
    for (const statement of [this.#find, this.#load, this.#put, this.#remove, this.#removeSome]) statement.finalize();
  }
}
