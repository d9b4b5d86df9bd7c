/** hnswlib through its own addon, answering the commands of `engines/vector-engine-commands.ts`: cosine, one thread. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { peerGraph, serveVectorEngine } from '../engines/vector-engine-commands.ts';
import { installPackage, loadPackage } from '../processes/cached-package.ts';
import { cacheDirectory } from '../workloads/document-file.ts';
import { readQueries, readRows, type VectorSet } from '../workloads/vector-set.ts';

interface Hnsw {
  initIndex(rows: number, links: number, buildCandidates: number, seed: number): void;
  addPoint(vector: number[], label: number): void;
  setEf(candidates: number): void;
  searchKnn(query: number[], limit: number): { neighbors: number[] };
  writeIndexSync(path: string): void;
  readIndexSync(path: string): void;
}

await installPackage('hnswlib-node');
const { HierarchicalNSW } = loadPackage<{ HierarchicalNSW: new (space: string, dimension: number) => Hnsw }>(
  'hnswlib-node',
);
const batch = 10_000;
const { links, buildCandidates } = peerGraph;
let index: Hnsw | undefined;
let queries: number[][] = [];

await serveVectorEngine<{ neighbors: number[] }>({
  async build({ dense }) {
    if (!dense) throw new Error('hnswlib has dense vectors only');
    index = new HierarchicalNSW('cosine', dense.dimension);
    queries = readQueries(dense).map((query) => Array.from(query));
    // It builds on one thread, minutes for the large sets, and its building is not measured.
    const path = join(cacheDirectory, `${dense.name}-${dense.rows}-${links}-${buildCandidates}.hnswlib`);
    const start = performance.now();
    if (existsSync(path)) index.readIndexSync(path);
    else {
      addAll(index, dense);
      index.writeIndexSync(path);
    }
    return { seconds: (performance.now() - start) / 1_000 };
  },
  prepare({ effort, limit }) {
    const built = index;
    if (!built) throw new Error('nothing is built');
    built.setEf(effort);
    return { queries: queries.length, search: (query) => built.searchKnn(queries[query] ?? [], limit) };
  },
  rowsOf: ({ neighbors }) => neighbors,
});

function addAll(hnsw: Hnsw, set: VectorSet): void {
  hnsw.initIndex(set.rows, links, buildCandidates, 100);
  for (let first = 0; first < set.rows; first += batch) {
    const rows = readRows(set, first, batch);
    for (let at = 0; at * set.dimension < rows.length; at += 1) {
      hnsw.addPoint(Array.from(rows.subarray(at * set.dimension, (at + 1) * set.dimension)), first + at);
    }
  }
}
