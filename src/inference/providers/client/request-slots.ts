import type { Priority } from '../../../model-host/priority.ts';

/** Requests that are under way at one time. Those that somebody waits for go before the others. */
export class RequestSlots {
  readonly #waiting: Readonly<Record<Priority, (() => void)[]>> = { foreground: [], background: [] };
  #free: number;

  constructor(most: number) {
    this.#free = most;
  }

  /** A slot, to be disposed of. Throws the reason of the signal. */
  async take(priority: Priority, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(this.#waiting[priority], signal);
    return { [Symbol.dispose]: () => this.#release() };
  }

  #wait(queue: (() => void)[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        queue.splice(queue.indexOf(enter), 1);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      signal.addEventListener('abort', leave, { once: true });
      queue.push(enter);
    });
  }

  #release(): void {
    const next = this.#waiting.foreground.shift() ?? this.#waiting.background.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
