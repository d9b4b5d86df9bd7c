import { assert } from '../assert.ts';

/**
 * The body of a part: one blob for a document and a definition (an index, an enrichment), in SQLite and in frames.
 * Little-endian; its twin is `native/base/src/part/`, and each form has a file of its own in both.
 *
 *     0 part id u32, 4 form u8, 5 flags u8, 6 two zero bytes
 *     8 where flag 1 is set: 16 bytes, hash of what the part was made from (flag 2: an asset that a model has not finished)
 *       the payload, by its form
 */
const headBytes = 8;
const hasSourceHash = 1;
const truncatedFlag = 2;
const sourceHashBytes = 16;

export const partForm = {
  deleted: 0,
  dense: 1,
  sparse: 2,
  denseSet: 3,
  edges: 4,
  chunkSet: 5,
  asset: 6,
  sparseSet: 7,
} as const;
type PartForm = (typeof partForm)[keyof typeof partForm];

/** The part id of the index or the enrichment that the part belongs to. */
export function partIdOfBody(body: Uint8Array): number {
  assert(body.byteLength >= headBytes, 'the body of a part is shorter than its head');
  // A view would need the buffer of every body, which the runtime makes when it is first asked for.
  return ((body[0] ?? 0) | ((body[1] ?? 0) << 8) | ((body[2] ?? 0) << 16) | ((body[3] ?? 0) << 24)) >>> 0;
}

/** One of `partForm`, or a number that a later release knows. */
export function formOfBody(body: Uint8Array): number {
  return body[4] ?? partForm.deleted;
}

/** The 16 bytes that say what the part was made from; undefined where nobody has said it. */
export function sourceHashOf(body: Uint8Array): Uint8Array | undefined {
  return hashIsThere(body) ? body.subarray(headBytes, headBytes + sourceHashBytes) : undefined;
}

/** Bytes after the head, copied so that they are aligned. */
export function payloadOf(body: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(payloadViewOf(body));
}

/** Bytes after the head, not copied. */
export function payloadViewOf(body: Uint8Array): Uint8Array {
  return body.subarray(hashIsThere(body) ? headBytes + sourceHashBytes : headBytes);
}

/** A body; `sourceHash` has 16 bytes. */
export function partBody(
  partId: number,
  form: PartForm,
  payload: Uint8Array,
  sourceHash?: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const start = sourceHash ? headBytes + sourceHashBytes : headBytes;
  const body = new Uint8Array(start + payload.byteLength);
  viewOf(body).setUint32(0, partId, true);
  body[4] = form;
  if (sourceHash) {
    body[5] = hasSourceHash;
    body.set(sourceHash.subarray(0, sourceHashBytes), headBytes);
  }
  body.set(payload, start);
  return body;
}

/** Says in the head of a body that a model has not finished what it holds. Returns the body. */
export function markTruncated(body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  body[5] = (body[5] ?? 0) | truncatedFlag;
  return body;
}

export function isTruncated(body: Uint8Array): boolean {
  return ((body[5] ?? 0) & truncatedFlag) !== 0;
}

/** Whether the body is that of a part's deletion. */
export function isPartDelete(body: Uint8Array): boolean {
  return formOfBody(body) === partForm.deleted;
}

/** The body of the row that deletes a part. */
export function partDeleteBody(partId: number): Uint8Array<ArrayBuffer> {
  return partBody(partId, partForm.deleted, new Uint8Array(0));
}

function hashIsThere(body: Uint8Array): boolean {
  return ((body[5] ?? 0) & hasSourceHash) !== 0;
}

function viewOf(body: Uint8Array): DataView {
  return new DataView(body.buffer, body.byteOffset, body.byteLength);
}
