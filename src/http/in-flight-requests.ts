import type { Clock } from '../lib/clock.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { tooSlow } from './request-body.ts';

export interface InFlightBounds {
  readonly concurrentRequestsMax: number;
  readonly bodiesInFlightBytesMax: number;
  readonly requestDeadlineMs: number;
  readonly bodyDeadlineMs: number;
}

/** Keeps the connection of a slow request open for so many seconds more. */
export type ExtendIdle = (request: Request, seconds: number) => void;

/** Tells connections apart; undefined where one cannot be told. */
export type ConnectionOf = (request: Request) => number | undefined;

const sweepIntervalMs = 1_000;
/** The runtime closes a connection that is silent for ten seconds, also while a handler works. */
const extendAfterMs = 4_000;
const extendSeconds = 30;
/** Never, for the runtime. */
const silentForever = 0;
/** For the rest of a stream to be taken. */
const lingerSeconds = 60;

/** One request between its arrival and its answer. */
export class InFlightRequest {
  readonly request: Request;
  readonly startedMs: number;
  bodyBytes = 0;
  /** True while a body that is read whole is on its way, whose deadline is kept here. */
  awaitsWholeBody = false;
  readonly #onExpire: (error: ServiceError) => void;
  #stop: AbortController | undefined;
  #signal: AbortSignal | undefined;

  constructor(request: Request, startedMs: number, onExpire: (error: ServiceError) => void) {
    this.request = request;
    this.startedMs = startedMs;
    this.#onExpire = onExpire;
  }

  /** Made on first use: most requests never look at it. */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#stop = new AbortController();
      this.#signal = AbortSignal.any([this.request.signal, this.#stop.signal]);
    }
    return this.#signal;
  }

  /** Answers with this error now, and asks the handler to stop. */
  expire(error: ServiceError): void {
    this.#stop?.abort(error);
    this.#onExpire(error);
  }
}

/** Admission and deadlines of all requests; one timer for all of them. */
export class InFlightRequests {
  readonly #open = new Set<InFlightRequest>();
  readonly #streams = new Set<(error: ServiceError) => void>();
  readonly #clock: Clock;
  readonly #bounds: InFlightBounds;
  readonly #extendIdle: ExtendIdle;
  readonly #connectionOf: ConnectionOf;
  #lastConnection: number | undefined;
  #bodyBytes = 0;
  #sweeping = false;
  #refusal: ServiceError | undefined;

  constructor(
    clock: Clock,
    bounds: InFlightBounds,
    { extendIdle, connectionOf }: { extendIdle: ExtendIdle; connectionOf: ConnectionOf },
  ) {
    this.#clock = clock;
    this.#bounds = bounds;
    this.#extendIdle = extendIdle;
    this.#connectionOf = connectionOf;
  }

  get count(): number {
    return this.#open.size + this.#streams.size;
  }

  get draining(): boolean {
    return this.#refusal !== undefined;
  }

  /** From now on every new request is answered `unavailable`. */
  refuseNew(): void {
    this.#refusal = new ServiceError('unavailable', 'the server is stopping; connect to it again in a moment');
  }

  /** Throws `unavailable` while stopping or full, unless the request is one that is answered always. */
  begin(request: Request, startedMs: number, onExpire: (error: ServiceError) => void, always = false): InFlightRequest {
    const entry = new InFlightRequest(request, startedMs, onExpire);
    if (always) return entry;
    if (this.#refusal !== undefined) throw this.#refusal;
    if (this.count >= this.#bounds.concurrentRequestsMax) {
      throw new ServiceError(
        'unavailable',
        `${this.#bounds.concurrentRequestsMax} requests are being answered already`,
      );
    }
    this.#open.add(entry);
    this.#sweepLater();
    return entry;
  }

  /**
   * Whether only the client of this request waits: nothing else is being answered, and what asked this before came over
   * the same connection. The requests of many clients may be answered one after another too, but not of one connection.
   */
  isAlone(request: Request): boolean {
    const connection = this.#connectionOf(request);
    const isSame = connection !== undefined && connection === this.#lastConnection;
    this.#lastConnection = connection;
    return isSame && this.count === 1;
  }

  /** Counts bytes of a body that is about to be read, or refuses them. They are given back at the end of the request. */
  reserveBody(entry: InFlightRequest, bytes: number): void {
    if (this.#bodyBytes + bytes > this.#bounds.bodiesInFlightBytesMax && this.#bodyBytes > 0) {
      throw new ServiceError('unavailable', 'too many bytes of request bodies are being held already');
    }
    entry.bodyBytes += bytes;
    this.#bodyBytes += bytes;
  }

  /** Answers every open request `unavailable`, whatever its handler still waits for. */
  expireAll(): void {
    const error = new ServiceError(
      'unavailable',
      'the server stopped before the request was done; a write may have been applied',
    );
    for (const entry of this.#open) entry.expire(error);
    for (const stop of [...this.#streams]) stop(error);
  }

  /** Counts an answer that outlives its handler, keeps its connection open in silence, and returns what ends both. */
  openStream(request: Request, onStop: (error: ServiceError) => void): () => void {
    this.#streams.add(onStop);
    this.#extendIdle(request, silentForever);
    return () => {
      if (this.#streams.delete(onStop)) this.#extendIdle(request, lingerSeconds);
    };
  }

  end(entry: InFlightRequest): void {
    if (!this.#open.delete(entry)) return;
    this.#bodyBytes -= entry.bodyBytes;
  }

  #sweepLater(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    this.#clock.after(sweepIntervalMs, () => {
      this.#sweeping = false;
      this.#sweep();
      if (this.#open.size > 0) this.#sweepLater();
    });
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    const { bodyDeadlineMs, requestDeadlineMs } = this.#bounds;
    for (const entry of this.#open) {
      const ageMs = nowMs - entry.startedMs;
      if (ageMs >= requestDeadlineMs) {
        entry.expire(
          new ServiceError('deadline_exceeded', 'the request did not finish in time; a write may have been applied'),
        );
      } else if (entry.awaitsWholeBody && ageMs >= bodyDeadlineMs) {
        entry.expire(tooSlow());
      } else if (ageMs >= extendAfterMs) {
        this.#extendIdle(entry.request, extendSeconds);
      }
    }
  }
}
