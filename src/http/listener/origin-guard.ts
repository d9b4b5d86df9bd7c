import { ServiceError } from '../../protocol/service-error.ts';
import { versionHeader } from '../../protocol/version-header.ts';

interface OriginRules {
  /** Names that a request may give as its host, besides loopback names and addresses. */
  readonly allowedHosts: readonly string[];
  /** Origins of web pages that may ask, such as `https://app.example.org`; `*` for all. */
  readonly allowedOrigins: readonly string[];
}

const hostsKeptMax = 256;
const preflightSeconds = '600';
const exposedHeaders = [
  'etag',
  'openai-processing-ms',
  'retry-after',
  'retry-after-ms',
  'server-timing',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-request-id',
  versionHeader,
  'x-should-retry',
].join(', ');

/**
 * Keeps web pages away from a listener that asks for no credential. A page may send simple requests to any address, so a
 * request of a foreign origin is refused; a page whose own name was made to resolve to this machine (DNS rebinding) is of
 * no foreign origin, so a request for an unknown name is refused too.
 */
export class OriginGuard {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;
  readonly #known = new Map<string, boolean>();

  constructor({ allowedHosts, allowedOrigins }: OriginRules) {
    this.#hosts = new Set(allowedHosts.map((host) => host.toLowerCase()));
    this.#origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  }

  /**
   * The origin that the answer has to be opened to, or undefined where it is the server's own or none. Throws `forbidden`
   * for a foreign one, and for a host that is none of ours.
   */
  admit(headers: Headers): string | undefined {
    const host = headers.get('host');
    if (host !== null && !this.#answersTo(host)) {
      throw new ServiceError(
        'forbidden',
        `this server does not answer to the host "${printable(host)}"; option server.allowed_hosts names those it answers to`,
      );
    }
    const origin = headers.get('origin');
    if (origin === null) return undefined;
    if (this.#origins.has(origin.toLowerCase()) || this.#origins.has('*')) return origin;
    if (host !== null && hostOfOrigin(origin) === host.toLowerCase()) return undefined;
    throw new ServiceError(
      'forbidden',
      `pages of "${printable(origin)}" may not ask this server; option cors.allowed_origins names those that may`,
    );
  }

  #answersTo(host: string): boolean {
    const known = this.#known.get(host);
    if (known !== undefined) return known;
    const name = nameOf(host);
    const answers = isLoopbackName(name) || isAddress(name) || this.#hosts.has(name);
    if (this.#known.size >= hostsKeptMax) this.#known.clear();
    this.#known.set(host, answers);
    return answers;
  }
}

/** Opens an answer to the pages of an admitted origin. */
export function openTo(origin: string, headers: Headers): void {
  headers.set('access-control-allow-origin', origin);
  headers.set('access-control-expose-headers', exposedHeaders);
  headers.append('vary', 'Origin');
}

/** Whether a browser asks if it may send a request. */
export function isPreflight(request: Request): boolean {
  return request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
}

/** Headers that answer a preflight of a path with these methods. */
export function preflightHeaders(request: Request, methods: readonly string[]): Record<string, string> {
  const asked = request.headers.get('access-control-request-headers');
  return {
    'access-control-allow-methods': methods.join(', '),
    'access-control-max-age': preflightSeconds,
    ...(asked === null ? {} : { 'access-control-allow-headers': asked }),
  };
}

/** Without port, brackets and the dot at the end. */
function nameOf(host: string): string {
  const name = host.toLowerCase().replace(/:\d*$/, '');
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

function hostOfOrigin(origin: string): string {
  const start = origin.indexOf('://');
  return start < 0 ? '' : origin.slice(start + 3).toLowerCase();
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

function isAddress(name: string): boolean {
  return /^\d{1,3}(?:\.\d{1,3}){3}$/.test(name) || /^\[[0-9a-f:.]+\]$/.test(name);
}

function printable(text: string): string {
  return text.slice(0, 100).replace(/[^\x20-\x7e]/g, '?');
}
