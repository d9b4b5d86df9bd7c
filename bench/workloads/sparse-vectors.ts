import { cachedJson } from './document-file.ts';
import { neighbours } from './exact-neighbours.ts';
import { Xorshift32 } from './xorshift32.ts';

/** Made from the seed wherever it is needed: it takes a second. */
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

/** `exactSparse`, kept in the cache: it takes half a minute for the large sets. */
export function sparseTruth(set: SparseSet): number[][] {
  const name = `sparse-v${generatorVersion}-seed${set.seed}-${set.rows}-${set.queries}`;
  return cachedJson(`${name}-truth.json`, () => exactSparse(set));
}

/** For each query the rows of the greatest dot products, by adding up every posting. */
export function exactSparse(set: SparseSet): number[][] {
  const postings = Array.from({ length: tokens }, () => ({ rows: [] as number[], weights: [] as number[] }));
  let row = 0;
  for (const { indices, values } of sparseRows(set)) {
    for (let at = 0; at < indices.length; at += 1) {
      const list = postings[indices[at] ?? 0];
      list?.rows.push(row);
      list?.weights.push(values[at] ?? 0);
    }
    row += 1;
  }
  return sparseQueries(set).map(({ indices, values }) => {
    const scores = new Float64Array(set.rows);
    for (const [entry, token] of indices.entries()) {
      const { rows, weights } = postings[token] ?? { rows: [], weights: [] };
      const weight = values[entry] ?? 0;
      for (let at = 0; at < rows.length; at += 1) {
        const place = rows[at] ?? 0;
        scores[place] = (scores[place] ?? 0) + weight * (weights[at] ?? 0);
      }
    }
    return bestOf(scores);
  });
}

/** The rows of the highest scores, best first. */
function bestOf(scores: Float64Array): number[] {
  const best: number[] = [];
  const scoreAt = (rank: number) => scores[best[rank] ?? 0] ?? 0;
  for (let row = 0; row < scores.length; row += 1) {
    const score = scores[row] ?? 0;
    if (best.length === neighbours && score <= scoreAt(neighbours - 1)) continue;
    let rank = best.length;
    while (rank > 0 && scoreAt(rank - 1) < score) rank -= 1;
    best.splice(rank, 0, row);
    if (best.length > neighbours) best.pop();
  }
  return best;
}

function sparseVector(random: Xorshift32, { least, most }: { least: number; most: number }): SparseVector {
  const count = least + random.below(most - least + 1);
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(Math.floor(random.unit() ** skew * tokens));
  const indices = Uint32Array.from(chosen).sort();
  return { indices, values: Float32Array.from(indices, () => 0.1 + 2 * random.unit()) };
}
