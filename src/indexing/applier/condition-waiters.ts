interface Waiter {
  holds: () => boolean;
  resolve: (held: boolean) => void;
}

/** Waits for conditions over something that says when it has changed. */
export class ConditionWaiters {
  #waiters: Waiter[] = [];
  #isOver = false;

  /** Resolves true when `holds` does, false when the signal is aborted or nothing will change any more. */
  when(holds: () => boolean, signal: AbortSignal): Promise<boolean> {
    if (holds()) return Promise.resolve(true);
    if (this.#isOver || signal.aborted) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter = { holds, resolve };
    this.#waiters.push(waiter);
    const giveUp = () => {
      this.#waiters = this.#waiters.filter((each) => each !== waiter);
      resolve(false);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    // Some signals live as long as the process.
    return promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  /** Answers the waits for what holds now. */
  changed(): void {
    if (this.#waiters.length === 0) return;
    const ready = this.#waiters.filter(({ holds }) => holds());
    this.#waiters = this.#waiters.filter((waiter) => !ready.includes(waiter));
    for (const { resolve } of ready) resolve(true);
  }

  /** Nothing will change any more. */
  end(): void {
    this.#isOver = true;
    for (const { resolve } of this.#waiters.splice(0)) resolve(false);
  }
}
