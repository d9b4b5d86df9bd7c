import { assert } from '../assert.ts';
import { partBody, partForm, payloadOf } from './part-body.ts';
import { PayloadReader } from './payload-reader.ts';
import type { SparseVector } from './sparse-part.ts';
import { hashBytes, setMax, type TextSpan } from './text-span.ts';

export interface SpanSparseVector extends TextSpan {
  vector: SparseVector;
}

/**
 * Form 7: several sparse vectors of one document, one for each chunk of its text.
 *
 *     0 count u32, then for each vector: start u32, end u32, 16 bytes of its hash, entries u32;
 *     then for each vector the payload of form 2
 */
export function sparseSetBody(
  partId: number,
  vectors: readonly SpanSparseVector[],
  sourceHash?: Uint8Array,
): Uint8Array<ArrayBuffer> {
  assert(vectors.length > 0 && vectors.length <= setMax, 'a set of vectors with a count out of bounds');
  const pieces: Uint8Array[] = [new Uint8Array(Uint32Array.of(vectors.length).buffer)];
  for (const { start, end, hash, vector } of vectors) {
    pieces.push(new Uint8Array(Uint32Array.of(start, end).buffer), hash.subarray(0, hashBytes));
    pieces.push(new Uint8Array(Uint32Array.of(vector.indices.length).buffer));
  }
  for (const { vector } of vectors) pieces.push(bytesOf(vector.indices), bytesOf(vector.values));
  return partBody(partId, partForm.sparseSet, Buffer.concat(pieces), sourceHash);
}

/** The vectors of a body of form 7. */
export function readSparseSet(body: Uint8Array): SpanSparseVector[] {
  const reader = new PayloadReader(payloadOf(body));
  const heads = readHeads(reader);
  const vectors = heads.map(({ entries, ...span }) => {
    const indices = new Uint32Array(new Uint8Array(reader.bytes(4 * entries)).buffer);
    const values = new Float32Array(new Uint8Array(reader.bytes(4 * entries)).buffer);
    return { ...span, vector: { indices, values } };
  });
  reader.end();
  return vectors;
}

/** Spans of text behind the vectors of a body of form 7. */
export function readSparseSpans(body: Uint8Array): TextSpan[] {
  return readHeads(new PayloadReader(payloadOf(body))).map(({ entries: _, ...span }) => span);
}

function readHeads(reader: PayloadReader): (TextSpan & { entries: number })[] {
  const head = () => ({
    start: reader.u32(),
    end: reader.u32(),
    hash: reader.bytes(hashBytes),
    entries: reader.u32(),
  });
  return Array.from({ length: reader.count(12 + hashBytes) }, head);
}

function bytesOf(numbers: Uint32Array | Float32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}
