import { ServiceError } from '../../../protocol/service-error.ts';
import { type Answered, type GateCall, ProviderFailure, type ProviderGate } from './provider-gate.ts';
import type { HttpBounds, ProviderHttp } from './provider-http.ts';

/** Headers that identify the caller to a provider, and the values in them that must not be shown. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
}

export type Unread = (answer?: unknown) => ServiceError;

interface ProviderClientDeps {
  readonly name: string;
  readonly http: ProviderHttp;
  readonly gate: ProviderGate;
  /** Without a slash at its end. */
  readonly base: string;
  readonly bounds: HttpBounds;
  readonly authorize: (url: URL, body: string | FormData) => Authorization | Promise<Authorization>;
}

/** Asks one provider at one address, in the name of one key. Credentials are expanded for each request. */
export class ProviderClient {
  readonly #deps: ProviderClientDeps;

  constructor(deps: ProviderClientDeps) {
    this.#deps = deps;
  }

  get name(): string {
    return this.#deps.name;
  }

  /** Posts JSON, or a form, and reads the JSON of the answer. `read` returns undefined for an answer of another shape. */
  async post<T>(
    path: string,
    body: object,
    call: GateCall,
    read: (answer: unknown) => Answered<T> | undefined,
  ): Promise<T> {
    const { http, gate, bounds } = this.#deps;
    return await gate.run(call, async () => {
      const request = await this.#request(path, body);
      const answer = await http.json(request, call.signal, bounds);
      const unread = () => http.unread(answer, request);
      const answered = understood(() => read(answer), unread);
      if (answered === undefined) throw unread();
      return answered;
    });
  }

  /**
   * Posts JSON and hands over the lines of the answer as they come; `end` makes of them what the request came to. `unread` makes
   * the error to throw for a line of another shape, and for an answer that ends early.
   */
  async stream<T>(
    path: string,
    body: object,
    call: GateCall,
    begin: (unread: Unread) => { onLine: (line: string) => void; end: () => Answered<T> },
  ): Promise<T> {
    const { http, gate, bounds } = this.#deps;
    return await gate.run(call, async () => {
      const request = await this.#request(path, body);
      const unread: Unread = (answer) => http.unread(answer, request);
      const { onLine, end } = begin(unread);
      let hasBegun = false;
      const onFirst = (line: string) => {
        hasBegun = true;
        understood(() => onLine(line), unread);
      };
      try {
        await http.lines(request, call.signal, onFirst, bounds);
        return end();
      } catch (error) {
        // Lines that were handed over are not handed over again by another attempt.
        if (hasBegun && error instanceof ProviderFailure) throw new ServiceError('upstream_failed', error.message);
        throw error;
      }
    });
  }

  async #request(path: string, given: object) {
    const { name, base, authorize } = this.#deps;
    const url = new URL(base + path);
    const body = given instanceof FormData ? given : JSON.stringify(given);
    const { headers, secrets } = await authorize(url, body);
    const type = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
    return { provider: name, url, headers: { accept: 'application/json', ...type, ...headers }, body, secrets };
  }
}

/** Readers take the members of an answer for what the protocol says. */
function understood<T>(read: () => T, unread: Unread): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ServiceError ? error : unread();
  }
}
