import type { Clock } from '../../../lib/clock.ts';

/** Server-sent events, or JSON in lines (NDJSON), which has neither comments nor events by name. */
export type StreamFraming = 'events' | 'lines';

interface SseDeps {
  /** `events` unless given. */
  readonly framing?: StreamFraming;
  readonly clock: Clock;
  /** A comment is sent when nothing else was for so long, in milliseconds: proxies close what is silent. */
  readonly heartbeatMs: number;
  /** Bytes that may wait for a client that does not read. */
  readonly unsentBytesMax: number;
  /** Called once, when nobody reads any more: the client left, or lets more wait than may. */
  readonly onGone: () => void;
}

const mediaTypes = { events: 'text/event-stream; charset=utf-8', lines: 'application/x-ndjson' } as const;

const headers = {
  'cache-control': 'no-cache, no-transform',
  // Asks proxies not to collect the events.
  'x-accel-buffering': 'no',
} as const;

/**
 * An answer of server-sent events, or of lines. The body is a direct stream of the runtime, which sends what was
 * written at the end of each turn of the event loop: events that are there together cost one system call. A queue of
 * chunks costs a token 5 us more.
 */
export class SseStream {
  readonly response: Response;
  readonly #deps: SseDeps;
  /** Where events go once the server has begun to send. */
  #sink: ReadableStreamDirectController | undefined;
  /** Text that was sent before that. */
  #early = '';
  /** Bytes that the socket has not taken. */
  #unsentBytes = 0;
  readonly #over = Promise.withResolvers<void>();
  #isOver = false;
  #lastSentMs: number;
  #cancelHeartbeat: () => void = () => undefined;

  constructor(deps: SseDeps) {
    this.#deps = deps;
    this.#lastSentMs = deps.clock.monotonicMs();
    const body = new ReadableStream<string>({
      type: 'direct',
      pull: (sink) => this.#begin(sink),
      cancel: () => this.#gone(),
    });
    const { framing = 'events', heartbeatMs } = deps;
    this.response = new Response(body, { headers: { ...headers, 'content-type': mediaTypes[framing] } });
    if (framing === 'events') this.#beatLater(heartbeatMs);
  }

  /** One event with `data`, which is one line, and a name where it has one. */
  send(data: string, event?: string): void {
    const name = event === undefined ? '' : `event: ${event}\n`;
    this.#write(this.#deps.framing === 'lines' ? `${data}\n` : `${name}data: ${data}\n\n`);
  }

  /** The last event: something failed. */
  fail(data: string): void {
    const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
    this.#write(this.#deps.framing === 'lines' ? `${data}\n` : `event: error\n${lines.join('')}\n`);
    this.end();
  }

  end(): void {
    if (this.#isOver) return;
    this.#stop();
    this.#sink?.end();
  }

  /** Settles when nothing more is to come. */
  #begin(sink: ReadableStreamDirectController): Promise<void> {
    this.#sink = sink;
    this.#push(sink, this.#early);
    this.#early = '';
    if (this.#isOver) sink.end();
    return this.#over.promise;
  }

  /** Nobody reads any more. */
  #gone(): void {
    if (this.#isOver) return;
    this.#stop();
    this.#deps.onGone();
  }

  #stop(): void {
    this.#isOver = true;
    this.#cancelHeartbeat();
    this.#over.resolve();
  }

  #write(text: string): void {
    if (this.#isOver) return;
    this.#lastSentMs = this.#deps.clock.monotonicMs();
    if (this.#sink === undefined) this.#early += text;
    else this.#push(this.#sink, text);
  }

  #push(sink: ReadableStreamDirectController, text: string): void {
    const written = sink.write(text);
    if (typeof written === 'number') return;
    // The socket takes nothing now: the write settles when it does again.
    const bytes = Buffer.byteLength(text);
    this.#unsentBytes += bytes;
    const taken = () => {
      this.#unsentBytes -= bytes;
    };
    written.then(taken, taken);
    if (this.#unsentBytes <= this.#deps.unsentBytesMax) return;
    this.#gone();
    sink.close(new Error('the client does not read what it asked for'));
  }

  #beatLater(delayMs: number): void {
    const { clock, heartbeatMs } = this.#deps;
    this.#cancelHeartbeat = clock.after(delayMs, () => {
      const leftMs = heartbeatMs - (clock.monotonicMs() - this.#lastSentMs);
      if (leftMs <= 0) this.#write(': still here\n\n');
      if (!this.#isOver) this.#beatLater(leftMs <= 0 ? heartbeatMs : leftMs);
    });
  }
}
