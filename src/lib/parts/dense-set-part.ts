import { assert } from '../assert.ts';
import { partBody, partForm, payloadOf } from './part-body.ts';
import { PayloadReader } from './payload-reader.ts';
import { hashBytes, setMax, type TextSpan } from './text-span.ts';

const spanBytes = 8 + hashBytes;

export interface SpanVector extends TextSpan {
  vector: Float32Array;
}

/**
 * Form 3: several dense vectors of one document, one for each chunk of its text, all of one dimension.
 *
 *     0 dimension u32, 4 count u32, then for each vector: start u32, end u32, 16 bytes of its hash;
 *     then for each vector: an f32 for each dimension
 */
export function denseSetBody(
  partId: number,
  vectors: readonly SpanVector[],
  sourceHash?: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const dimension = vectors[0]?.vector.length ?? 0;
  assert(vectors.length > 0 && vectors.length <= setMax, 'a set of vectors with a count out of bounds');
  const payload = new Uint8Array(8 + vectors.length * (spanBytes + 4 * dimension));
  const view = new DataView(payload.buffer);
  view.setUint32(0, dimension, true);
  view.setUint32(4, vectors.length, true);
  for (const [at, { start, end, hash, vector }] of vectors.entries()) {
    assert(vector.length === dimension, 'a set of vectors of several dimensions');
    const span = 8 + spanBytes * at;
    view.setUint32(span, start, true);
    view.setUint32(span + 4, end, true);
    payload.set(hash.subarray(0, hashBytes), span + 8);
    const values = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
    payload.set(values, 8 + spanBytes * vectors.length + 4 * dimension * at);
  }
  return partBody(partId, partForm.denseSet, payload, sourceHash);
}

/** The vectors of a body of form 3. */
export function readDenseSet(body: Uint8Array): SpanVector[] {
  const reader = new PayloadReader(payloadOf(body));
  const { dimension, spans } = readHead(reader);
  const vectors = spans.map((span) => ({
    ...span,
    vector: new Float32Array(new Uint8Array(reader.bytes(4 * dimension)).buffer),
  }));
  reader.end();
  return vectors;
}

/** Spans of text behind the vectors of a body of form 3. */
export function readDenseSpans(body: Uint8Array): TextSpan[] {
  return readHead(new PayloadReader(payloadOf(body))).spans;
}

function readHead(reader: PayloadReader): { dimension: number; spans: TextSpan[] } {
  const [dimension, count] = [reader.u32(), reader.count(spanBytes)];
  const span = () => ({ start: reader.u32(), end: reader.u32(), hash: reader.bytes(hashBytes) });
  return { dimension, spans: Array.from({ length: count }, span) };
}
