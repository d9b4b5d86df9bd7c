import { type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import type { Clock } from '../../lib/clock.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { isPublicAddress, isPublicName, literalAddress } from './public-address.ts';

interface Address {
  readonly address: string;
  readonly family: number;
}

/** The operator's settings for fetching. */
interface FetchPolicy {
  /** Host names that media may come from; empty for every host. `.example.org` stands for all below it. */
  readonly allowedHosts: readonly string[];
  readonly blockPrivateAddresses: boolean;
  /** For one address, redirects included, in milliseconds; 0 for no deadline. */
  readonly deadlineMs: number;
}

export interface FetchMediaDeps {
  readonly policy: FetchPolicy;
  readonly clock: Clock;
  readonly resolve: (host: string) => Promise<readonly Address[]>;
  readonly onBlocked?: (reason: 'scheme' | 'host' | 'address') => void;
}

export interface FetchedMedia {
  readonly bytes: Uint8Array;
  readonly mediaType: string | undefined;
}

const redirectsMax = 5;
const redirects = [301, 302, 303, 307, 308];

/**
 * Fetches images and sounds from addresses that requests name. A host name is resolved once, the addresses are checked,
 * and the connection goes to one of those; every redirect is checked again.
 */
export class MediaFetcher {
  readonly #deps: FetchMediaDeps;

  constructor(deps: FetchMediaDeps) {
    this.#deps = deps;
  }

  /** At most `bytesMax` bytes. Throws `invalid_media`, `image_not_found`, `media_too_large`, `media_fetch_failed`. */
  async fetch(url: string, bytesMax: number, where: string, signal?: AbortSignal): Promise<FetchedMedia> {
    const { policy, clock } = this.#deps;
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    const late = new ServiceError('media_fetch_failed', `${where} could not be fetched within ${policy.deadlineMs} ms`);
    const cancel = policy.deadlineMs > 0 ? clock.after(policy.deadlineMs, () => stop.abort(late)) : () => {};
    try {
      signal?.throwIfAborted();
      return await this.#follow(url, bytesMax, where, stop.signal);
    } catch (error) {
      if (stop.signal.aborted) throw stop.signal.reason;
      if (error instanceof ServiceError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new ServiceError('media_fetch_failed', `${where} could not be fetched: ${reason}`, { cause: error });
    } finally {
      cancel();
      signal?.removeEventListener('abort', onAbort);
      // Whatever is still open is closed.
      stop.abort();
    }
  }

  async #follow(first: string, bytesMax: number, where: string, signal: AbortSignal): Promise<FetchedMedia> {
    let url = this.#checked(first, undefined, where);
    for (let hop = 0; hop <= redirectsMax; hop += 1) {
      // A name server that is silent is waited for no longer than a host.
      const addresses = await abortable(this.#addressesOf(url, where), signal);
      const answer = await this.#get(url, addresses, signal);
      const { statusCode: status = 0, headers } = answer;
      if (!redirects.includes(status)) return await readAnswer(answer, bytesMax, where, signal);
      answer.destroy();
      if (headers.location === undefined) break;
      url = this.#checked(headers.location, url, where);
    }
    throw new ServiceError('media_fetch_failed', `${where} is redirected without an end`);
  }

  #checked(text: string, base: URL | undefined, where: string): URL {
    const url = /[\\\p{Cc}\s]/u.test(text) ? null : URL.parse(text, base?.href);
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      this.#deps.onBlocked?.('scheme');
      throw new ServiceError('invalid_media', `${where} must be a data URI or an http or https URL`);
    }
    if (url.username !== '' || url.password !== '') {
      this.#deps.onBlocked?.('scheme');
      throw new ServiceError('invalid_media', `${where}: a URL may not carry a name or password`);
    }
    const { allowedHosts } = this.#deps.policy;
    const host = url.hostname.toLowerCase().replace(/\.$/, '');
    const allowed = allowedHosts.some((each) => (each.startsWith('.') ? host.endsWith(each) : host === each));
    if (allowedHosts.length > 0 && !allowed) {
      this.#deps.onBlocked?.('host');
      throw new ServiceError('invalid_media', `${where}: media may not be fetched from this host`);
    }
    return url;
  }

  /** Where to connect to. Refuses a host when any of its addresses is not public. */
  async #addressesOf({ hostname }: URL, where: string): Promise<readonly Address[]> {
    const { policy, resolve, onBlocked } = this.#deps;
    const blocked = () => {
      onBlocked?.('address');
      return new ServiceError('invalid_media', `${where}: media may not be fetched from a private address`);
    };
    const literal = literalAddress(hostname);
    if (literal === undefined && policy.blockPrivateAddresses && !isPublicName(hostname)) throw blocked();
    const addresses =
      literal === undefined ? await resolve(hostname) : [{ address: literal, family: literal.includes(':') ? 6 : 4 }];
    if (addresses.length === 0) throw new Error('the host has no address');
    if (policy.blockPrivateAddresses && !addresses.every(({ address }) => isPublicAddress(address))) throw blocked();
    return addresses;
  }

  #get(url: URL, addresses: readonly Address[], signal: AbortSignal): Promise<IncomingMessage> {
    const options: RequestOptions = {
      method: 'GET',
      hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
      path: `${url.pathname}${url.search}`,
      headers: { accept: 'image/*, audio/*, */*;q=0.5', 'accept-encoding': 'identity', 'user-agent': 'sundew' },
      agent: false,
      signal,
      // The name is not resolved again: the connection goes to what was checked.
      lookup: (_host, { all }, done) => {
        const [first] = addresses;
        if (all === true)
          done(
            null,
            addresses.map((each) => ({ ...each })),
          );
        else done(null, first?.address ?? '', first?.family ?? 4);
      },
    };
    return new Promise((resolve, reject) => {
      const send = url.protocol === 'https:' ? requestSecure : requestPlain;
      const request = send(options, resolve);
      request.on('error', reject);
      request.end();
    });
  }
}

async function readAnswer(
  answer: IncomingMessage,
  bytesMax: number,
  where: string,
  signal: AbortSignal,
): Promise<FetchedMedia> {
  const { statusCode, headers } = answer;
  checkStatus(statusCode ?? 0, where);
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    throw new ServiceError('invalid_media', `${where}: compressed answers are not taken`);
  }
  const tooLarge = new ServiceError('media_too_large', `${where}: the media of a request are too large`);
  if (Number(headers['content-length'] ?? 0) > bytesMax) throw tooLarge;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Uint8Array>) {
    bytes += piece.byteLength;
    if (bytes > bytesMax) throw tooLarge;
    pieces.push(piece);
  }
  // A body that ends with its connection also ends when we close that.
  signal.throwIfAborted();
  if (headers['content-length'] !== undefined && Number(headers['content-length']) !== bytes) {
    throw new Error('the connection ended early');
  }
  return { bytes: Buffer.concat(pieces), mediaType: headers['content-type'] };
}

/** A failure that may pass by itself is an Error; a host that does not want to give it will not want to again. */
function checkStatus(status: number, where: string): void {
  if (status === 200) return;
  if (status === 404 || status === 410) {
    throw new ServiceError('image_not_found', `${where} is not there: the answer was HTTP ${status}`);
  }
  if (status >= 400 && status < 500 && status !== 408 && status !== 429) {
    throw new ServiceError('invalid_media', `${where} may not be fetched: the answer was HTTP ${status}`);
  }
  throw new Error(`the answer was HTTP ${status}`);
}
