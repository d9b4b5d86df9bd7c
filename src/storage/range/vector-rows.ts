import type { Database, Statement } from 'bun:sqlite';

/** A vector's row id is its index id times this, plus its document's ordinal. Index ids stay below 2^20. */
const idsPerIndex = 2 ** 32;

/** Row id in `parts`. */
export function vectorRowId(indexId: number, ordinal: number): number {
  return indexId * idsPerIndex + ordinal;
}

export function placeOfVector(rowId: number): { indexId: number; ordinal: number } {
  return { indexId: Math.floor(rowId / idsPerIndex), ordinal: rowId % idsPerIndex };
}

/** A stored vector without its body. */
interface VectorHead {
  sequence: number;
  bodyBytes: number;
}

const headColumns = 'sequence, length(body) AS bodyBytes';

/** The writer's side of the vectors of a range: one for each document and embeddings index. */
export class VectorRows {
  readonly #database: Database;
  readonly #find: Statement;
  readonly #load: Statement;
  readonly #put: Statement;
  readonly #remove: Statement;
  readonly #removeSome: Statement;

  constructor(database: Database) {
    this.#database = database;
    this.#find = database.prepare(`SELECT ${headColumns} FROM parts WHERE id = ?`);
    this.#load = database.prepare('SELECT body FROM parts WHERE id = ?');
    this.#put = database.prepare('INSERT OR REPLACE INTO parts (id, sequence, crc, body) VALUES (?, ?, ?, ?)');
    this.#remove = database.prepare(`DELETE FROM parts WHERE id = ? RETURNING ${headColumns}`);
    this.#removeSome = database.prepare(
      'DELETE FROM parts WHERE id IN (SELECT id FROM parts WHERE id >= ? AND id < ? ORDER BY id LIMIT ?) ' +
        `RETURNING ${headColumns}`,
    );
  }

  /** The indexes that have vectors here, ascending. */
  indexIds(): number[] {
    const next = this.#database.prepare('SELECT id FROM parts WHERE id >= ? ORDER BY id LIMIT 1');
    const ids: number[] = [];
    for (let from = 0; ; ) {
      const found = next.get(from) as { id: number } | null;
      if (!found) break;
      const { indexId } = placeOfVector(found.id);
      ids.push(indexId);
      from = vectorRowId(indexId + 1, 0);
    }
    next.finalize();
    return ids;
  }

  find(indexId: number, ordinal: number): VectorHead | undefined {
    return (this.#find.get(vectorRowId(indexId, ordinal)) as VectorHead | null) ?? undefined;
  }

  body(indexId: number, ordinal: number): Uint8Array | undefined {
    return (this.#load.get(vectorRowId(indexId, ordinal)) as { body: Uint8Array } | null)?.body;
  }

  put(indexId: number, ordinal: number, sequence: number, crc: number, body: Uint8Array): void {
    this.#put.run(vectorRowId(indexId, ordinal), sequence, crc, body);
  }

  /** Removes a vector if it is there, and answers what it was. */
  remove(indexId: number, ordinal: number): VectorHead | undefined {
    return (this.#remove.get(vectorRowId(indexId, ordinal)) as VectorHead | null) ?? undefined;
  }

  /** Removes the first vectors of an index. */
  removeSome(indexId: number, rowsMax: number): VectorHead[] {
    return this.#removeSome.all(vectorRowId(indexId, 0), vectorRowId(indexId + 1, 0), rowsMax) as VectorHead[];
  }

  close(): void {
    for (const statement of [this.#find, this.#load, this.#put, this.#remove, this.#removeSome]) statement.finalize();
  }
}
