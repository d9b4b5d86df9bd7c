/** Our indexes through the native calls that the server makes, answering the commands of `engines/vector-engine-commands.ts`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nativeAddon } from '../../src/engine/native-addon.ts';
import { NativeIndex } from '../../src/engine/native-index.ts';
import type { IndexDefinition } from '../../src/index-kinds/all-kinds.ts';
import { must } from '../../src/lib/assert.ts';
import { FrameBuilder, type RowKind, rowKind } from '../../src/lib/document-frame.ts';
import { hitCount, type NativeHits, numberOf } from '../../src/query/execution/query-target.ts';
import type { NativePlan } from '../../src/query/plan/native-plan.ts';
import { type BuildCommand, type SearchCommand, serveVectorEngine } from '../engines/vector-engine-commands.ts';
import { untilIdle } from '../measure/until-idle.ts';
import { type SparseSet, type SparseVector, sparseQueries, sparseRows } from '../workloads/sparse-vectors.ts';
import { readBuckets, readQueries, readRows, type VectorSet } from '../workloads/vector-set.ts';

const batch = 1_000;
const legName = 'vector';
const indexId = 2;
const noOperation = 0;
const noBytes = new Uint8Array();

const textDefinition: IndexDefinition = {
  kind: 'full_text',
  name: 'text',
  incarnation: 1,
  partId: 1,
  memOnly: false,
  schema: undefined,
};

interface Built {
  text: NativeIndex;
  vector: NativeIndex;
  kind: 'dense' | 'sparse';
  /** The query vectors as they travel. */
  queries: Uint8Array[];
}

let built: Built | undefined;

await serveVectorEngine<NativeHits>({
  async build(command) {
    const text = await NativeIndex.open(join(command.directory, 'text'), textDefinition, true);
    const vector = await NativeIndex.open(join(command.directory, 'vector'), vectorDefinition(command), true);
    const { dense, sparse } = command;
    await load(text, rowKind.put, documentBodies(command));
    const start = performance.now();
    await load(vector, rowKind.partPut, dense ? denseBodies(dense) : sparseBodies(must(sparse, 'vectors')));
    const lastBusy = await untilIdle(() => {
      const { user, system } = process.cpuUsage();
      return user + system;
    });
    const checkpointing = performance.now();
    await vector.checkpoint();
    const seconds = (lastBusy - start + performance.now() - checkpointing) / 1_000;
    const queries = dense ? readQueries(dense).map(bytesOf) : sparseQueries(must(sparse, 'vectors')).map(sparsePayload);
    built = { text, vector, kind: dense ? 'dense' : 'sparse', queries };
    return { seconds };
  },
  prepare(command) {
    const { text, vector, queries, kind } = must(built, 'nothing is built');
    const plans = queries.map((query, at) => JSON.stringify(planOf(command, kind, query.byteLength, at)));
    const withVectors = command.legs !== 'text';
    const handles = withVectors ? [vector.handle] : [];
    const addon = nativeAddon();
    return {
      queries: queries.length,
      search: (query) => {
        const bytes = (withVectors && queries[query]) || noBytes;
        return addon.query([text.handle], handles, plans[query] ?? '', bytes, noOperation, command.inFlight === 1);
      },
    };
  },
  rowsOf: (hits) => Array.from({ length: hitCount(hits) }, (_, at) => numberOf(hits, at, 'ordinal')),
});

function vectorDefinition({ dense }: BuildCommand): IndexDefinition {
  const common = { name: legName, incarnation: indexId, memOnly: false, partId: indexId };
  if (!dense) return { ...common, kind: 'sparse', minWeight: 0, topK: 10 };
  return { ...common, kind: 'dense', dimension: dense.dimension, metric: 'cosine' };
}

/** Applies one row a document, in order, and commits every thousand. */
async function load(index: NativeIndex, kind: RowKind, bodies: Iterable<Uint8Array>): Promise<void> {
  let frame = new FrameBuilder(batch);
  let row = 0;
  const flush = async () => {
    await index.apply(frame.finish());
    await index.commit(row);
    frame = new FrameBuilder(batch);
  };
  for (const body of bodies) {
    const at = frame.append(kind, `row:${row}`, body);
    frame.setOrdinal(at, row);
    frame.setSequence(at, row + 1);
    row += 1;
    if (row % batch === 0) await flush();
  }
  if (row % batch !== 0) await flush();
}

/** The documents that the vectors belong to: their texts, or what filters ask for. */
function* documentBodies({ dense, sparse, textFile }: BuildCommand): Generator<Uint8Array> {
  if (textFile !== undefined) {
    for (const line of readFileSync(textFile, 'utf8').trimEnd().split('\n')) yield Buffer.from(line);
    return;
  }
  const buckets = dense ? readBuckets(dense) : undefined;
  const rows = dense?.rows ?? sparse?.rows ?? 0;
  for (let row = 0; row < rows; row += 1) {
    const body = buckets ? { independent: buckets[row * 2], correlated: buckets[row * 2 + 1] } : {};
    yield Buffer.from(JSON.stringify(body));
  }
}

function* denseBodies(set: VectorSet): Generator<Uint8Array> {
  for (let first = 0; first < set.rows; first += batch) {
    const rows = bytesOf(readRows(set, first, batch));
    for (let at = 0; at < rows.byteLength; at += set.dimension * 4) {
      yield vectorPutBody('dense', rows.subarray(at, at + set.dimension * 4));
    }
  }
}

function* sparseBodies(set: SparseSet): Generator<Uint8Array> {
  for (const vector of sparseRows(set)) yield vectorPutBody('sparse', sparsePayload(vector));
}

/** The body of a vector row, as `src/lib/parts/part-body.ts` describes it. */
function vectorPutBody(form: 'dense' | 'sparse', payload: Uint8Array): Uint8Array {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(indexId, 0);
  head.writeUInt8(form === 'dense' ? 1 : 2, 4);
  return Buffer.concat([head, payload]);
}

function sparsePayload({ indices, values }: SparseVector): Uint8Array {
  return Buffer.concat([bytesOf(indices), bytesOf(values)]);
}

function bytesOf(values: Float32Array | Uint32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function planOf(command: SearchCommand, kind: 'dense' | 'sparse', bytes: number, query: number): NativePlan {
  const { limit, effort, filter, legs = 'vector', texts, window = limit } = command;
  const plan: NativePlan = {
    filter: filter ? [{ kind: 'range', field: filter.field, lt: filter.below, of: 'number', boost: 1 }] : [],
    exclusion: [],
    limit,
    offset: 0,
    sort: [],
    count_only: false,
    exact_total: false,
    total_exact_up_to: 10_000,
  };
  if (legs !== 'vector') {
    const text = must(texts, 'a search of text needs words')[query] ?? '';
    plan.query = { kind: 'match', field: 'body', text, operator: 'or', boost: 1 };
  }
  if (legs !== 'text') {
    const leg = { name: legName, kind, bytes, weight: 1 };
    plan.legs = [kind === 'dense' ? { ...leg, effort } : leg];
    plan.fusion = { strategy: 'rrf', rank_constant: 60, window };
  }
  return plan;
}
