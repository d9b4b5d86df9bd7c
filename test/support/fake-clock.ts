import type { Clock } from '../../src/lib/clock.ts';

interface Timer {
  dueMs: number;
  callback: () => void;
}

/** A clock that stands still until it is told to go on. */
export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #timers: Timer[] = [];

  constructor(wallMs = Date.UTC(2026, 0, 1)) {
    this.#wallMs = wallMs;
  }

  nowMs(): number {
    return this.#wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { dueMs: this.#monotonicMs + delayMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Lets both times pass; timers fire in order, and what they wake runs before the next one. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.#monotonicMs + durationMs;
    for (;;) {
      await settle();
      const next = this.#timers.toSorted((left, right) => left.dueMs - right.dueMs)[0];
      if (!next || next.dueMs > endMs) break;
      const passedMs = Math.max(0, next.dueMs - this.#monotonicMs);
      this.#wallMs += passedMs;
      this.#monotonicMs += passedMs;
      this.#timers = this.#timers.filter((each) => each !== next);
      next.callback();
    }
    this.#wallMs += endMs - this.#monotonicMs;
    this.#monotonicMs = endMs;
    await settle();
  }

  /** Lets both times pass while the process stands still, as one that is stopped: what comes due fires at the next `advance`. */
  standStill(durationMs: number): void {
    this.#wallMs += durationMs;
    this.#monotonicMs += durationMs;
  }

  /** Moves the wall clock alone, as an operator or a time server does. */
  jump(byMs: number): void {
    this.#wallMs += byMs;
  }
}

/** Lets everything run that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
