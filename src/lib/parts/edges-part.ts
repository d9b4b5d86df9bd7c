import { assert } from '../assert.ts';
import { compareKeys } from '../key-order.ts';
import { arrivedStamp, leavingStamp } from './edge-stamp.ts';
import { partBody, partForm, partIdOfBody, payloadViewOf, sourceHashOf } from './part-body.ts';
import { PayloadReader } from './payload-reader.ts';

/** Edges of one document in one index, and bytes of a type. */
export const edgesMax = 2 ** 20;
export const typeBytesMax = 0xffff;
/** Of an edge without its texts. */
const edgeBytes = 32;
const isDerived = 1;
const hasSince = 2;

export interface Edge {
  type: string;
  /** Key of the document that the edge leads to, which need not exist. */
  target: string;
  /** `declared` by a write in `_edges`, or `derived` from a field or an artifact of its document. */
  origin: 'declared' | 'derived';
  /** A finite number, kept in 32 bits. */
  weight: number;
  /** Milliseconds since 1970. */
  createdMs: number;
  updatedMs: number;
  /** Sequence of the part by which the edge was written last; 0 for the part that holds it. */
  since: number;
  /** A JSON object; '' for none. */
  metadata: string;
}

const encoder = new TextEncoder();

/** By type, target and origin: what tells the edges of one document apart. Strings compare bytewise. */
export function compareEdges(left: Edge, right: Edge): number {
  return (
    compareKeys(left.type, right.type) ||
    compareKeys(left.target, right.target) ||
    compareKeys(left.origin, right.origin)
  );
}

/**
 * Form 4: the edges that lead from one document, sorted, each of them once. Counts, types and weights have been checked by
 * whoever has read them from a request.
 *
 *     0 count u32, then for each edge:
 *       0 type bytes u16, 2 flags u8 (1: derived, 2: has since), 3 zero, 4 target bytes u32, 8 metadata bytes u32,
 *       12 weight f32, 16 created ms i64, 24 updated ms i64, 32 where flag 2 is set: since u64,
 *       then type, target, metadata (UTF-8)
 */
export function edgesBody(partId: number, edges: readonly Edge[], sourceHash?: Uint8Array): Uint8Array<ArrayBuffer> {
  assert(edges.length <= edgesMax, 'a list of edges with a count out of bounds');
  const sorted = [...edges].sort(compareEdges);
  const heads: Uint8Array[] = [];
  for (const [at, edge] of sorted.entries()) {
    const last = sorted[at - 1];
    assert(!last || compareEdges(last, edge) < 0, 'an edge is there twice');
    heads.push(...encoded(edge));
  }
  const count = new Uint8Array(4);
  new DataView(count.buffer).setUint32(0, sorted.length, true);
  return partBody(partId, partForm.edges, Buffer.concat([count, ...heads]), sourceHash);
}

function encoded(edge: Edge): Uint8Array[] {
  const [type, target, metadata] = [edge.type, edge.target, edge.metadata].map((text) => encoder.encode(text)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  assert(type.byteLength <= typeBytesMax, 'an edge whose type is too long');
  assert(Number.isFinite(Math.fround(edge.weight)), 'an edge whose weight 32 bits cannot hold');
  const head = new DataView(new ArrayBuffer(edge.since === 0 ? edgeBytes : edgeBytes + 8));
  head.setUint16(0, type.byteLength, true);
  head.setUint8(2, (edge.origin === 'derived' ? isDerived : 0) | (edge.since === 0 ? 0 : hasSince));
  head.setUint32(4, target.byteLength, true);
  head.setUint32(8, metadata.byteLength, true);
  head.setFloat32(12, edge.weight, true);
  head.setBigInt64(16, BigInt(edge.createdMs), true);
  head.setBigInt64(24, BigInt(edge.updatedMs), true);
  if (edge.since !== 0) head.setBigUint64(32, BigInt(edge.since), true);
  return [new Uint8Array(head.buffer), type, target, metadata];
}

/** How many edges a body of form 4 has. */
export function edgeCountOf(body: Uint8Array): number {
  return new PayloadReader(payloadViewOf(body)).u32();
}

/** The edges of a body of form 4, sorted. */
export function readEdges(body: Uint8Array): Edge[] {
  const reader = new PayloadReader(payloadViewOf(body));
  const edges = Array.from({ length: reader.count(edgeBytes) }, (): Edge => {
    const typeBytes = reader.u16();
    const flags = reader.u8();
    const origin = (flags & isDerived) !== 0 ? 'derived' : 'declared';
    reader.u8();
    const [targetBytes, metadataBytes] = [reader.u32(), reader.u32()];
    const [weight, createdMs, updatedMs] = [reader.f32(), reader.i64(), reader.i64()];
    const since = (flags & hasSince) !== 0 ? reader.i64() : 0;
    const [type, target] = [reader.text(typeBytes), reader.text(targetBytes)];
    return { type, target, origin, weight, createdMs, updatedMs, since, metadata: reader.text(metadataBytes) };
  });
  reader.end();
  return edges;
}

/** The sequences of a list and of its document. */
interface EdgePlace {
  list: number;
  document: number;
}

/** A list as it leaves its range: all of its edges say since when they are there. */
export function leavingEdges(body: Uint8Array, { list, document }: EdgePlace): Uint8Array<ArrayBuffer> {
  const stamp = sourceHashOf(body);
  return edgesBody(partIdOfBody(body), sinceOf(body, list), stamp && leavingStamp(stamp, document));
}

/** A list from elsewhere, where it was at `list`, with a document that has its sequence here. */
export function arrivedEdges(body: Uint8Array, { list, document }: EdgePlace): Uint8Array<ArrayBuffer> {
  const stamp = sourceHashOf(body);
  return edgesBody(partIdOfBody(body), sinceOf(body, list), stamp && arrivedStamp(stamp, document));
}

function sinceOf(body: Uint8Array, sequence: number): Edge[] {
  return readEdges(body).map((edge) => (edge.since === 0 ? { ...edge, since: sequence } : edge));
}
