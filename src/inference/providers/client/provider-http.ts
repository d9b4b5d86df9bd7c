import type { Credentials } from '../../../access/secrets/credentials.ts';
import type { ProviderHosts } from '../../../access/secrets/provider-hosts.ts';
import { Redaction } from '../../../access/secrets/redaction.ts';
import type { Clock } from '../../../lib/clock.ts';
import { LineSplitter } from '../../../lib/text/line-splitter.ts';
import { MiB } from '../../../lib/units.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { ProviderFailure, ProviderRefusal } from './provider-gate.ts';
import { retryAfterOf } from './retry-after.ts';

export interface ProviderHttpDeps {
  readonly clock: Clock;
  readonly hosts: Pick<ProviderHosts, 'require'>;
  readonly credentials: Pick<Credentials, 'resolve' | 'redact'>;
}

/** One request, made for the address that it goes to. */
export interface ProviderRequest {
  /** Names the provider in messages. */
  readonly provider: string;
  readonly url: URL;
  /** `POST` unless given. */
  readonly method?: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | FormData;
  /** Values of credentials in it; they are taken out of messages. */
  readonly secrets: readonly string[];
}

export interface HttpBounds {
  /** From the connection to the last byte; of a stream, between two pieces of it. */
  readonly timeoutMs: number;
  readonly answerBytesMax: number;
}

export const usualHttpBounds: HttpBounds = { timeoutMs: 60_000, answerBytesMax: 64 * MiB };
/** Of an answer that tells of an error. */
const errorBytesMax = 64 * 1024;
const excerptCharsMax = 300;

/** Sends requests to providers: only to allowed hosts, within a time, and with bounded answers. */
export class ProviderHttp {
  readonly #deps: ProviderHttpDeps;

  constructor(deps: ProviderHttpDeps) {
    this.#deps = deps;
  }

  get credentials(): ProviderHttpDeps['credentials'] {
    return this.#deps.credentials;
  }

  get clock(): Clock {
    return this.#deps.clock;
  }

