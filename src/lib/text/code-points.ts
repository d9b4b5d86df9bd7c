const surrogate = /[\ud800-\udfff]/;

/**
 * Turns offsets in a string (UTF-16) into offsets in characters (Unicode code points), as most languages count them. Where
 * every character takes one unit, and in most texts it does, that is free.
 */
export class CodePointOffsets {
  readonly #text: string;
  readonly #same: boolean;
  #unit = 0;
  #points = 0;

  constructor(text: string) {
    this.#text = text;
    this.#same = !surrogate.test(text);
  }

  /** Offsets that rise from call to call are counted once. */
  at(unit: number): number {
    if (this.#same) return unit;
    if (unit < this.#unit) {
      this.#unit = 0;
      this.#points = 0;
    }
    while (this.#unit < unit) {
      this.#unit += (this.#text.codePointAt(this.#unit) ?? 0) > 0xffff ? 2 : 1;
      this.#points += 1;
    }
    return this.#points;
  }
}
