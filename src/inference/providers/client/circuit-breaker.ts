import { type Backoff, backoffMs } from '../../../lib/backoff.ts';
import type { Clock } from '../../../lib/clock.ts';

export type BreakerState = 'closed' | 'open' | 'half_open';

/** Failures in a row after which nothing is sent for a while. */
const failuresMax = 5;
const pauses: Backoff = { firstMs: 1_000, maxMs: 60_000 };
/** Until the trial of a half-open breaker is likely to have ended. */
const trialMs = 250;

/**
 * Keeps requests from a provider that fails. It opens after five failures in a row, and at once where the provider says
 * when to come back; each opening without a success between lasts twice as long as the one before, up to a minute. After it
 * one request is tried alone.
 */
export class CircuitBreaker {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #failures = 0;
  #untilMs: number | undefined;
  #isTrying = false;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get state(): BreakerState {
    if (this.#untilMs === undefined) return 'closed';
    return this.#clock.monotonicMs() < this.#untilMs ? 'open' : 'half_open';
  }

  /** Milliseconds until a request may be sent. After 0 it has to be told how that one ended. */
  enter(): number {
    if (this.#untilMs === undefined) return 0;
    const leftMs = this.#untilMs - this.#clock.monotonicMs();
    if (leftMs > 0) return Math.ceil(leftMs);
    if (this.#isTrying) return trialMs;
    this.#isTrying = true;
    return 0;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#untilMs = undefined;
    this.#isTrying = false;
  }

  /** `retryAfterMs` is what the provider asked for. */
  failed(retryAfterMs: number | undefined): void {
    this.#failures += 1;
    this.#isTrying = false;
    const ownMs = this.#failures < failuresMax ? 0 : backoffMs(this.#failures - failuresMax + 1, pauses);
    const pauseMs = Math.max(ownMs, retryAfterMs ?? 0);
    if (pauseMs > 0) this.#untilMs = Math.max(this.#untilMs ?? 0, this.#clock.monotonicMs() + pauseMs);
  }

  /** The request that was let through was never answered: its caller left. */
  abandoned(): void {
    this.#isTrying = false;
  }
}
