import { clientLeft } from '../../inference/admission.ts';
import { type Clock, pause } from '../../lib/clock.ts';
import { ByteBudget } from '../../lib/concurrency/byte-budget.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { toServiceError } from './error-response.ts';
import { tooSlow } from './request-body.ts';

interface InFlightOptions {
  readonly concurrentRequestsMax: number;
  readonly bodiesInFlightBytesMax: number;
  readonly answersInFlightBytesMax: number;
  readonly answerWaitMs: number;
  readonly requestDeadlineMs: number;
  readonly bodyDeadlineMs: number;
  readonly keepAliveMs: number;
}

/** Keeps the connection of a slow request open for this many seconds more. */
export type ExtendIdle = (request: Request, seconds: number) => void;

/** An answer that goes on after its handler has returned. */
interface OpenAnswer {
  /** Ends it with an error. */
  readonly stop: (error: Error) => void;
  /** Throws where its caller may not have it any more. */
  readonly requireCaller: () => void;
  /** Its connection may be silent for as long as it likes; otherwise the runtime closes one on which nothing moves. */
  readonly mayBeSilent: boolean;
}

/** Tells connections apart; undefined where one cannot be told. */
export type ConnectionOf = (request: Request) => number | undefined;

const sweepIntervalMs = 1_000;
/** The runtime closes a connection that is idle for long, also while a handler works. */
const extendAfterMs = 4_000;
const extendSeconds = 30;
/** Never, for the runtime. */
const silentForever = 0;

/** One request between its arrival and its answer. */
export class InFlightRequest {
  readonly request: Request;
  readonly startedMs: number;
  bodyBytes = 0;
  /** Of a large answer, as they are held whole. */
  answerBytes = 0;
  /** True while a body that is read whole is on its way, whose deadline is kept here. */
  awaitsWholeBody = false;
  /** Goes on as long as its client waits. */
  takesLong = false;
  /** Whether its connection was given more time than an idle one has. */
  isExtended = false;
  /** Its connection is closed behind its answer. */
  isLast = false;
  #stop: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #expired: ServiceError | undefined;
  #onExpired: ((error: ServiceError) => void) | undefined;

  constructor(request: Request, startedMs: number) {
    this.request = request;
    this.startedMs = startedMs;
  }

