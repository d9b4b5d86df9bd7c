import { type Clock, pause } from '../lib/clock.ts';
import { type Service, supervise } from '../lib/concurrency/supervise.ts';

interface Deps {
  /** Has the writer do one step. Milliseconds until the next one; undefined when nothing is left. */
  readonly step: () => Promise<number | undefined>;
  readonly clock: Clock;
  /** A step failed, and is done again after a pause. */
  onFailed(service: string, error: unknown, attempt: number): void;
}

/** The work of the writer that no request waits for: it begins whenever it is woken, and ends when nothing is left. */
export class WriterUpkeep implements Service {
  readonly name = 'upkeep of the writer';
  readonly #deps: Deps;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  wake(): void {
    const { clock, onFailed } = this.#deps;
    this.#running ??= supervise(this, { clock, signal: this.#stopping.signal, onFailed }).finally(() => {
      this.#running = undefined;
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const nextMs = await this.#deps.step();
      if (nextMs === undefined) return;
      await pause(this.#deps.clock, nextMs, signal);
    }
  }

  /** Resolves when the step under way has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}
