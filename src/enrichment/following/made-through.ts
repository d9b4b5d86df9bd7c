interface Made {
  /** Documents up to here have their parts. */
  readonly covered: number;
  /** The last of those parts. */
  readonly through: number;
}

/** Entries that are remembered: an index that is further behind is taken to show none of them. */
const entriesMax = 256;

/**
 * Which documents an index shows with their parts. A part is written after its document, so an index that has read up to a
 * document does not show yet what was made of it: it has to have read up to the part. All numbers are sequences of the range.
 */
export class MadeThrough {
  /** In the order of their parts. */
  readonly #made: Made[];

  /** `through`: what was made before now lies at or before it. */
  constructor(covered: number, through: number) {
    this.#made = [{ covered, through }];
  }

  /** Parts were written, the last of them at `through`: documents up to `covered` have theirs. */
  note(covered: number, through: number): void {
    this.#made.push({ covered, through });
    if (this.#made.length > entriesMax) this.#made.shift();
  }

  /** Documents up to this one are shown, with all parts, by an index that has read up to `read`. `covered`: as it is now. */
  shownBy(read: number, covered: number): number {
    const last = this.#made.at(-1);
    if (!last || last.through <= read) return Math.min(read, covered);
    return this.#made.findLast(({ through }) => through <= read)?.covered ?? 0;
  }
}
