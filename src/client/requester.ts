import { type Backoff, backoffMs } from '../lib/backoff.ts';
import { type Clock, pause } from '../lib/clock.ts';
import { connectionFailed, errorOf, requestRefused, SundewError } from './sundew-error.ts';

/** How a request reaches the database: over HTTP, or a call in the same process. Answers as `fetch` does. */
export type Transport = (request: Request) => Promise<Response>;

export interface RequesterOptions {
  readonly transport: Transport;
  /** Base address, without a slash at its end. */
  readonly url: string;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Attempts beside the first one. */
  readonly retries: number;
  readonly clock: Clock;
  /** A fresh key for a write. */
  readonly freshKey: () => string;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * When a request is sent again. `always`: after every retryable answer and every broken connection, since it changes nothing
 * or carries an `Idempotency-Key`. `refused`: only after an answer that says that nothing was done.
 */
type Repeat = 'always' | 'refused';

export interface Call extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** From the root, encoded. */
  readonly path: string;
  /** A value becomes JSON; a string is JSON already. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly repeat: Repeat;
  /** Sends a fresh `Idempotency-Key`, the same with every attempt. */
  readonly keyed?: boolean;
}

const backoff: Backoff = { firstMs: 200, maxMs: 5_000 };
/** A server that asks for a longer wait is not waited for. */
const waitMsMax = 60_000;
const refusals: readonly SundewError['code'][] = ['unavailable', 'backpressure', 'inference_capacity', 'model_loading'];

/** Sends requests, repeats those that may be repeated, and throws `SundewError` for what is not a success. */
export class Requester {
  readonly #options: RequesterOptions;

  /** Throws a RangeError where the retries are no number of attempts: with `NaN` they would have no end. */
  constructor(options: RequesterOptions) {
    if (!(typeof options.retries === 'number' && options.retries >= 0)) {
      throw new RangeError(`"retries" must be a number from 0, not ${String(options.retries)}`);
    }
    this.#options = options;
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  /** The body of the answer, which is `undefined` where it has none. */
  json<T>(call: Call): Promise<T> {
    return this.answer(call, async (response) => (response.status === 204 ? undefined : await response.json()) as T);
  }

  /** The answer, once it is a success; its body has not been read. */
  send(call: Call): Promise<Response> {
    return this.answer(call, async (response) => response);
  }

  /**
   * What is read of the answer, once it is a success: one that is cut off while it is read is no answer. Rejects with
   * the reason of the signal once that is aborted.
   */
  async answer<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    requireSegments(call.path);
    requireNoBody(call);
    const headers = this.#headersOf(call);
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#attempt(call, headers, read);
      if (!(answer instanceof SundewError)) return answer.read;
      const waitMs = this.#waitMs(call, answer, attempt);
      if (waitMs === undefined) throw answer;
      await pause(this.#options.clock, waitMs, call.signal);
      call.signal?.throwIfAborted();
    }
  }

  async #attempt<T>(
    { method, path, body, signal }: Call,
    headers: Headers,
    read: (response: Response) => Promise<T>,
  ): Promise<{ readonly read: T } | SundewError> {
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const request = new Request(`${this.#options.url}${path}`, {
      method,
      headers,
      ...(text === undefined ? {} : { body: text }),
      ...(signal === undefined ? {} : { signal }),
    });
    try {
      signal?.throwIfAborted();
      const response = await answerOf(this.#options.transport(request), signal);
      return response.ok ? { read: await read(response) } : await errorOf(response);
    } catch (error) {
      signal?.throwIfAborted();
      return connectionFailed(error);
    }
  }

  /** How long to wait before the next attempt; undefined where there is none. */
  #waitMs({ repeat }: Call, error: SundewError, attempt: number): number | undefined {
    // A read that lost against another write has to be repeated by its caller.
    if (attempt > this.#options.retries || !error.retryable || error.status === 409) return undefined;
    if (repeat === 'refused' && !refusals.includes(error.code)) return undefined;
    const waitMs = error.retryAfterMs ?? backoffMs(attempt, backoff);
    return waitMs > waitMsMax ? undefined : waitMs;
  }

  #headersOf({ body, headers, keyed }: Call): Headers {
    const all = new Headers(this.#options.headers);
    if (body !== undefined) all.set('content-type', 'application/json');
    if (keyed === true) all.set('idempotency-key', this.#options.freshKey());
    for (const [name, value] of Object.entries(headers ?? {})) all.set(name, value);
    return all;
  }
}

/** A URL leaves out such a segment with the one before it, so that the request would be another one. */
const dotSegment = /\/(?:\.|%2e){1,2}(?=[/?#]|$)/i;

function requireSegments(path: string): void {
  if (!path.startsWith('/')) throw requestRefused('invalid_request', `the path "${path}" must begin with "/"`);
  const [address = ''] = path.split('?', 1);
  if (!dotSegment.test(address)) return;
  throw requestRefused('invalid_request', `"." and ".." cannot be names in an address: ${address}`);
}

/** No request by HTTP can have it: what answers in this process refuses it as well. */
function requireNoBody({ method, body }: Call): void {
  if (method !== 'GET' || body === undefined) return;
  throw requestRefused('invalid_request', 'a GET request has no body; put what it asks for into its path');
}

/** The answer, or the reason of the signal at once: what answers in this process may not look at it. */
async function answerOf(answering: Promise<Response>, signal: AbortSignal | undefined): Promise<Response> {
  if (signal === undefined) return await answering;
  let leave = () => {};
  // Node 20 has no `Promise.withResolvers`.
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason);
  });
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([answering, aborted]);
  } catch (error) {
    answering.then(({ body }) => body?.cancel()).catch(() => undefined);
    throw error;
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
