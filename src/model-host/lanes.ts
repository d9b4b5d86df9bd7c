import type { Clock } from '../lib/clock.ts';
import { abortable } from '../lib/concurrency/abortable.ts';
import type { Priority } from './priority.ts';

/** So long at most a piece of background work is held back, in milliseconds: it becomes slow, but never stops. */
const heldMsMax = 1_000;

export interface Lane {
  /** `foreground` unless given. */
  readonly priority?: Priority | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Two lanes over one thing to share. Foreground work begins at once. Background work goes one piece after another, and
 * each piece waits until no foreground work goes on, or has waited for a second.
 */
export class Lanes {
  readonly #clock: Clock;
  #foreground = 0;
  #lastBackground: Promise<unknown> = Promise.resolve();
  readonly #onQuiet = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Rejects with the reason of the abort where the signal is aborted before the work begins. */
  async run<T>({ priority = 'foreground', signal }: Lane, work: () => Promise<T>): Promise<T> {
    return priority === 'foreground' ? await this.#runForeground(work) : await this.#runBackground(signal, work);
  }

  async #runForeground<T>(work: () => Promise<T>): Promise<T> {
    this.#foreground += 1;
    try {
      return await work();
    } finally {
      this.#foreground -= 1;
      if (this.#foreground === 0) for (const begin of [...this.#onQuiet]) begin();
    }
  }

  async #runBackground<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    const before = this.#lastBackground;
    const over = Promise.withResolvers<void>();
    this.#lastBackground = Promise.all([before, over.promise]);
    try {
      await abortable(before, signal);
      await this.#quiet(signal);
      signal?.throwIfAborted();
      return await work();
    } finally {
      over.resolve();
    }
  }

  async #quiet(signal: AbortSignal | undefined): Promise<void> {
    if (this.#foreground === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onQuiet.add(resolve);
    const cancel = this.#clock.after(heldMsMax, resolve);
    try {
      await abortable(promise, signal);
    } finally {
      cancel();
      this.#onQuiet.delete(resolve);
    }
  }
}
