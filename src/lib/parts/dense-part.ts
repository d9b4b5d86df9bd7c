import { partBody, partForm } from './part-body.ts';

/** Form 1: one dense vector. The payload is an f32 for each dimension. */
export function denseBody(partId: number, vector: Float32Array, sourceHash?: Uint8Array): Uint8Array<ArrayBuffer> {
  const payload = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  return partBody(partId, partForm.dense, payload, sourceHash);
}
