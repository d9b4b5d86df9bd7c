/** Lets a bounded number of backfill batches of all ranges work at one time, in the order in which they came. */
export class BackfillLane {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  #working = 0;

  constructor(max: number) {
    this.#max = max;
  }

  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#working >= this.#max) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#working += 1;
    try {
      return await task();
    } finally {
      // The place passes on, so that nobody can take it in between.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#working -= 1;
    }
  }
}
