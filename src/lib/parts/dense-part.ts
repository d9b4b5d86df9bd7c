import { partBody, partForm, payloadOf } from './part-body.ts';

/** Form 1: one dense vector. The payload is an f32 for each dimension. */
export function denseBody(partId: number, vector: Float32Array, sourceHash?: Uint8Array): Uint8Array<ArrayBuffer> {
  const payload = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  return partBody(partId, partForm.dense, payload, sourceHash);
}

/** The vector of a body of form 1. */
export function readDense(body: Uint8Array): Float32Array {
  return new Float32Array(payloadOf(body).buffer);
}
