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
/** Characters of a text that are copied one by one. */
const shortTextMax = 64;

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
  const sorted = isSorted(edges) ? edges : edges.toSorted(compareEdges);
  assert(sorted === edges || isSorted(sorted), 'an edge is there twice');
  // The writer waits for a list of up to a million edges: one buffer, written once, takes a fifth of the time of pieces.
  const payload = Buffer.allocUnsafe(sorted.reduce((bytes, edge) => bytes + encodedBytes(edge), 4));
  payload.writeUInt32LE(sorted.length, 0);
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  let at = 4;
  for (const edge of sorted) at = encode(edge, payload, view, at);
  return partBody(partId, partForm.edges, payload, sourceHash);
}

function isSorted(edges: readonly Edge[]): boolean {
  return edges.every((edge, at) => at === 0 || compareEdges(edges[at - 1] as Edge, edge) < 0);
}

function encodedBytes({ type, target, metadata, since }: Edge): number {
  const texts = Buffer.byteLength(type) + Buffer.byteLength(target) + Buffer.byteLength(metadata);
  return edgeBytes + (since === 0 ? 0 : 8) + texts;
}

/** Writes an edge; returns where the next one begins. */
function encode(edge: Edge, payload: Buffer, view: DataView, at: number): number {
  const { since } = edge;
  assert(Number.isFinite(Math.fround(edge.weight)), 'an edge whose weight 32 bits cannot hold');
  const texts = at + (since === 0 ? edgeBytes : edgeBytes + 8);
  const typeBytes = writeText(payload, edge.type, texts);
  const targetBytes = writeText(payload, edge.target, texts + typeBytes);
  const metadataBytes = writeText(payload, edge.metadata, texts + typeBytes + targetBytes);
  assert(typeBytes <= typeBytesMax, 'an edge whose type is too long');
  view.setUint16(at, typeBytes, true);
  view.setUint8(at + 2, (edge.origin === 'derived' ? isDerived : 0) | (since === 0 ? 0 : hasSince));
  view.setUint8(at + 3, 0);
  view.setUint32(at + 4, targetBytes, true);
  view.setUint32(at + 8, metadataBytes, true);
  view.setFloat32(at + 12, edge.weight, true);
  writeI64(view, at + 16, edge.createdMs);
  writeI64(view, at + 24, edge.updatedMs);
  if (since !== 0) writeI64(view, at + 32, since);
  return texts + typeBytes + targetBytes + metadataBytes;
}

/** A call of the runtime takes as long as all else about an edge. Returns how many bytes the text has. */
function writeText(payload: Buffer, text: string, at: number): number {
  if (text.length > shortTextMax) return payload.write(text, at);
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit > 0x7f) return payload.write(text, at);
    payload[at + index] = unit;
  }
  return text.length;
}

function writeI64(view: DataView, at: number, value: number): void {
  view.setInt32(at + 4, Math.floor(value / 2 ** 32), true);
  view.setUint32(at, value, true);
}

/** How many edges a body of form 4 has. */
export function edgeCountOf(body: Uint8Array): number {
  return new PayloadReader(payloadViewOf(body)).u32();
}

/** The edges of a body of form 4, sorted. */
export function readEdges(body: Uint8Array): Edge[] {
  const reader = new PayloadReader(payloadViewOf(body));
  // Edges are sorted by their types.
  let type = '';
  const edges = Array.from({ length: reader.count(edgeBytes) }, (): Edge => {
    const typeBytes = reader.u16();
    const flags = reader.u8();
    const origin = (flags & isDerived) !== 0 ? 'derived' : 'declared';
    reader.u8();
    const [targetBytes, metadataBytes] = [reader.u32(), reader.u32()];
    const [weight, createdMs, updatedMs] = [reader.f32(), reader.i64(), reader.i64()];
    const since = (flags & hasSince) !== 0 ? reader.i64() : 0;
    type = reader.textLike(type, typeBytes);
    const target = reader.text(targetBytes);
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
