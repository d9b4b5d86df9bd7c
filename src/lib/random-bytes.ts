/** The system gives no more at once. */
const bytesAtOnce = 65_536;

/** Bytes of the system's source. That of `node:crypto` would load the streams of Node, which a start waits for. */
export function randomBytes(count: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at += bytesAtOnce) crypto.getRandomValues(bytes.subarray(at, at + bytesAtOnce));
  return bytes;
}
