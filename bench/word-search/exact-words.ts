import { readRows } from '../workloads/vector-set.ts';
import type { WordSet } from './word-table.ts';

/** All vectors at unit length, for exact answers. */
export class ExactWords {
  readonly words: readonly string[];
  readonly #dimension: number;
  readonly #vectors: Float32Array;

  constructor({ words, vectors }: WordSet) {
    this.words = words;
    this.#dimension = vectors.dimension;
    this.#vectors = readRows(vectors, 0, vectors.rows);
    for (let row = 0; row < words.length; row += 1) {
      const vector = this.vector(row);
      const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
      for (let at = 0; at < vector.length; at += 1) vector[at] = (vector[at] ?? 0) / length;
    }
  }

  vector(row: number): Float32Array {
    return this.#vectors.subarray(row * this.#dimension, (row + 1) * this.#dimension);
  }

  /** The vector of a word; undefined when it is not among them. */
  vectorOf(word: string): Float32Array | undefined {
    const row = this.words.indexOf(word);
    return row < 0 ? undefined : this.vector(row);
  }

  /** The rows nearest by cosine, nearest first, among those that `isAllowed`. */
  nearest(query: Float32Array, limit: number, isAllowed: (row: number) => boolean = () => true): number[] {
    const found: { row: number; cosine: number }[] = [];
    for (let row = 0; row < this.words.length; row += 1) {
      if (!isAllowed(row)) continue;
      let cosine = 0;
      const start = row * this.#dimension;
      for (let at = 0; at < this.#dimension; at += 1) cosine += (query[at] ?? 0) * (this.#vectors[start + at] ?? 0);
      if (found.length === limit && cosine <= (found.at(-1)?.cosine ?? 0)) continue;
      found.push({ row, cosine });
      found.sort((left, right) => right.cosine - left.cosine);
      if (found.length > limit) found.pop();
    }
    return found.map(({ row }) => row);
  }
}

/** Reciprocal rank fusion of two lists of rows; equal scores in the order of the rows. */
export function fused(lists: readonly (readonly number[])[], rankConstant: number, limit: number): number[] {
  const scores = new Map<number, number>();
  for (const list of lists) {
    for (const [at, row] of list.entries()) scores.set(row, (scores.get(row) ?? 0) + 1 / (rankConstant + at + 1));
  }
  const order = [...scores].sort(([row, score], [other, otherScore]) => otherScore - score || row - other);
  return order.slice(0, limit).map(([row]) => row);
}
