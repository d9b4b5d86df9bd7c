import { limits } from '../../../config/limits.ts';
import { clientLeft } from '../../../inference/admission.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { ServiceError } from '../../../protocol/service-error.ts';
import type { RouteContext } from '../../routing/route.ts';
import { SseStream, type StreamFraming } from './sse.ts';

type Context = Pick<RouteContext<unknown, unknown, unknown>, 'signal' | 'openStream'>;

interface LateStreamDeps {
  readonly clock: Clock;
  readonly framing: StreamFraming;
  /** Called when the stream opens: what comes before all else is sent then. */
  readonly onOpen?: (stream: SseStream) => void;
  /** The last data of a stream that failed. */
  readonly failure: (error: ServiceError) => string;
}

/**
 * An answer that is streamed from its first piece on, so that what fails before that is an ordinary error. A client that
 * waits for long is given the beginning of the stream: it learns that it is being worked for.
 */
export class LateStream {
  /** Aborted when the client leaves, the server stops or the deadline passes. */
  readonly signal: AbortSignal;
  readonly #deps: LateStreamDeps;
  readonly #context: Context;
  readonly #stop = new AbortController();
  readonly #begun = Promise.withResolvers<Response>();
  #stream: SseStream | undefined;
  #open: ReturnType<Context['openStream']> | undefined;

  constructor(context: Context, deps: LateStreamDeps) {
    this.#context = context;
    this.#deps = deps;
    this.signal = AbortSignal.any([context.signal, this.#stop.signal]);
  }

  /** Settles with the answer once it has begun; `work` sends what there is and ends the stream by returning. */
  async run(work: () => Promise<void>): Promise<Response> {
    const cancelWait = this.#deps.clock.after(limits.streamHeartbeatMs, () => this.#opened());
    void this.#work(work);
    try {
      return await this.#begun.promise;
    } finally {
      cancelWait();
    }
  }

  /** Opens the stream where it has not been opened yet. */
  open(): void {
    this.#opened();
  }

  send(data: string, event?: string): void {
    this.#opened().send(data, event);
  }

  async #work(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#opened().end();
    } catch (error) {
      if (this.#stream === undefined) this.#begun.reject(error);
      else this.#stream.fail(this.#deps.failure(this.#open?.failed(error) ?? clientLeft()));
    } finally {
      this.#open?.end();
    }
  }

  #opened(): SseStream {
    if (this.#stream !== undefined) return this.#stream;
    const { clock, framing, onOpen } = this.#deps;
    const stream = new SseStream({
      clock,
      framing,
      heartbeatMs: limits.streamHeartbeatMs,
      unsentBytesMax: limits.streamUnsentBytesMax,
      onGone: () => this.#stop.abort(clientLeft()),
    });
    this.#stream = stream;
    this.#open = this.#context.openStream((error) => this.#stop.abort(error));
    onOpen?.(stream);
    this.#begun.resolve(stream.response);
    return stream;
  }
}
