/**
 * USearch through its own addon, answering the commands of
 * `engines/vector-engine-commands.ts`: cosine, bfloat16 (its default), one thread.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { peerGraph, serveVectorEngine } from '../engines/vector-engine-commands.ts';
import { installPackage, loadPackage } from '../processes/cached-package.ts';
import { cacheDirectory } from '../workloads/document-file.ts';
import { readQueries, readRows, type VectorSet } from '../workloads/vector-set.ts';

interface IndexOptions {
  metric: 'cos';
  quantization: 'bf16';
  dimensions: number;
  connectivity: number;
  expansion_add: number;
  expansion_search: number;
}

interface UsearchIndex {
  add(keys: BigUint64Array, vectors: Float32Array, threads: number): void;
  search(query: Float32Array, limit: number, threads: number): { keys: BigUint64Array };
  save(path: string): void;
  load(path: string): void;
}

await installPackage('usearch');
const { Index } = loadPackage<{ Index: new (options: IndexOptions) => UsearchIndex }>('usearch');
const batch = 10_000;
const { links, buildCandidates } = peerGraph;
let built: { path: string; dimension: number } | undefined;
let queries: Float32Array[] = [];

await serveVectorEngine<{ keys: BigUint64Array }>({
  async build({ dense }) {
    if (!dense) throw new Error('USearch has dense vectors only');
    queries = readQueries(dense).map((query) => Float32Array.from(query));
    const path = join(cacheDirectory, `${dense.name}-${dense.rows}-${links}-${buildCandidates}.usearch`);
    built = { path, dimension: dense.dimension };
    const start = performance.now();
    if (!existsSync(path)) addAll(indexOf(dense.dimension, buildCandidates), dense).save(path);
    return { seconds: (performance.now() - start) / 1_000 };
  },
  prepare({ effort, limit }) {
    if (!built) throw new Error('nothing is built');
    // How wide an index searches is said when it is opened.
    const index = indexOf(built.dimension, effort);
    index.load(built.path);
    return { queries: queries.length, search: (query) => index.search(queries[query] ?? new Float32Array(), limit, 1) };
  },
  rowsOf: ({ keys }) => Array.from(keys, Number),
});

function indexOf(dimensions: number, candidates: number): UsearchIndex {
  return new Index({
    metric: 'cos',
    quantization: 'bf16',
    dimensions,
    connectivity: links,
    expansion_add: buildCandidates,
    expansion_search: candidates,
  });
}

function addAll(index: UsearchIndex, set: VectorSet): UsearchIndex {
  for (let first = 0; first < set.rows; first += batch) {
    const rows = readRows(set, first, batch);
    const keys = BigUint64Array.from({ length: rows.length / set.dimension }, (_, at) => BigInt(first + at));
    index.add(keys, rows, 0);
  }
  return index;
}
