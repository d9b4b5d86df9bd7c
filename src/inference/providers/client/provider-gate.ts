import { type Backoff, backoffMs } from '../../../lib/backoff.ts';
import { type Clock, pause } from '../../../lib/clock.ts';
import type { Priority } from '../../../model-host/priority.ts';
import type { ErrorCode } from '../../../protocol/error-codes.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { type BreakerState, CircuitBreaker } from './circuit-breaker.ts';
import { faultOf } from './fault.ts';
import { RateLimit } from './rate-limit.ts';
import { RequestSlots } from './request-slots.ts';

export interface GateBounds {
  readonly requestsPerMinute: number | undefined;
  readonly tokensPerMinute: number | undefined;
  /** Requests that may go out at once after a pause. */
  readonly burst: number | undefined;
  readonly concurrentMax: number;
}

/** How requests to a provider went, since the start. */
export interface ProviderCounts {
  requests: number;
  failures: number;
  retries: number;
  /** Tokens that answers tell of. */
  tokens: number;
  /** Pauses for a rate limit, a slot, the breaker or another attempt, and how long they took altogether. */
  waits: number;
  waitedMs: number;
}

export function noCounts(): ProviderCounts {
  return { requests: 0, failures: 0, retries: 0, tokens: 0, waits: 0, waitedMs: 0 };
}

interface GateDeps {
  readonly clock: Clock;
  /** From 0 up to, but not including, 1. */
  readonly random: () => number;
  readonly bounds: GateBounds;
  /** Counted up; gates of one provider may share them. */
  readonly counts: ProviderCounts;
}

export interface GateCall {
  readonly signal: AbortSignal;
  readonly priority?: Priority | undefined;
  /** As far as they can be told before. */
  readonly tokens: number;
}

/** The result of one request. */
export interface Answered<T> {
  readonly value: T;
  readonly tokens: number;
}

const attemptsMax = 3;
const retries: Backoff = { firstMs: 250, maxMs: 4_000 };
/** A request that somebody waits for waits so long for a provider that is about to be asked again. */
const patienceMs = 2_000;

/** The gate of all requests to one provider: slots, rate limits, the breaker, and retries. */
export class ProviderGate {
  readonly #deps: GateDeps;
  readonly #slots: RequestSlots;
  readonly #requests: RateLimit | undefined;
  readonly #tokens: RateLimit | undefined;
  readonly #breaker: CircuitBreaker;
  readonly #counts: ProviderCounts;

  constructor(deps: GateDeps) {
    const { clock, bounds } = deps;
    const { requestsPerMinute: requests, tokensPerMinute: tokens } = bounds;
    this.#deps = deps;
    this.#counts = deps.counts;
    this.#slots = new RequestSlots(bounds.concurrentMax);
    this.#breaker = new CircuitBreaker(clock);
    this.#requests =
      requests === undefined ? undefined : new RateLimit(clock, requests, bounds.burst ?? Math.ceil(requests / 6));
    this.#tokens = tokens === undefined ? undefined : new RateLimit(clock, tokens, tokens);
  }

  get breaker(): BreakerState {
    return this.#breaker.state;
  }

