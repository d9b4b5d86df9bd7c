import type { TextPlace } from './shown-chunk.ts';

/** Turns places of a text in characters (Unicode code points) into places in bytes of UTF-8. */
export class BytePlaces {
  readonly #text: Buffer;
  /** Byte at which each character begins, and the end; undefined where every character is one byte. */
  readonly #starts: Uint32Array | undefined;

  constructor(text: string) {
    this.#text = Buffer.from(text);
    if (this.#text.byteLength === text.length) return;
    const starts = [0];
    for (const character of text) starts.push((starts.at(-1) ?? 0) + Buffer.byteLength(character));
    this.#starts = Uint32Array.from(starts);
  }

  /** Undefined where the text has something else than `content` there: it is another text than that which was cut. */
  of({ start, end }: TextPlace, content: string): TextPlace | undefined {
    const [from, to] = this.#starts ? [this.#starts[start], this.#starts[end]] : [start, end];
    if (from === undefined || to === undefined || to > this.#text.byteLength) return undefined;
    return this.#text.subarray(from, to).toString() === content ? { start: from, end: to } : undefined;
  }
}
