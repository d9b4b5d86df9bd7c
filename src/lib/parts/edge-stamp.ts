const sequenceBytes = 8;
const contentBytes = 8;
/** Stands for the document that a list comes with, where it is copied to a place with other sequences. */
const ofItsDocument = 0n;

/**
 * The origin of a list of edges, in the place of a source hash: the sequence of the document (u64), then 64 bits of a
 * hash. Edges count from the write of their document on, so that they are made again with each, also of an equal artifact.
 */
export function edgeStamp(documentSequence: number, madeFrom: string): Uint8Array {
  const stamp = new Uint8Array(sequenceBytes + contentBytes);
  new DataView(stamp.buffer).setBigUint64(0, BigInt(documentSequence), true);
  const hash = new Bun.CryptoHasher('sha256').update(madeFrom).digest();
  stamp.set(hash.subarray(0, contentBytes), sequenceBytes);
  return stamp;
}

/** The stamp of a list that leaves its range with the document of this sequence. */
export function leavingStamp(stamp: Uint8Array, documentSequence: number): Uint8Array {
  const isOfIt = viewOf(stamp).getBigUint64(0, true) === BigInt(documentSequence);
  return isOfIt ? withSequence(stamp, ofItsDocument) : stamp;
}

/** The stamp of a list that has come with a document, which has got this sequence. */
export function arrivedStamp(stamp: Uint8Array, documentSequence: number): Uint8Array {
  const isOfIt = viewOf(stamp).getBigUint64(0, true) === ofItsDocument;
  return isOfIt ? withSequence(stamp, BigInt(documentSequence)) : stamp;
}

function withSequence(stamp: Uint8Array, sequence: bigint): Uint8Array {
  const changed = new Uint8Array(stamp);
  viewOf(changed).setBigUint64(0, sequence, true);
  return changed;
}

function viewOf(stamp: Uint8Array): DataView {
  return new DataView(stamp.buffer, stamp.byteOffset, stamp.byteLength);
}
