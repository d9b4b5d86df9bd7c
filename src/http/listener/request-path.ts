import { isInferencePath } from '../../protocol/inference/error-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** The path of an absolute or path-only URL, still percent-encoded. */
export function pathOf(url: string): string {
  const scheme = url.startsWith('/') ? -1 : url.indexOf('://');
  const start = scheme < 0 ? 0 : url.indexOf('/', scheme + 3);
  const end = url.indexOf('?', Math.max(start, 0));
  return start < 0 ? '/' : url.slice(start, end < 0 ? undefined : end);
}

/**
 * Whether the path of a URL was sent as it is. `segments` are those of the path that was sent, as the runtime's router decodes
 * them: a URL has lost its dot segments, has `/` for `\\`, and is led by the host.
 */
export function isAsSent(path: string, segments: Readonly<Record<string, string>>): boolean {
  const sent = Object.values(segments);
  const shown = path.split('/').slice(1);
  return shown.length === sent.length && shown.every((segment, at) => decoded(segment) === sent[at]);
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/**
 * Collapses `//` on the inference plane, whose clients make it of a base URL that ends in `/`. Elsewhere an empty segment
 * may be a key that was left out by mistake.
 */
export function withoutEmptySegments(path: string): string {
  return isInferencePath(path) ? path.replaceAll(/\/{2,}/g, '/') : path;
}

/**
 * Throws `invalid_request` for parameters with an escape that is not UTF-8. The runtime's router puts U+FFFD in its
 * place, Elysia's `null`; where one of them appears, the path is decoded again, strictly. The address is asked for only
 * then: the runtime has to build it.
 */
export function checkDecoding(params: Readonly<Record<string, string | null>>, request: Pick<Request, 'url'>): void {
  for (const name in params) {
    const value = params[name];
    if (value === null || value?.includes('\ufffd')) decodeStrictly(pathOf(request.url));
  }
}

function decodeStrictly(path: string): void {
  try {
    decodeURIComponent(path);
  } catch (cause) {
    throw new ServiceError('invalid_request', 'the path has a percent escape that is not UTF-8', { cause });
  }
}