  /** Made on first use: most requests never look at it. */
  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#stop = new AbortController();
      this.#signal = AbortSignal.any([this.request.signal, this.#stop.signal]);
    }
    return this.#signal;
  }

  /** Tells of the error of `expire`. */
  onExpired(tell: (error: ServiceError) => void): void {
    this.#onExpired = tell;
    if (this.#expired !== undefined) tell(this.#expired);
  }

  /** Throws the error of `expire`: nobody waits for what would be done next. */
  throwIfExpired(): void {
    if (this.#expired !== undefined) throw this.#expired;
  }

  /** Ends the wait for whatever is being done with this error, and asks the handler to stop. */
  expire(error: ServiceError): void {
    this.#expired = error;
    this.#stop?.abort(error);
    this.#onExpired?.(error);
  }
}

/** Admission and deadlines of all requests; one timer for all of them. */
export class InFlightRequests {
  readonly #open = new Set<InFlightRequest>();
  /** Open answers with their requests. */
  readonly #streams = new Map<OpenAnswer, Request>();
  readonly #clock: Clock;
  readonly #options: InFlightOptions;
  readonly #extendIdle: ExtendIdle;
  readonly #connectionOf: ConnectionOf;
  #lastConnection: number | undefined;
  readonly #bodies: ByteBudget<'bodyBytes'>;
  readonly #answers: ByteBudget<'answerBytes'>;
  #sweeping = false;
  #refusal: ServiceError | undefined;

  constructor(
    clock: Clock,
    options: InFlightOptions,
    { extendIdle, connectionOf }: { extendIdle: ExtendIdle; connectionOf: ConnectionOf },
  ) {
    this.#clock = clock;
    this.#options = options;
    this.#bodies = new ByteBudget('bodyBytes', options.bodiesInFlightBytesMax);
    this.#answers = new ByteBudget('answerBytes', options.answersInFlightBytesMax);
    this.#extendIdle = extendIdle;
    this.#connectionOf = connectionOf;
  }

  /** The runtime keeps what a request was given for the requests that follow on its connection. */
  get #keepAliveSeconds(): number {
    return Math.ceil(this.#options.keepAliveMs / 1_000);
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

  /** The connections of open requests are closed behind their answers. */
  endConnections(): void {
    for (const entry of this.#open) entry.isLast = true;
  }

  /** Counts a request until its `end`, or throws `unavailable` while stopping or full. */
  begin(entry: InFlightRequest): void {
    if (this.#refusal !== undefined) throw this.#refusal;
    if (this.count >= this.#options.concurrentRequestsMax) {
      throw new ServiceError(
        'unavailable',
        `${this.#options.concurrentRequestsMax} requests are being answered already`,
      );
    }
    this.#open.add(entry);
    this.#sweepLater();
  }

  /**
   * Notes the connection of a request that queries. Returns whether only its client waits: nothing else is being answered,
   * and the query before came over the same connection. Requests of many clients may be answered one after another too,
   * but not over one connection, which the runtime asks the system for.
   */
  noteQuery(request: Request): boolean {
    const before = this.#lastConnection;
    this.#lastConnection = this.count === 1 ? this.#connectionOf(request) : undefined;
    return this.#lastConnection !== undefined && this.#lastConnection === before;
  }

  /** Counts bytes of a body that is being read, or refuses them. They are given back at the end of the request. */
  reserveBody(entry: InFlightRequest, bytes: number): void {
    if (!this.#open.has(entry)) throw clientLeft();
    if (this.#bodies.take(entry, bytes)) return;
    const message = 'too many bytes of request bodies are being held already; send it again, or less at a time';
    throw new ServiceError('unavailable', message);
  }

  /**
   * Counts bytes of an answer that are about to be held whole: at once, or when those of others have gone. Throws and
   * rejects with `unavailable` where they do not fit in time. They are given back at the end of the request.
   */
  holdAnswer(entry: InFlightRequest, bytes: number): Promise<void> | undefined {
    // The handler works on, but what it takes would never be given back.
    if (!this.#open.has(entry)) throw clientLeft();
    if (this.#answers.take(entry, bytes)) return undefined;
    // Two that hold something and wait for more could wait for each other.
    if (entry.answerBytes > 0) throw tooManyAnswers();
    return this.#waitForAnswer(entry, bytes);
  }

  async #waitForAnswer(entry: InFlightRequest, bytes: number): Promise<void> {
    const over = pause(this.#clock, this.#options.answerWaitMs, entry.signal);
    if (await this.#answers.wait(entry, bytes, over)) {
      if (this.#open.has(entry)) return;
      // Its turn came when it had ended already.
      this.#answers.release(entry);
    }
    entry.signal.throwIfAborted();
    throw tooManyAnswers();
  }

  /** The same of an answer that is there: what was counted for its making becomes what it has. */
  holdMadeAnswer(entry: InFlightRequest, bytes: number): Promise<void> | undefined {
    if (entry.answerBytes === 0) return this.holdAnswer(entry, bytes);
    this.#answers.settle(entry, bytes);
    return undefined;
  }

  /** Counts the answer of a request for longer than that; returns what gives its bytes back. */
  keepAnswer(entry: InFlightRequest): () => void {
    const kept = { answerBytes: entry.answerBytes };
    entry.answerBytes = 0;
    return () => this.#answers.release(kept);
  }

  /** Answers every open request `unavailable`, whatever its handler still waits for. */
  expireAll(): void {
    const error = new ServiceError(
      'unavailable',
      'the server stopped before the request was done; a write may have been applied',
    );
    for (const entry of this.#open) entry.expire(error);
    for (const { stop } of [...this.#streams.keys()]) stop(error);
  }

  /** Ends answers that are read as their clients take them, of the requests that are meant. */
  cutPages(error: Error, isMeant: (request: Request) => boolean): void {
    for (const [{ stop, mayBeSilent }, request] of [...this.#streams]) {
      if (!mayBeSilent && isMeant(request)) stop(error);
    }
  }

  /** Counts an answer that outlives its handler, and returns what ends that. */
  openStream(entry: InFlightRequest, answer: OpenAnswer): () => void {
    const { request } = entry;
    this.#streams.set(answer, request);
    if (answer.mayBeSilent) {
      this.#extendIdle(request, silentForever);
      // The end of the stream gives the time back, not that of its request.
      entry.isExtended = false;
    }
    this.#sweepLater();
    return () => {
      if (this.#streams.delete(answer) && answer.mayBeSilent) this.#extendIdle(request, this.#keepAliveSeconds);
    };
  }

  end(entry: InFlightRequest): void {
    if (!this.#open.delete(entry)) return;
    this.#bodies.release(entry);
    this.#answers.release(entry);
    if (entry.isExtended) this.#extendIdle(entry.request, this.#keepAliveSeconds);
  }

  #sweepLater(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    this.#clock.after(sweepIntervalMs, () => {
      this.#sweeping = false;
      this.#sweep();
      if (this.count > 0) this.#sweepLater();
    });
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    const { bodyDeadlineMs, requestDeadlineMs } = this.#options;
    for (const entry of this.#open) {
      const ageMs = nowMs - entry.startedMs;
      if (ageMs >= requestDeadlineMs && !entry.takesLong) {
        entry.expire(
          new ServiceError('deadline_exceeded', 'the request did not finish in time; a write may have been applied'),
        );
      } else if (entry.awaitsWholeBody && ageMs >= bodyDeadlineMs) {
        entry.expire(tooSlow());
      } else if (ageMs >= extendAfterMs) {
        entry.isExtended = true;
        this.#extendIdle(entry.request, Math.max(extendSeconds, this.#keepAliveSeconds));
      }
    }
    for (const { requireCaller, stop } of [...this.#streams.keys()]) {
      try {
        requireCaller();
      } catch (error) {
        stop(toServiceError(error));
      }
    }
  }
}

function tooManyAnswers(): ServiceError {
  const message =
    'the server holds as many large answers as its memory allows; ask again, or for less at a time by "limit" or fewer fields';
  return new ServiceError('unavailable', message);
}
