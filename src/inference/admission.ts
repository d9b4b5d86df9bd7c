import { ServiceError } from '../protocol/service-error.ts';

const retryAfterMs = 500;

/**
 * Permits for work with models. A request takes one before anything is fetched, decoded or loaded for it, and is turned
 * away at once when there is none.
 */
export class Admission {
  /** Requests that may be at work at one time; 0 sets no bound. */
  readonly concurrentMax: number;
  readonly #onRefused: () => void;
  #taken = 0;

  constructor(concurrentMax: number, onRefused: () => void = () => undefined) {
    this.concurrentMax = concurrentMax;
    this.#onRefused = onRefused;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Runs `work` under a permit. Throws `inference_capacity` where none is left. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    using _permit = this.take();
    return await work();
  }

  /** A permit that is given back when it is disposed of: for answers that outlive the call. */
  take(): Disposable {
    if (this.concurrentMax > 0 && this.#taken >= this.concurrentMax) {
      this.#onRefused();
      throw new ServiceError(
        'inference_capacity',
        `${this.#taken} requests are being worked on, which is all that admission.inference.max_concurrent_requests allows; try again`,
        { retryAfterMs },
      );
    }
    this.#taken += 1;
    let held = true;
    return {
      [Symbol.dispose]: () => {
        if (held) this.#taken -= 1;
        held = false;
      },
    };
  }
}
