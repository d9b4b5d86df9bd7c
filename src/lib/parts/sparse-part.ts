import { partBody, partForm } from './part-body.ts';

export interface SparseVector {
  /** Ascending, each once. */
  indices: Uint32Array;
  values: Float32Array;
}

/** Form 2: one sparse vector. The payload is all indices u32, then as many values f32. */
export function sparseBody(
  partId: number,
  { indices, values }: SparseVector,
  sourceHash?: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const payload = new Uint8Array(8 * indices.length);
  payload.set(new Uint8Array(indices.buffer, indices.byteOffset, indices.byteLength));
  payload.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 4 * indices.length);
  return partBody(partId, partForm.sparse, payload, sourceHash);
}
