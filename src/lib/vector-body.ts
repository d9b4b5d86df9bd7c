/**
 * The body of a vector row: what is stored for one document and one embeddings index, in SQLite and in frames.
 * Little-endian; its twin is `native/base/src/vector_body.rs`.
 *
 *     0 index id u32, 4 form u8 (1 dense, 2 sparse, 0 for the delete of a vector), 5 flags u8, 6 two zero bytes
 *     8 where flag 1 is set: 16 bytes, hash of what the vector was made from
 *       dense: f32 for each dimension; sparse: all indices u32, ascending and unique, then as many values f32
 */
const headBytes = 8;
const hasSourceHash = 1;
const sourceHashBytes = 16;
const forms = { deleted: 0, dense: 1, sparse: 2 } as const;

/** A stored vector. */
type StoredVector = { dense: Float32Array } | { indices: Uint32Array; values: Float32Array };

/** Incarnation of the embeddings index that the row belongs to. */
export function vectorIndexId(body: Uint8Array): number {
  return new DataView(body.buffer, body.byteOffset, body.byteLength).getUint32(0, true);
}

/** Whether the body is that of a vector's deletion. */
export function isVectorDelete(body: Uint8Array): boolean {
  return body[4] === forms.deleted;
}

/** The body of the row that deletes a vector. */
export function vectorDeleteBody(indexId: number): Uint8Array {
  const body = new Uint8Array(headBytes);
  new DataView(body.buffer).setUint32(0, indexId, true);
  return body;
}

/** The vector of a row's body; undefined for the delete of one. */
export function readVectorBody(body: Uint8Array): StoredVector | undefined {
  const payload = body.slice((body[5] ?? 0) & hasSourceHash ? headBytes + sourceHashBytes : headBytes);
  const form = body[4];
  if (form === forms.dense) return { dense: new Float32Array(payload.buffer) };
  if (form !== forms.sparse) return undefined;
  const count = payload.byteLength / 8;
  return {
    indices: new Uint32Array(payload.buffer, 0, count),
    values: new Float32Array(payload.buffer, count * 4, count),
  };
}
