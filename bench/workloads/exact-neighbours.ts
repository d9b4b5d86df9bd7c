import { cachedJson } from './document-file.ts';
import { readBuckets, readQueries, readRows, type VectorFilter, type VectorSet } from './vector-set.ts';

/** Neighbours that recall is measured by. */
export const neighbours = 10;
const rowsAtATime = 1_000;

/** For each query the rows nearest to it by cosine, nearest first; fewer when fewer are kept. */
export type Neighbours = number[][];

/**
 * Exact answers by looking at every row, one list for all rows (`filters[at]` undefined) or for those of a filter. Kept in the
 * cache: this takes up to a minute.
 */
export function exactNeighbours(
  set: VectorSet,
  filters: readonly (VectorFilter | undefined)[] = [undefined],
): Neighbours[] {
  const names = filters.map((filter) => (filter ? `${filter.field[0]}${filter.below}` : 'all'));
  const shape = `${set.name}-${set.rows}-${set.queries}`;
  return cachedJson(`${shape}-${Bun.hash.crc32(names.join(' ')).toString(16)}-truth.json`, () => search(set, filters));
}

function search(set: VectorSet, filters: readonly (VectorFilter | undefined)[]): Neighbours[] {
  const { dimension, rows } = set;
  const queries = readQueries(set);
  const buckets = readBuckets(set);
  const best = filters.map(() => queries.map(() => new Nearest()));
  for (let first = 0; first < rows; first += rowsAtATime) {
    const block = readRows(set, first, rowsAtATime);
    for (let at = 0; at * dimension < block.length; at += 1) {
      const row = first + at;
      const vector = block.subarray(at * dimension, (at + 1) * dimension);
      const length = Math.sqrt(dot(vector, vector));
      const lists = best.filter((_, which) => keeps(filters[which], buckets, row));
      for (let query = 0; query < queries.length; query += 1) {
        const cosine = dot(queries[query] ?? vector, vector) / length;
        for (const list of lists) list[query]?.offer(cosine, row);
      }
    }
  }
  return best.map((lists) => lists.map((list) => list.rows));
}

export function keeps(filter: VectorFilter | undefined, buckets: Uint16Array | undefined, row: number): boolean {
  if (!filter) return true;
  const bucket = buckets?.[row * 2 + (filter.field === 'independent' ? 0 : 1)];
  if (bucket === undefined) throw new Error('a filter over vectors without buckets');
  return bucket < filter.below;
}

class Nearest {
  readonly rows: number[] = [];
  readonly #cosines: number[] = [];

  offer(cosine: number, row: number): void {
    const { length } = this.rows;
    if (length === neighbours && cosine <= (this.#cosines[length - 1] ?? 0)) return;
    let at = length;
    while (at > 0 && (this.#cosines[at - 1] ?? 0) < cosine) at -= 1;
    this.rows.splice(at, 0, row);
    this.#cosines.splice(at, 0, cosine);
    if (length < neighbours) return;
    this.rows.pop();
    this.#cosines.pop();
  }
}

function dot(left: Float32Array, right: Float32Array): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let at = 0; at < left.length; at += 4) {
    a += (left[at] ?? 0) * (right[at] ?? 0);
    b += (left[at + 1] ?? 0) * (right[at + 1] ?? 0);
    c += (left[at + 2] ?? 0) * (right[at + 2] ?? 0);
    d += (left[at + 3] ?? 0) * (right[at + 3] ?? 0);
  }
  return a + b + c + d;
}
