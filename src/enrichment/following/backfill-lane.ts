/** Lets a bounded number of backfill batches of all ranges work at one time, in the order in which they came. */
export class BackfillLane {
  readonly #max: number;
  readonly #waiting = new Set<() => void>();
  #working = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Rejects with the reason of the signal where that is aborted before the turn of the task has come. */
  async run<Result>(signal: AbortSignal, task: () => Promise<Result>): Promise<Result> {
    signal.throwIfAborted();
    if (this.#working >= this.#max) await this.#turn(signal);
    else this.#working += 1;
    try {
      return await task();
    } finally {
      // The place passes on, so that nobody can take it in between.
      const [next] = this.#waiting;
      if (next) next();
      else this.#working -= 1;
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(enter);
        reject(signal.reason);
      };
      const enter = () => {
        this.#waiting.delete(enter);
        signal.removeEventListener('abort', leave);
        resolve();
      };
      this.#waiting.add(enter);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}
