import type { Clock } from '../lib/clock.ts';
import { Sleeper } from '../lib/concurrency/sleeper.ts';
import { type Service, supervise } from '../lib/concurrency/supervise.ts';

interface Deps {
  /** Has the writer do one step. Milliseconds until the next one; undefined when nothing is left. */
  readonly step: () => Promise<number | undefined>;
  readonly clock: Clock;
  /** A step failed, and is done again after a pause. */
  onFailed(service: string, error: unknown, attempt: number): void;
}

/** The work of the writer that no request waits for: whoever wakes it ends the wait for its next step. */
export class WriterUpkeep implements Service {
  readonly name = 'upkeep of the writer';
  readonly #deps: Deps;
  readonly #stopping = new AbortController();
  readonly #sleeper: Sleeper;
  #running: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#sleeper = new Sleeper(deps.clock);
  }

  wake(): void {
    const { clock, onFailed } = this.#deps;
    this.#running ??= supervise(this, { clock, signal: this.#stopping.signal, onFailed }).finally(() => {
      this.#running = undefined;
    });
    this.#sleeper.wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const nextMs = await this.#deps.step();
      if (nextMs === undefined) return;
      if (!signal.aborted) await this.#sleeper.sleep(nextMs);
    }
  }

  /** Resolves when the step under way has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#sleeper.wake();
    await this.#running;
  }
}
