/**
 * Sets of ordinals: a bit for each, the first in the lowest bit of the first
 * byte. Ordinals behind the last byte are not in it.
 */
export function hasOrdinal(bits: Uint8Array, ordinal: number): boolean {
  return (((bits[Math.floor(ordinal / 8)] ?? 0) >> (ordinal % 8)) & 1) === 1;
}

/** The set with one more ordinal; the same bytes where they have room for it. */
export function withOrdinal(bits: Uint8Array<ArrayBuffer>, ordinal: number): Uint8Array<ArrayBuffer> {
  const at = Math.floor(ordinal / 8);
  let grown = bits;
  if (at >= bits.length) {
    grown = new Uint8Array(Math.max(64, 2 * at));
    grown.set(bits);
  }
  grown[at] = (grown[at] ?? 0) | (1 << (ordinal % 8));
  return grown;
}
