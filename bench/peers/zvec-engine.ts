/** zvec through its own addon, answering the commands of `engines/vector-engine-commands.ts`. */
import { join } from 'node:path';
import {
  type ZVecCollection,
  ZVecCollectionSchema,
  ZVecCreateAndOpen,
  ZVecDataType,
  type ZVecDocInput,
  ZVecIndexType,
  ZVecMetricType,
} from '@zvec/zvec';
import { type BuildCommand, peerGraph, serveVectorEngine } from '../engines/vector-engine-commands.ts';
import { sparseQueries, sparseRows } from '../workloads/sparse-vectors.ts';
import { readBuckets, readQueries, readRows } from '../workloads/vector-set.ts';

type Vector = Float32Array | Record<number, number>;

const batch = 1_000;
let collection: ZVecCollection | undefined;
let queries: Vector[] = [];

await serveVectorEngine<{ id: string }[]>({
  async build(command) {
    const start = performance.now();
    collection = ZVecCreateAndOpen(join(command.directory, 'zvec'), schemaOf(command));
    let waiting: ZVecDocInput[] = [];
    for (const document of documentsOf(command)) {
      waiting.push(document);
      if (waiting.length < batch) continue;
      insert(collection, waiting);
      waiting = [];
    }
    if (waiting.length > 0) insert(collection, waiting);
    collection.optimizeSync();
    const seconds = (performance.now() - start) / 1_000;
    queries = command.dense ? readQueries(command.dense) : command.sparse ? sparseQueries(command.sparse).map(map) : [];
    return { seconds };
  },
  prepare({ effort, limit, filter }) {
    const built = collection;
    if (!built) throw new Error('nothing is built');
    const common = {
      fieldName: 'vector',
      topk: limit,
      outputFields: [],
      params: { indexType: ZVecIndexType.HNSW, ef: effort },
      ...(filter ? { filter: `${filter.field} < ${filter.below}` } : {}),
    };
    return { queries: queries.length, search: (query) => built.querySync({ ...common, vector: queries[query] ?? {} }) };
  },
  rowsOf: (hits) => hits.map(({ id }) => Number(id)),
});

function schemaOf({ dense }: BuildCommand): ZVecCollectionSchema {
  const { links: m, buildCandidates: efConstruction } = peerGraph;
  const graph = { indexType: ZVecIndexType.HNSW, m, efConstruction };
  const number = { dataType: ZVecDataType.INT32, indexParams: { indexType: ZVecIndexType.INVERT } };
  const vectors = dense
    ? {
        name: 'vector',
        dataType: ZVecDataType.VECTOR_FP32,
        dimension: dense.dimension,
        indexParams: { ...graph, metricType: ZVecMetricType.COSINE },
      }
    : {
        name: 'vector',
        dataType: ZVecDataType.SPARSE_VECTOR_FP32,
        indexParams: { ...graph, metricType: ZVecMetricType.IP },
      };
  const fields = dense?.bucketsFile
    ? [
        { name: 'independent', ...number },
        { name: 'correlated', ...number },
      ]
    : [];
  return new ZVecCollectionSchema({ name: 'bench', vectors, fields });
}

function* documentsOf({ dense, sparse }: BuildCommand): Generator<ZVecDocInput> {
  if (sparse) {
    let row = 0;
    for (const vector of sparseRows(sparse)) {
      yield { id: String(row), vectors: { vector: map(vector) } };
      row += 1;
    }
  }
  if (!dense) return;
  const { dimension, rows } = dense;
  const buckets = readBuckets(dense);
  for (let first = 0; first < rows; first += batch) {
    const block = readRows(dense, first, batch);
    for (let row = first; row < Math.min(rows, first + batch); row += 1) {
      const vector = block.slice((row - first) * dimension, (row - first + 1) * dimension);
      const fields = { independent: buckets?.[row * 2] ?? 0, correlated: buckets?.[row * 2 + 1] ?? 0 };
      yield { id: String(row), vectors: { vector }, ...(buckets ? { fields } : {}) };
    }
  }
}

function map({ indices, values }: { indices: Uint32Array; values: Float32Array }): Record<number, number> {
  return Object.fromEntries(Array.from(indices, (token, at) => [token, values[at] ?? 0]));
}

function insert(into: ZVecCollection, documents: ZVecDocInput[]): void {
  const failed = into.insertSync(documents).find(({ ok }) => !ok);
  if (failed) throw new Error(`zvec refused a document: ${failed.message}`);
}
