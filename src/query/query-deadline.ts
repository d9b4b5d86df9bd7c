import type { Clock } from '../lib/clock.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { RunNativeQuery } from './execution/query-target.ts';

/** Until when a query may take, over all of its attempts and searches. */
export class QueryDeadline implements Disposable {
  readonly #clock: Clock;
  readonly #startedMs: number;
  /** By the bound of the server. */
  #dueMs: number;
  /** By the request. */
  #askedDueMs = Number.POSITIVE_INFINITY;
  readonly #caller: { readonly signal: AbortSignal };
  #signal: AbortSignal | undefined;
  #cancel: () => void = () => {};

  constructor(clock: Clock, timeoutMs: number, caller: { readonly signal: AbortSignal }) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#dueMs = this.#startedMs + timeoutMs;
    this.#caller = caller;
  }

  /** The request gives itself no more than `timeoutMs` since it has begun. */
  limitTo(timeoutMs: number): void {
    this.#askedDueMs = this.#startedMs + timeoutMs;
  }

  /** Milliseconds that are left, at least 1. */
  get leftMs(): number {
    return Math.max(1, Math.ceil(Math.min(this.#dueMs, this.#askedDueMs) - this.#clock.monotonicMs()));
  }

  /** A wait for indexes that the request asks for: a part of the time that it gives itself, not of the server's bound. */
  async waiting(wait: (msMax: number) => Promise<void>): Promise<void> {
    const beganMs = this.#clock.monotonicMs();
    await wait(Math.max(0, this.#askedDueMs - beganMs));
    this.#dueMs += this.#clock.monotonicMs() - beganMs;
    // It is made again with the new time.
    this[Symbol.dispose]();
    this.#signal = undefined;
  }

  /** Runs each search in the time that is left. */
  inTime(run: RunNativeQuery): RunNativeQuery {
    return (indexes, plan, caller) => run(indexes, { ...plan, timeout_ms: this.leftMs }, caller);
  }

  /** Fails with `query_timeout` when the time is over. */
  check(): void {
    if (this.#clock.monotonicMs() < Math.min(this.#dueMs, this.#askedDueMs)) return;
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