  /**
   * The JSON that the provider answers. Throws `host_not_allowed`; `upstream_failed` where it cannot be reached, is too
   * slow or answers nonsense; `upstream_refused`, `invalid_request` or `context_length_exceeded` for what it says.
   */
  async json(request: ProviderRequest, signal: AbortSignal, bounds = usualHttpBounds): Promise<unknown> {
    return await this.#send(request, signal, bounds, async (response) => {
      const text = await textOf(response, bounds.answerBytesMax, request);
      try {
        return JSON.parse(text) as unknown;
      } catch {
        throw new ProviderFailure(`${called(request)} answered something that is not JSON`);
      }
    });
  }

  /** For an answer that says nothing but that the request was taken. Throws as `json` does. */
  async take(request: ProviderRequest, signal: AbortSignal, bounds = usualHttpBounds): Promise<void> {
    await this.#send(request, signal, bounds, async (response) => {
      await textOf(response, errorBytesMax, request);
    });
  }

  /** Hands over each line of an answer that comes in pieces, without its end. Throws as `json` does. */
  async lines(
    request: ProviderRequest,
    signal: AbortSignal,
    onLine: (line: string) => void,
    bounds = usualHttpBounds,
  ): Promise<void> {
    await this.#send(request, signal, bounds, async (response, alive) => {
      const lines = new LineSplitter();
      for await (const piece of piecesOf(response, bounds.answerBytesMax, request)) {
        alive();
        lines.push(piece).forEach(onLine);
      }
      const rest = lines.rest();
      if (rest !== '') onLine(rest);
    });
  }

  async #send<T>(
    request: ProviderRequest,
    signal: AbortSignal,
    { timeoutMs }: HttpBounds,
    read: (response: Response, alive: () => void) => Promise<T>,
  ): Promise<T> {
    const { clock, hosts } = this.#deps;
    const { url, method = 'POST', headers, body } = request;
    hosts.require(url);
    signal.throwIfAborted();
    const stop = new AbortController();
    const late = new ProviderFailure(`${called(request)} did not answer within ${timeoutMs} ms`);
    const begin = () => clock.after(timeoutMs, () => stop.abort(late));
    let cancel = begin();
    const leave = () => stop.abort(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      const options = { method, headers, ...(body && { body }), redirect: 'manual', signal: stop.signal } as const;
      const response = await fetch(url, options);
      if (!response.ok) throw await this.#refusal(response, request);
      return await read(response, () => {
        cancel();
        cancel = begin();
      });
    } catch (error) {
      if (stop.signal.aborted) throw stop.signal.reason;
      if (error instanceof ServiceError) throw error;
      throw new ProviderFailure(`${called(request)} could not be reached: ${this.#shown(messageOf(error), request)}`);
    } finally {
      cancel();
      signal.removeEventListener('abort', leave);
      stop.abort();
    }
  }

  /** The message of an error's answer, in words of the provider without secrets. */
  async #refusal(response: Response, request: ProviderRequest): Promise<ServiceError> {
    const { status, headers } = response;
    const text = await textOf(response, errorBytesMax, request).catch(() => '');
    const why = this.#shown(reasonIn(text), request);
    const message = `${called(request)} answered HTTP ${status}${why === '' ? '' : `: ${why}`}`;
    return faultWith(status, message, why, retryAfterOf(headers, this.#deps.clock));
  }

  /**
   * The error that an answer tells of without the status of one, as a piece of a stream does; for any other answer, that it
   * does not have the shape of its protocol.
   */
  unread(answer: unknown, request: ProviderRequest): ServiceError {
    const { error } = (answer ?? {}) as { error?: unknown };
    if (error === undefined || error === null) {
      return new ProviderFailure(`the answer of ${called(request)} does not have the shape of its protocol`);
    }
    const why = this.#shown(reasonIn(JSON.stringify(answer)), request);
    const { code, status } = error as { code?: unknown; status?: unknown };
    const isTooLong = tooLong.test(`${code} ${why}`);
    const known = [code, status].find((each) => typeof each === 'number') ?? (isTooLong ? 413 : 500);
    return faultWith(known, `${called(request)} answered an error: ${why}`, why);
  }

  #shown(text: string, { secrets }: ProviderRequest): string {
    return this.#deps.credentials
      .redact(new Redaction(secrets).redact(text))
      .replaceAll(/\s+/g, ' ')
      .trim()
      .slice(0, excerptCharsMax);
  }
}

const tooLong = /context.length|too long|too many tokens|maximum.{0,40}tokens/i;

function faultWith(status: number, message: string, reason: string, retryAfterMs?: number): ServiceError {
  if ([408, 409, 425, 429].includes(status) || status >= 500) return new ProviderFailure(message, retryAfterMs);
  const refusal = { status, reason };
  if (status !== 400 && status !== 413 && status !== 422) {
    return new ProviderRefusal('upstream_refused', message, refusal);
  }
  const isTooLong = status === 413 || tooLong.test(reason);
  return new ProviderRefusal(isTooLong ? 'context_length_exceeded' : 'invalid_request', message, refusal);
}

function called({ provider }: ProviderRequest): string {
  return `the provider "${provider}"`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The sentence in an error body of any of the protocols; the text itself where it has another form. */
function reasonIn(text: string): string {
  try {
    // Gemini answers a list of one.
    const [body] = [JSON.parse(text)].flat() as { error?: unknown; message?: unknown; Message?: unknown }[];
    const error = body?.error;
    const inner = typeof error === 'object' && error !== null && 'message' in error ? error.message : error;
    const found = [inner, body?.message, body?.Message].find((each) => typeof each === 'string');
    return found === undefined ? text : (found as string);
  } catch {
    return text;
  }
}

async function textOf(response: Response, bytesMax: number, request: ProviderRequest): Promise<string> {
  const pieces: string[] = [];
  for await (const piece of piecesOf(response, bytesMax, request)) pieces.push(piece);
  return pieces.join('');
}

/** The text of an answer piece by piece, up to a bound on its bytes as they are after inflation. */
async function* piecesOf(response: Response, bytesMax: number, request: ProviderRequest): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > bytesMax) throw new ProviderFailure(`${called(request)} answered more than ${bytesMax} bytes`);
    yield decoder.decode(piece, { stream: true });
  }
  yield decoder.decode();
}
