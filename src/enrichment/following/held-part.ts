import type { PartStore } from '../../storage/reader/part-store.ts';

/** The part that a document has. */
export interface HeldPart {
  /** Whether it was made from the source of this hash. A damaged one is to be made again, whatever it was made from. */
  isOf(hash: Uint8Array): boolean;
  /** Reads it whole; undefined for a damaged one. */
  body(): Uint8Array | undefined;
}

/** Of these documents, by their ordinals. */
export function heldParts(
  parts: PartStore,
  partId: number,
  ordinals: readonly number[],
): ReadonlyMap<number, HeldPart> {
  const hashes = parts.sourceHashes(ordinals, partId);
  return new Map([...hashes].map(([ordinal, hash]) => [ordinal, heldPart(parts, partId, ordinal, hash)]));
}

function heldPart(parts: PartStore, partId: number, ordinal: number, hash: Uint8Array | undefined): HeldPart {
  const body = () => parts.read([ordinal], [partId]).found.get(ordinal)?.get(partId);
  const isOf = (source: Uint8Array) => hash !== undefined && Buffer.compare(hash, source) === 0 && body() !== undefined;
  return { isOf, body };
}
