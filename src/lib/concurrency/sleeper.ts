import type { Clock } from '../clock.ts';

/** A wait of one loop for a time to pass or for somebody to wake it. */
export class Sleeper {
  readonly #clock: Clock;
  #wake: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves true when woken, false when `delayMs` has passed; infinity for no delay of its own. */
  sleep(delayMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel =
        delayMs === Number.POSITIVE_INFINITY ? undefined : this.#clock.after(delayMs, () => resolve(false));
      this.#wake = () => {
        cancel?.();
        resolve(true);
      };
    });
  }

  /** Ends the sleep, if there is one. */
  wake(): void {
    this.#wake();
  }
}
