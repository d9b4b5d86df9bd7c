import type { OutputTensor } from '../onnx-session.ts';

type Pooling = 'mean' | 'cls' | 'last' | 'none';

/**
 * One vector for each text of a batch. `lengths` are the tokens of the texts; what fills a row up counts for nothing.
 * With `none`, and where the model answers one vector for a text, that vector is taken as it is.
 */
export function poolRows({ data, dims }: OutputTensor, lengths: readonly number[], pooling: Pooling): Float32Array[] {
  const dimension = dims.at(-1) ?? 0;
  if (dims.length === 2) return lengths.map((_, row) => data.slice(row * dimension, (row + 1) * dimension));
  if (dims.length !== 3) throw new Error(`its output has ${dims.length} dimensions; vectors have 2 or 3`);
  const width = dims[1] ?? 0;
  return lengths.map((length, row) => {
    const token = (at: number) => (row * width + at) * dimension;
    if (pooling === 'mean') return meanOf(data, token(0), length, dimension);
    const at = pooling === 'last' ? token(length - 1) : token(0);
    return data.slice(at, at + dimension);
  });
}

/** For each run of tokens of a row of a batch the mean of their vectors; ends are exclusive. */
export function poolSpans(
  { data, dims }: OutputTensor,
  row: number,
  spans: readonly (readonly [from: number, to: number])[],
): Float32Array[] {
  const [, width = 0, dimension = 0] = dims;
  if (dims.length !== 3) throw new Error('it answers no vectors of single tokens');
  return spans.map(([from, to]) => meanOf(data, (row * width + from) * dimension, to - from, dimension));
}

function meanOf(data: Float32Array, start: number, tokens: number, dimension: number): Float32Array {
  const sums = new Float64Array(dimension);
  for (let token = 0, at = start; token < tokens; token += 1) {
    for (let column = 0; column < dimension; column += 1, at += 1) sums[column] = (sums[column] ?? 0) + (data[at] ?? 0);
  }
  const mean = new Float32Array(dimension);
  for (let column = 0; column < dimension; column += 1) mean[column] = (sums[column] ?? 0) / tokens;
  return mean;
}

/** Scales to length one; a vector without a direction stays as it is, and one that is not finite does not become so. */
export function normalize(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  if (length > 0) for (let at = 0; at < vector.length; at += 1) vector[at] = (vector[at] ?? 0) / length;
  return vector;
}

export interface SparseRow {
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

/** For each text the greatest weight of every word of the vocabulary over its tokens: log(1 + x) of what is positive. */
export function sparseRows({ data, dims }: OutputTensor, lengths: readonly number[]): SparseRow[] {
  const size = dims.at(-1) ?? 0;
  const width = dims.length === 2 ? 1 : (dims[1] ?? 0);
  return lengths.map((length, row) => {
    const best = new Float32Array(size);
    for (let token = 0; token < (dims.length === 2 ? 1 : length); token += 1) {
      const at = (row * width + token) * size;
      // Unlike a comparison it takes over what is no number, which is refused later.
      for (let word = 0; word < size; word += 1) best[word] = Math.max(best[word] ?? 0, data[at + word] ?? 0);
    }
    const indices: number[] = [];
    for (let word = 0; word < size; word += 1) if (best[word] !== 0) indices.push(word);
    return {
      indices: Uint32Array.from(indices),
      values: Float32Array.from(indices, (word) => Math.log1p(best[word] ?? 0)),
    };
  });
}