  /**
   * Runs one request, and again where the provider failed. Throws what the last attempt threw, `upstream_failed` with the
   * time to wait while the breaker is open, and the reason of the signal.
   */
  async run<T>(call: GateCall, request: () => Promise<Answered<T>>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attempt(call, request);
      } catch (error) {
        call.signal.throwIfAborted();
        const { retryable, retryAfterMs } = retryOf(error);
        const waitMs = retryAfterMs ?? this.#jittered(backoffMs(attempt, retries));
        if (!retryable || attempt >= attemptsMax || waitMs > patienceMs) throw error;
        this.#counts.retries += 1;
        await this.#pause(waitMs, call.signal);
      }
    }
  }

  async #attempt<T>(call: GateCall, request: () => Promise<Answered<T>>): Promise<T> {
    using _slot = await this.#rateLimited(call);
    this.#counts.requests += 1;
    try {
      const { value, tokens } = await request();
      this.#breaker.succeeded();
      this.#counts.tokens += tokens;
      return value;
    } catch (error) {
      this.#failed(error, call.signal);
      throw error;
    }
  }

  #failed(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) {
      this.#breaker.abandoned();
      return;
    }
    this.#counts.failures += 1;
    // A provider that refuses one text, or the key, works.
    if (faultOf(error) === 'item' || !retryOf(error).retryable) this.#breaker.succeeded();
    else this.#breaker.failed(retryOf(error).retryAfterMs);
  }

  /** A slot for a request that may go out now. One that does not gives its part of the rate back. */
  async #rateLimited(call: GateCall): Promise<Disposable> {
    const { tokens, signal } = call;
    const waitMs = Math.max(this.#requests?.take(1) ?? 0, this.#tokens?.take(tokens) ?? 0);
    try {
      await this.#pause(waitMs, signal);
      return await this.#slotOf(call);
    } catch (error) {
      this.#requests?.giveBack(1);
      this.#tokens?.giveBack(tokens);
      throw error;
    }
  }

  async #slotOf(call: GateCall): Promise<Disposable> {
    const { clock } = this.#deps;
    const beganMs = clock.monotonicMs();
    const slot = await this.#slots.take(call.priority ?? 'foreground', call.signal);
    const waitedMs = Math.round(clock.monotonicMs() - beganMs);
    if (waitedMs > 0) this.#waited(waitedMs);
    try {
      await this.#enter(call);
      return slot;
    } catch (error) {
      slot[Symbol.dispose]();
      throw error;
    }
  }

  /** Waits for the breaker where it is worth it. */
  async #enter({ signal, priority }: GateCall): Promise<void> {
    let leftMs = priority === 'background' ? 0 : patienceMs;
    for (;;) {
      const waitMs = this.#breaker.enter();
      if (waitMs === 0) return;
      if (waitMs > leftMs) {
        throw new ServiceError('upstream_failed', 'the provider failed several times and is left alone for a while', {
          retryAfterMs: waitMs,
        });
      }
      leftMs -= waitMs;
      await this.#pause(waitMs, signal);
    }
  }

  async #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (delayMs <= 0) return;
    this.#waited(delayMs);
    await pause(this.#deps.clock, delayMs, signal);
    signal.throwIfAborted();
  }

  #waited(ms: number): void {
    this.#counts.waits += 1;
    this.#counts.waitedMs += Math.round(ms);
  }

  /** Half of the pause and up to all of it, so that those who failed together do not come back together. */
  #jittered(delayMs: number): number {
    return delayMs * (0.5 + this.#deps.random() / 2);
  }
}

function retryOf(error: unknown): { retryable: boolean; retryAfterMs: number | undefined } {
  if (!(error instanceof ProviderFailure)) return { retryable: false, retryAfterMs: undefined };
  return { retryable: true, retryAfterMs: error.toldRetryAfterMs };
}

/** A provider that could not be reached, or answered that it cannot answer now. */
export class ProviderFailure extends ServiceError {
  /** The pause that the provider asked for; `retryAfterMs` has a usual time where it asked for none. */
  readonly toldRetryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number, cause?: unknown) {
    super('upstream_failed', message, { ...(retryAfterMs !== undefined && { retryAfterMs }), cause });
    this.toldRetryAfterMs = retryAfterMs;
  }
}

/** The provider has answered, and does not take what it was sent. */
export class ProviderRefusal extends ServiceError {
  /** Of its answer. */
  readonly providerStatus: number;
  /** Its own words, without secrets. */
  readonly reason: string;

  constructor(code: ErrorCode, message: string, { status, reason }: { status: number; reason: string }) {
    super(code, message);
    this.providerStatus = status;
    this.reason = reason;
  }
}
