import { limits } from '../../config/limits.ts';
import type { ChunkerConfig } from '../../index-kinds/configuration/chunker-config.ts';
import { sourceHash } from '../derive-source.ts';
import { type Cutting, cutText, tooManyChunks } from './cut-text.ts';

/** A chunk of a text that gets a vector of its own. */
export interface Piece {
  readonly text: string;
  /** Bytes of the whole text (UTF-8), the end exclusive. */
  readonly start: number;
  readonly end: number;
  /** Alike for equal chunks that the same embedder embeds. */
  readonly hash: Uint8Array;
}

/**
 * The chunks of a text for an embedder of this fingerprint; `vectorBytes` estimates the size of one of its vectors. Throws
 * `limit_exceeded` where there would be more of them, or of their vectors, than a document may have.
 */
export async function piecesOf(
  text: string,
  chunker: ChunkerConfig,
  { vectorFingerprint, vectorBytes, cutting }: { vectorFingerprint: string; vectorBytes: number; cutting: Cutting },
): Promise<Piece[]> {
  const cut = await cutText(text, chunker, cutting);
  const most = Math.floor(limits.documentVectorsBytesMax / vectorBytes);
  if (cut.length > most) throw tooManyChunks(most);
  const [starts, ends] = [new ByteOffsets(text), new ByteOffsets(text)];
  return cut.map(({ start, end }) => {
    const piece = text.slice(start, end);
    return { text: piece, start: starts.at(start), end: ends.at(end), hash: sourceHash(vectorFingerprint, piece) };
  });
}

/** Turns offsets in a string into offsets in its UTF-8; offsets that rise from call to call are counted once. */
class ByteOffsets {
  readonly #text: string;
  #unit = 0;
  #bytes = 0;

  constructor(text: string) {
    this.#text = text;
  }

  at(unit: number): number {
    if (unit < this.#unit) [this.#unit, this.#bytes] = [0, 0];
    this.#bytes += Buffer.byteLength(this.#text.slice(this.#unit, unit));
    this.#unit = unit;
    return this.#bytes;
  }
}
