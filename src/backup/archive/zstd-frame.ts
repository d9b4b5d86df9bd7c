/** First bytes of a zstd frame (RFC 8878, 3.1.1). */
const magic = 0xfd2f_b528;

/**
 * The uncompressed size that a zstd frame declares. Undefined for bytes that are not one whole frame, and for a frame that does
 * not say. Looked at before anything is decompressed, because a decompressor believes what it is given, and goes on with
 * every frame that follows. Format: RFC 8878, 3.1.1.
 */
export function declaredSize(bytes: Uint8Array): number | undefined {
  if (bytes.byteLength < 6) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== magic) return undefined;
  const descriptor = view.getUint8(4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const at = 5 + (isSingleSegment ? 0 : 1) + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  if (sizeBytes === 0 || at + sizeBytes > bytes.byteLength) return undefined;
  const checksumBytes = (descriptor & 4) === 0 ? 0 : 4;
  if (endOfBlocks(view, at + sizeBytes) + checksumBytes !== bytes.byteLength) return undefined;
  if (sizeBytes === 1) return view.getUint8(at);
  if (sizeBytes === 2) return view.getUint16(at, true) + 256;
  if (sizeBytes === 4) return view.getUint32(at, true);
  return Number(view.getBigUint64(at, true));
}

/** Where the last data block of the frame ends; `NaN` where they go beyond the bytes. */
function endOfBlocks(view: DataView, from: number): number {
  for (let at = from; at + 3 <= view.byteLength; ) {
    const header = view.getUint16(at, true) + view.getUint8(at + 2) * 0x1_0000;
    const isRunLength = ((header >> 1) & 3) === 1;
    at += 3 + (isRunLength ? 1 : header >> 3);
    if ((header & 1) === 1) return at;
  }
  return Number.NaN;
}
