import type { Clock } from '../lib/clock.ts';

export interface SseParts {
  readonly clock: Clock;
  /** A comment is sent when nothing else was for so long, in milliseconds: proxies close what is silent. */
  readonly heartbeatMs: number;
  /** Bytes that may wait for a client that does not read. */
  readonly unsentBytesMax: number;
  /** Called once, when nobody reads any more: the client left, or lets more wait than may. */
  readonly onGone: () => void;
}

const encoder = new TextEncoder();
const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Asks proxies not to collect the events.
  'x-accel-buffering': 'no',
} as const;

/** An answer of server-sent events. Every event goes out by itself, as soon as it is there. */
export class SseStream {
  readonly response: Response;
  readonly #parts: SseParts;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #lastSentMs: number;
  #cancelHeartbeat: () => void = () => undefined;

  constructor(parts: SseParts) {
    this.#parts = parts;
    this.#lastSentMs = parts.clock.monotonicMs();
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => this.#gone(),
      },
      { highWaterMark: parts.unsentBytesMax, size: (chunk) => chunk?.byteLength ?? 0 },
    );
    this.response = new Response(body, { headers });
    this.#beatLater(parts.heartbeatMs);
  }

  /** One event with `data`, which is one line. */
  send(data: string): void {
    this.#write(`data: ${data}\n\n`);
  }

  /** The last event: something failed. */
  fail(data: string): void {
    const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
    this.#write(`event: error\n${lines.join('')}\n`);
    this.end();
  }

  end(): void {
    const controller = this.#controller;
    this.#stop();
    controller?.close();
  }

  /** Nobody reads any more. */
  #gone(): void {
    if (this.#controller === undefined) return;
    this.#stop();
    this.#parts.onGone();
  }

  #stop(): void {
    this.#controller = undefined;
    this.#cancelHeartbeat();
  }

  #write(text: string): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    controller.enqueue(encoder.encode(text));
    this.#lastSentMs = this.#parts.clock.monotonicMs();
    if (controller.desiredSize === null || controller.desiredSize > 0) return;
    this.#gone();
    controller.error(new Error('the client does not read what it asked for'));
  }

  #beatLater(delayMs: number): void {
    const { clock, heartbeatMs } = this.#parts;
    this.#cancelHeartbeat = clock.after(delayMs, () => {
      const leftMs = heartbeatMs - (clock.monotonicMs() - this.#lastSentMs);
      if (leftMs <= 0) this.#write(': still here\n\n');
      if (this.#controller !== undefined) this.#beatLater(leftMs <= 0 ? heartbeatMs : leftMs);
    });
  }
}
