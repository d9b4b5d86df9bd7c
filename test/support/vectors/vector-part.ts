import { formOfBody, partForm, payloadOf } from '../../../src/lib/parts/part-body.ts';
import type { SparseVector } from '../../../src/lib/parts/sparse-part.ts';

/** The vector of a part; undefined for its deletion. */
export function readVector(body: Uint8Array): { dense: Float32Array } | SparseVector | undefined {
  const form = formOfBody(body);
  if (form === partForm.dense) return { dense: readDense(body) };
  return form === partForm.sparse ? readSparse(body) : undefined;
}

/** The vector of a body with one dense vector. */
export function readDense(body: Uint8Array): Float32Array {
  return new Float32Array(payloadOf(body).buffer);
}

/** The vector of a body with one sparse vector. */
export function readSparse(body: Uint8Array): SparseVector {
  const { buffer, byteLength } = payloadOf(body);
  const count = byteLength / 8;
  return { indices: new Uint32Array(buffer, 0, count), values: new Float32Array(buffer, count * 4, count) };
}
