import { type Caller, requireWorkWithModels } from '../access/principal.ts';
import type { Clock } from '../lib/clock.ts';
import type { Priority } from '../model-host/priority.ts';
import { ServiceError } from '../protocol/service-error.ts';

/** After which time a request that got no permit may try again, in milliseconds. */
export const permitRetryAfterMs = 500;

/** The caller of work with models. */
export interface InferenceCall {
  readonly caller: Caller;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** `foreground` unless given. */
  readonly priority?: Priority;
}

/** The result of a piece of work. */
export interface Finished<T> {
  readonly value: T;
  /** Texts, pairs, rows, chunks or answers. */
  readonly items: number;
  /** Tokens that models read and wrote. */
  readonly tokens: number;
}

/** The cost of one finished piece of work, for metrics. */
export interface InferenceWork extends Omit<Finished<unknown>, 'value'> {
  /** `embed`, `rerank`, ... */
  readonly operation: string;
  readonly durationMs: number;
}

/** How work with the models of this server went, since the start. */
export interface WorkCounts {
  readonly requests: number;
  readonly failures: number;
  readonly tokens: number;
}

interface AdmissionDeps {
  readonly clock: Clock;
  /** Foreground work that may go on at one time; 0 sets no bound. */
  readonly concurrentMax: number;
  readonly onRefused: () => void;
  readonly onFinished: (work: InferenceWork) => void;
}

/**
 * The one way to work with models. Foreground work takes a permit before anything is fetched, decoded or loaded for it,
 * and is refused at once when there is none. Background work takes no permit; the pool of models holds it back.
 */
export class Admission {
  readonly #deps: AdmissionDeps;
  readonly #counts = { requests: 0, failures: 0, tokens: 0 };
  #taken = 0;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  /** Foreground work that may go on at one time; 0 sets no bound. */
  get concurrentMax(): number {
    return this.#deps.concurrentMax;
  }

  get counts(): WorkCounts {
    return { ...this.#counts };
  }

  /** Permits that are taken now. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Runs `work` to its end, and counts it once it is finished. Throws `inference_capacity` where no permit is left and
   * `forbidden` for a caller who may not work with models. After
   * an abort it throws the signal's reason where that is a `ServiceError` (a deadline, a stop), else `unavailable`.
   */
  async run<T>(
    operation: string,
    { caller, signal, priority = 'foreground' }: InferenceCall,
    work: () => Promise<Finished<T>>,
  ): Promise<T> {
    requireWorkWithModels(caller);
    using _permit = priority === 'foreground' ? this.#take() : undefined;
    const { clock, onFinished } = this.#deps;
    const startMs = clock.monotonicMs();
    this.#counts.requests += 1;
    try {
      const { value, items, tokens } = await work();
      this.#counts.tokens += tokens;
      onFinished({ operation, items, tokens, durationMs: clock.monotonicMs() - startMs });
      return value;
    } catch (error) {
      if (signal.aborted) throw abortReason(signal);
      this.#counts.failures += 1;
      throw error;
    }
  }

  #take(): Disposable {
    const { concurrentMax, onRefused } = this.#deps;
    if (concurrentMax > 0 && this.#taken >= concurrentMax) {
      onRefused();
      throw new ServiceError(
        'inference_capacity',
        `${this.#taken} requests are being worked on, which is all that admission.inference.max_concurrent_requests allows; try again`,
        { retryAfterMs: permitRetryAfterMs },
      );
    }
    this.#taken += 1;
    return {
      [Symbol.dispose]: () => {
        this.#taken -= 1;
      },
    };
  }
}

function abortReason({ reason }: AbortSignal): ServiceError {
  return reason instanceof ServiceError ? reason : clientLeft();
}

/** Nobody reads this; it keeps a client that left from looking like a fault of ours. */
export function clientLeft(): ServiceError {
  return new ServiceError('unavailable', 'the client left before its answer was there');
}
