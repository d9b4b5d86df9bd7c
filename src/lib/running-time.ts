import type { Clock } from './clock.ts';

/** Time is looked at this often; more than twice of it between two looks is no time that has run. */
const stepMs = 1_000;

/**
 * Monotonic time without that in which this process stood still: stopped by a signal, or frozen with its machine. What
 * others owe it by a deadline may have come meanwhile, or they stood still as well.
 */
export class RunningTime {
  readonly #clock: Clock;
  #ms = 0;
  #lastMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastMs = clock.monotonicMs();
  }

  /** Milliseconds; only differences mean something, and only while a timer of `after` waits. */
  ms(): number {
    const nowMs = this.#clock.monotonicMs();
    const passedMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    this.#ms += passedMs > 2 * stepMs ? stepMs : passedMs;
    return this.#ms;
  }

  /** As `Clock.after`. */
  after(delayMs: number, callback: () => void): () => void {
    const dueMs = this.ms() + delayMs;
    let cancel: () => void;
    const wait = () => {
      const leftMs = dueMs - this.ms();
      if (leftMs > 0) cancel = this.#clock.after(Math.min(leftMs, stepMs), wait);
      else callback();
    };
    cancel = this.#clock.after(Math.min(delayMs, stepMs), wait);
    return () => cancel();
  }
}
