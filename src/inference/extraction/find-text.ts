const wordCharacter = /[\p{L}\p{N}_]/u;

/**
 * Where a value stands in a text: as it is written, else in other letters' case; as a word of its own where there is one.
 * Places that are taken are passed over while there are others.
 */
export class TextFinder {
  readonly #text: string;
  readonly #lower: string;
  readonly #taken = new Set<string>();

  constructor(text: string) {
    this.#text = text;
    this.#lower = text.toLowerCase();
  }

  /** `owner` is whom a place is taken for: the same place may be found for another. */
  find(value: string, owner: string): { start: number; end: number } | undefined {
    if (value === '') return undefined;
    const exact = this.#places(this.#text, value);
    // Lower case of some letters is longer: places in it would be wrong.
    const sameLength = this.#lower.length === this.#text.length;
    const places = exact.length > 0 || !sameLength ? exact : this.#places(this.#lower, value.toLowerCase());
    const whole = places.filter((start) => this.#isWhole(start, start + value.length));
    const preferred = whole.length > 0 ? whole : places;
    const start = preferred.find((place) => !this.#taken.has(`${place} ${owner}`)) ?? preferred[0];
    if (start === undefined) return undefined;
    this.#taken.add(`${start} ${owner}`);
    return { start, end: start + value.length };
  }

  #places(text: string, value: string): number[] {
    const places: number[] = [];
    for (let at = text.indexOf(value); at >= 0 && places.length < placesMax; at = text.indexOf(value, at + 1)) {
      places.push(at);
    }
    return places;
  }

  #isWhole(start: number, end: number): boolean {
    const joins = (left: string, right: string) => wordCharacter.test(left) && wordCharacter.test(right);
    const { length } = this.#text;
    if (start > 0 && joins(this.#text.charAt(start - 1), this.#text.charAt(start))) return false;
    return end >= length || !joins(this.#text.charAt(end - 1), this.#text.charAt(end));
  }
}

const placesMax = 1_000;
