import { tokenBytesMax } from './token-trie.ts';

/** Tokens below this have a code of one byte; the others one of two, whose first byte is this or more. */
export const shortCodes = 224;
/** All that codes of one and of two bytes can name. */
export const tokensMax = shortCodes + (256 - shortCodes) * 256;

/** The stored form of a dictionary: how many tokens (u16, little-endian), the length of each (u8), their bytes. */
export function dictionaryOf(tokens: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const head = Uint8Array.of(tokens.length & 0xff, tokens.length >>> 8, ...tokens.map((token) => token.byteLength));
  return new Uint8Array(Buffer.concat([head, ...tokens]));
}

/**
 * The meanings of the codes of bodies. A body is a row of codes, so any body is read without the others, at the cost of
 * copying its bytes: a page of documents pays a few microseconds.
 */
export class TokenDictionary {
  readonly #bytes: Uint8Array;
  /** Where each token begins in the bytes, and where the last one ends. */
  readonly #starts: Uint32Array;

  private constructor(bytes: Uint8Array, starts: Uint32Array) {
    this.#bytes = bytes;
    this.#starts = starts;
  }

  /** Undefined for bytes that are no dictionary. */
  static read(bytes: Uint8Array): TokenDictionary | undefined {
    const count = (bytes[0] ?? 0) + (bytes[1] ?? 0) * 256;
    if (count === 0 || count > tokensMax || bytes.byteLength < 2 + count) return undefined;
    const starts = new Uint32Array(count + 1);
    let at = 2 + count;
    for (let token = 0; token < count; token += 1) {
      const length = bytes[2 + token] as number;
      if (length === 0 || length > tokenBytesMax) return undefined;
      starts[token] = at;
      at += length;
    }
    starts[count] = at;
    return at === bytes.byteLength ? new TokenDictionary(bytes, starts) : undefined;
  }

  tokens(): Uint8Array[] {
    const { length } = this.#starts;
    return Array.from({ length: length - 1 }, (_, token) =>
      this.#bytes.subarray(this.#starts[token], this.#starts[token + 1]),
    );
  }

  /** Whether any body can be written with it. */
  hasAllBytes(): boolean {
    return new Set(this.tokens().flatMap((token) => (token.byteLength === 1 ? [...token] : []))).size === 256;
  }

  /** Writes what the codes from `from` on stand for. False when they are not as many bytes as `into` has, or no codes. */
  unpack(codes: Uint8Array, from: number, into: Uint8Array): boolean {
    const bytes = this.#bytes;
    const starts = this.#starts;
    const [count, end, size] = [starts.length - 1, codes.byteLength, into.byteLength];
    let written = 0;
    for (let at = from; at < end; ) {
      let token = codes[at] as number;
      at += 1;
      if (token >= shortCodes) {
        if (at === end) return false;
        token = shortCodes + (token - shortCodes) * 256 + (codes[at] as number);
        at += 1;
      }
      if (token >= count) return false;
      const tokenEnd = starts[token + 1] as number;
      let read = starts[token] as number;
      if (written + tokenEnd - read > size) return false;
      while (read < tokenEnd) {
        into[written] = bytes[read] as number;
        written += 1;
        read += 1;
      }
    }
    return written === size;
  }
}
