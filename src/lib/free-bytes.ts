/**
 * Gives the memory of bytes back that nobody reads any more. A garbage collection would come late: it is paced by what lies in
 * the heap, and buffers lie outside. Bytes that are a part of a larger buffer are left to it.
 */
export function freeBytes(bytes: Uint8Array): void {
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength) buffer.transfer(0);
}
