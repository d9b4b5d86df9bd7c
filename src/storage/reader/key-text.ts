const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The key of a stored row; undefined when its bytes are not UTF-8. */
export function keyTextOf(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
