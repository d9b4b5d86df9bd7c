import { shortCodes, type TokenDictionary } from './token-dictionary.ts';
import { lengthOf, TokenTrie, tokenOf } from './token-trie.ts';

/** Writes bodies as codes of a dictionary that has every single byte. */
export class TokenPacker {
  readonly #trie = new TokenTrie();

  constructor(dictionary: TokenDictionary) {
    for (const [token, bytes] of dictionary.tokens().entries()) this.#trie.add(bytes, token);
  }

  /** Writes the codes of a body from `from` on; returns where they end. Undefined: they do not fit. */
  pack(body: Uint8Array, into: Uint8Array, from: number): number | undefined {
    const trie = this.#trie;
    const end = into.byteLength - 1;
    let written = from;
    for (let at = 0; at < body.byteLength; ) {
      if (written >= end) return undefined;
      const match = trie.match(body, at);
      at += lengthOf(match);
      const token = tokenOf(match);
      if (token < shortCodes) {
        into[written] = token;
        written += 1;
      } else {
        into[written] = shortCodes + ((token - shortCodes) >>> 8);
        into[written + 1] = (token - shortCodes) & 0xff;
        written += 2;
      }
    }
    return written;
  }
}
