import { describe, expect, test } from 'bun:test';
import { searchGraph } from '../../../src/engine/native-graph.ts';
import { NativeIndex } from '../../../src/engine/native-index.ts';
import { queryIndexes } from '../../../src/engine/native-query.ts';
import { definitionJson, type IndexDefinition, isVectorIndex, kindOf } from '../../../src/index-kinds/all-kinds.ts';
import type { RangeIndex } from '../../../src/indexing/range-index.ts';
import { FrameBuilder, rowKind, rowOrdinalIsNew } from '../../../src/lib/document-frame.ts';
import { type Edge, edgesBody } from '../../../src/lib/parts/edges-part.ts';
import { hitCount, numberOf } from '../../../src/query/execution/query-target.ts';
import { planQuery } from '../../../src/query/plan/query-plan.ts';
import { type ContractRow, rangeIndexContract } from '../../contracts/range-index.ts';

const identity = { name: 'i', incarnation: 3, partId: 7, memOnly: false };
type OwnIndex = Exclude<IndexDefinition, { kind: 'algebraic' }>;
const definitions: OwnIndex[] = [
  { ...identity, kind: 'full_text', schema: undefined },
  { ...identity, kind: 'dense', dimension: 2, metric: 'l2_squared' },
  { ...identity, kind: 'sparse', minWeight: 0, topK: 10 },
  { ...identity, kind: 'graph', ttlMs: undefined, edgeTypes: [], maxEdges: 0 },
];
/** Every document has one to the same target. */
const edge: Edge = {
  type: 'near',
  target: 'hub',
  origin: 'declared',
  weight: 1,
  createdMs: 1,
  updatedMs: 1,
  since: 0,
  metadata: '',
};
const calm = new AbortController();
const none = new Uint8Array(0);

/** The body of a vector row: id of its index, form, payload (`lib/parts/part-body.ts`). */
function vectorBody(kind: 'dense' | 'sparse', indexId: number, seed: number): Uint8Array {
  const body = new Uint8Array(16);
  const view = new DataView(body.buffer);
  view.setUint32(0, indexId, true);
  view.setUint8(4, kind === 'dense' ? 1 : 2);
  // Dense: two values; sparse: the index 1 and its value.
  if (kind === 'dense') view.setFloat32(8, seed, true);
  else view.setUint32(8, 1, true);
  view.setFloat32(12, 1, true);
  return body;
}

function frameOf(definition: OwnIndex, rows: readonly ContractRow[]): Uint8Array<ArrayBuffer> {
  const frame = new FrameBuilder();
  const append = (
    kind: (typeof rowKind)[keyof typeof rowKind],
    { ordinal, sequence }: ContractRow,
    body: Uint8Array,
  ) => {
    const row = frame.append(kind, kind === rowKind.delete ? none : `k${ordinal}`, body);
    frame.setOrdinal(row, ordinal);
    frame.setSequence(row, sequence);
    if (kind === rowKind.put) frame.setFlags(row, rowOrdinalIsNew);
  };
  const textBody = (text: string) => new TextEncoder().encode(JSON.stringify({ text }));
  for (const row of rows) {
    if (row.text === undefined) append(rowKind.delete, row, none);
    else if (definition.kind === 'full_text') {
      append(rowKind.put, row, textBody(row.text));
      append(rowKind.partPut, row, vectorBody('dense', 99, row.ordinal));
    } else if (definition.kind === 'graph') {
      append(rowKind.put, row, textBody(row.text));
      append(rowKind.partPut, row, edgesBody(definition.partId, [edge]));
      append(rowKind.partPut, row, vectorBody('dense', 99, row.ordinal));
    } else {
      append(rowKind.put, row, textBody(row.text));
      append(rowKind.partPut, row, vectorBody(definition.kind, definition.partId, row.ordinal));
      append(rowKind.partPut, row, vectorBody('dense', 99, row.ordinal));
    }
  }
  return frame.finish();
}

/** Ordinals that match everything, or that have a vector or an edge. */
async function found(definition: OwnIndex, index: RangeIndex): Promise<number[]> {
  if (definition.kind === 'graph') {
    const bounds = { edges_max: 1_000, nodes_max: 1_000, millis_max: 10_000 };
    const search = { edges: { limit: 50, after: null } };
    const request = { search, starts: ['hub'], direction: 'in', range_starts: [''], ...bounds } as const;
    const { edges = [] } = await searchGraph([index.handle], request, {}, calm);
    return edges.map(({ source }) => Number(source.slice(1))).sort((left, right) => left - right);
  }
  const vectors = { dense: [0, 0], sparse: { indices: [1], values: [1] } };
  const request = isVectorIndex(definition)
    ? { embeddings: { i: vectors[definition.kind] }, limit: 50 }
    : { limit: 50 };
  const planned = planQuery(request, { name: 't', nowMs: 0, indexes: [definition] });
  const text = { ...identity, name: 'text', memOnly: true, kind: 'full_text', schema: undefined } as const;
  const keys = isVectorIndex(definition) ? await NativeIndex.open('unused', text, false) : undefined;
  try {
    const handles = [keys?.handle ?? index.handle];
    const vectorHandles = keys ? [index.handle] : [];
    const options = { vectorHandles, vectors: planned.vectors };
    const hits = await queryIndexes(handles, JSON.stringify(planned.plan), calm, options);
    const ordinals = Array.from({ length: hitCount(hits) }, (_, at) => numberOf(hits, at, 'ordinal'));
    return ordinals.sort((left, right) => left - right);
  } finally {
    await keys?.close();
  }
}

describe.each(definitions.map((definition) => [definition.kind, definition] as const))('%s', (_, definition) => {
  rangeIndexContract({
    open: (directory, wipe) => NativeIndex.open(directory, definition, wipe),
    frame: (rows) => frameOf(definition, rows),
    found: (index) => found(definition, index),
  });
});

test('a kind says which rows concern its indexes, and how they are searched', () => {
  const told = definitions.map((definition) => {
    const { kind, follows, vectorSearch } = kindOf(definition);
    return [
      kind,
      follows,
      vectorSearch?.hasDistance,
      vectorSearch?.takesEffort,
      vectorSearch?.defaultLimit(definition),
    ];
  });
  expect(told).toEqual([
    ['full_text', 'documents', undefined, undefined, undefined],
    ['dense', 'parts', true, true, undefined],
    ['sparse', 'parts', false, false, 10],
    ['graph', 'parts', undefined, undefined, undefined],
  ]);
});

test('vectors of a table that is loaded before anybody searches it wait for a graph until there are many', async () => {
  const definition = { ...identity, kind: 'dense', dimension: 2, metric: 'l2_squared', memOnly: true } as const;
  expect(JSON.parse(definitionJson(definition, true))).toEqual({
    ...JSON.parse(definitionJson(definition)),
    tail_bytes: 64 * 1_024 * 1_024,
  });
  // The engine refuses options that it does not know.
  const index = await NativeIndex.open('unused', definition, false, true);
  await index.close();
});
