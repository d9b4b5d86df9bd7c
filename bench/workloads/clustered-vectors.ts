import { Gaussian } from './gaussian.ts';
import { bucketCount, type VectorSet, vectorSet, withQueries } from './vector-set.ts';
import { Xorshift32 } from './xorshift32.ts';

const generatorVersion = 1;
/** Length of what separates a row from its centre, on average; centres have length 1. */
const spreadLength = 0.25;
const spectrumDecay = 0.7;
const offClusterShare = 0.05;

/**
 * Unit vectors in sqrt(rows) clusters: centres anywhere on the sphere, sizes by Zipf, spread mostly along 20 to 40
 * directions. Queries are drawn as rows are, but for one in twenty that lies off the clusters. A bucket is either random or
 * the row's place in the order of the clusters, so that a filter keeps whole clusters and loses others.
 */
export function clusteredVectors(options: {
  rows: number;
  queries: number;
  dimension: number;
  seed: number;
}): VectorSet {
  const { rows, queries, dimension, seed } = options;
  const name = `clustered-v${generatorVersion}-seed${seed}-d${dimension}`;
  return vectorSet({ name, rows, queries, dimension, filtered: true }, () => {
    const clusters = new Clusters(rows, dimension, seed);
    const clusterOf = new Uint16Array(rows);
    return {
      rows: mapRange(rows, (row) => {
        const cluster = clusters.draw();
        clusterOf[row] = cluster;
        return clusters.member(cluster);
      }),
      queries: mapRange(queries, (query) =>
        query % Math.round(1 / offClusterShare) === 0 ? clusters.anywhere() : clusters.member(clusters.draw()),
      ),
      buckets: () => bucketsOf(clusterOf, new Xorshift32(seed ^ 0xb0c)),
    };
  });
}

/** Such a set asked for queries that lie anywhere on the sphere: far from all rows, as texts are from images. */
export function hardQueries(set: VectorSet, seed: number): VectorSet {
  return withQueries(set, `${set.name}-off`, () => {
    const clusters = new Clusters(1, set.dimension, seed ^ 0x0ff);
    return mapRange(set.queries, () => clusters.anywhere());
  });
}

class Clusters {
  readonly #random: Xorshift32;
  readonly #gaussian: Gaussian;
  readonly #centres: Float32Array[];
  /** The share of all rows that lies in a cluster or those before it. */
  readonly #upTo: Float64Array;
  readonly #spread: Float64Array;

  constructor(rows: number, dimension: number, seed: number) {
    this.#random = new Xorshift32(seed ^ dimension);
    this.#gaussian = new Gaussian(this.#random);
    const count = Math.max(1, Math.floor(Math.sqrt(rows)));
    const shares = Float64Array.from({ length: count }, (_, rank) => 1 / (rank + 1));
    const total = shares.reduce((sum, share) => sum + share);
    let sum = 0;
    this.#upTo = shares.map((share) => {
      sum += share / total;
      return sum;
    });
    const spectrum = Float64Array.from({ length: dimension }, (_, at) => (at + 1) ** -spectrumDecay);
    const mean = spectrum.reduce((left, right) => left + right) / dimension;
    this.#spread = spectrum.map((value) => (spreadLength / Math.sqrt(dimension)) * Math.sqrt(value / mean));
    this.#centres = Array.from({ length: count }, () => this.anywhere());
  }

  draw(): number {
    const share = this.#random.unit();
    const cluster = this.#upTo.findIndex((upTo) => share < upTo);
    return cluster < 0 ? this.#upTo.length - 1 : cluster;
  }

  member(cluster: number): Float32Array {
    const centre = this.#centres[cluster] ?? new Float32Array(this.#spread.length);
    return unit(centre.map((value, at) => value + this.#gaussian.next() * (this.#spread[at] ?? 0)));
  }

  anywhere(): Float32Array {
    return unit(Float32Array.from(this.#spread, () => this.#gaussian.next()));
  }
}

/** Rows in the order of their clusters, clusters in a random order, cut into a thousand equal parts. */
function bucketsOf(clusterOf: Uint16Array, random: Xorshift32): Uint16Array {
  const place = new Map<number, number>();
  for (const cluster of clusterOf) if (!place.has(cluster)) place.set(cluster, random.unit());
  const order = Array.from(clusterOf, (cluster, row) => ({ row, place: place.get(cluster) ?? 0 }));
  order.sort((left, right) => left.place - right.place || left.row - right.row);
  const buckets = new Uint16Array(clusterOf.length * 2);
  for (const [rank, { row }] of order.entries()) {
    buckets[row * 2] = random.below(bucketCount);
    buckets[row * 2 + 1] = Math.floor((rank * bucketCount) / clusterOf.length);
  }
  return buckets;
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / length);
}

function* mapRange<Value>(count: number, value: (at: number) => Value): Generator<Value> {
  for (let at = 0; at < count; at += 1) yield value(at);
}
