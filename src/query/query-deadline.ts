import type { Clock } from '../lib/clock.ts';
import { ServiceError } from '../protocol/service-error.ts';

/** Until when a query may take, for what models do for it; the engine keeps its own time. */
export class QueryDeadline implements Disposable {
  readonly #clock: Clock;
  readonly #dueMs: number;
  readonly #caller: { readonly signal: AbortSignal };
  #signal: AbortSignal | undefined;
  #cancel: () => void = () => {};

  constructor(clock: Clock, timeoutMs: number, caller: { readonly signal: AbortSignal }) {
    this.#clock = clock;
    this.#dueMs = clock.monotonicMs() + timeoutMs;
    this.#caller = caller;
  }

  /** Milliseconds that are left, at least 1. */
  get leftMs(): number {
    return Math.max(1, Math.ceil(this.#dueMs - this.#clock.monotonicMs()));
  }

  /** Fails with `query_timeout` when the time is over. */
  check(): void {
    if (this.#clock.monotonicMs() < this.#dueMs) return;
    throw new ServiceError('query_timeout', 'the time of the query was over before all of its rows were looked at');
  }

  /**
   * Aborted with `query_timeout` when the time is over, and when the caller
   * leaves. Made at the first call: few queries need it.
   */
  signal(): AbortSignal {
    if (this.#signal) return this.#signal;
    const late = new AbortController();
    const error = new ServiceError('query_timeout', 'the time of the query was over before its models had answered');
    this.#cancel = this.#clock.after(this.leftMs, () => late.abort(error));
    this.#signal = AbortSignal.any([this.#caller.signal, late.signal]);
    return this.#signal;
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}
