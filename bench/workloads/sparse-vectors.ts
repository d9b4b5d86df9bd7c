import { cachedJson } from './document-file.ts';
import { neighbours } from './exact-neighbours.ts';
import { Xorshift32 } from './xorshift32.ts';

/** Made anew from the seed wherever it is needed: it takes a second. */
export interface SparseSet {
  rows: number;
  queries: number;
  seed: number;
}

/** Indices ascending, and as many weights. */
export interface SparseVector {
  indices: Uint32Array;
  values: Float32Array;
}

const generatorVersion = 1;
const tokens = 30_000;
const skew = 2.2;
const rowEntries = { least: 60, most: 120 };
const queryEntries = { least: 10, most: 40 };

/** Vectors of 90 entries on average: token floor(u^2.2 * 30,000), weight 0.1 to 2.1. */
export function* sparseRows({ rows, seed }: SparseSet): Generator<SparseVector> {
  const random = new Xorshift32(seed);
  for (let row = 0; row < rows; row += 1) yield sparseVector(random, rowEntries);
}

export function sparseQueries({ queries, seed }: SparseSet): SparseVector[] {
  const random = new Xorshift32(seed ^ 0x9e37);
  return Array.from({ length: queries }, () => sparseVector(random, queryEntries));
}

/** For each query the rows of the greatest dot products, by adding up every posting. Kept in the cache: this takes up to a minute. */
export function exactSparse(set: SparseSet): number[][] {
  const name = `sparse-v${generatorVersion}-seed${set.seed}-${set.rows}-${set.queries}`;
  return cachedJson(`${name}-truth.json`, () => addUp(set));
}

function addUp(set: SparseSet): number[][] {
  const queries = sparseQueries(set).map(({ indices, values }) => {
    const weights = new Float64Array(tokens);
    for (const [at, token] of indices.entries()) weights[token] = values[at] ?? 0;
    return { weights, best: [] as { row: number; score: number }[] };
  });
  let row = 0;
  for (const { indices, values } of sparseRows(set)) {
    for (const { weights, best } of queries) {
      let score = 0;
      for (let at = 0; at < indices.length; at += 1) score += (weights[indices[at] ?? 0] ?? 0) * (values[at] ?? 0);
      if (best.length === neighbours && score <= (best.at(-1)?.score ?? 0)) continue;
      best.push({ row, score });
      best.sort((left, right) => right.score - left.score);
      if (best.length > neighbours) best.pop();
    }
    row += 1;
  }
  return queries.map(({ best }) => best.map((hit) => hit.row));
}

function sparseVector(random: Xorshift32, { least, most }: { least: number; most: number }): SparseVector {
  const count = least + random.below(most - least + 1);
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(Math.floor(random.unit() ** skew * tokens));
  const indices = Uint32Array.from(chosen).sort();
  return { indices, values: Float32Array.from(indices, () => 0.1 + 2 * random.unit()) };
}
