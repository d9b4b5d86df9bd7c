import { assert } from '../lib/assert.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { Route } from './route.ts';

interface Pattern {
  readonly segments: readonly string[];
  readonly route: Route;
}

/**
 * Finds routes by path outside the runtime's own router: for requests that are handed to the application without a
 * port, and to say which methods a path does have.
 */
export class RouteTable {
  readonly #patterns: readonly Pattern[];

  constructor(routes: readonly Route[]) {
    const seen = new Set<string>();
    for (const { method, path } of routes) {
      const shape = `${method} ${path.replaceAll(/:[^/]+/g, ':')}`;
      assert(!seen.has(shape), `two routes for ${shape}`);
      seen.add(shape);
    }
    const patterns = routes.map((route) => ({ segments: route.path.split('/'), route }));
    // A literal segment beats a parameter.
    this.#patterns = patterns.sort((a, b) => literals(b) - literals(a));
  }

  /** The methods that the path has; empty when there is no such path. `HEAD` goes with `GET`. */
  methodsOf(path: string): string[] {
    const segments = path.split('/');
    const methods = this.#patterns.filter((pattern) => matches(pattern, segments)).map(({ route }) => route.method);
    return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))].sort();
  }

  find(method: string, path: string): { route: Route; params: Record<string, string> } | undefined {
    const segments = path.split('/');
    const wanted = method === 'HEAD' ? 'GET' : method;
    const found = this.#patterns.find((pattern) => pattern.route.method === wanted && matches(pattern, segments));
    if (found === undefined) return undefined;
    const params: Record<string, string> = {};
    for (const [index, segment] of found.segments.entries()) {
      if (segment.startsWith(':')) params[segment.slice(1)] = decoded(segments[index] ?? '');
    }
    return { route: found.route, params };
  }
}

function literals(pattern: Pattern): number {
  return pattern.segments.filter((segment) => !segment.startsWith(':')).length;
}

function matches(pattern: Pattern, segments: readonly string[]): boolean {
  if (pattern.segments.length !== segments.length) return false;
  return pattern.segments.every((wanted, index) =>
    wanted.startsWith(':') ? segments[index] !== '' : wanted === segments[index],
  );
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw badEncoding(cause);
  }
}

function badEncoding(cause: unknown): ServiceError {
  return new ServiceError('invalid_request', 'the path has a percent escape that is not UTF-8', { cause });
}

/**
 * Parameters as the runtime's router decoded them. It puts U+FFFD where an escape is not UTF-8, so where that character
 * appears the path is decoded again, strictly. The address is asked for only then: the runtime has to build it.
 */
export function checkDecoding(params: Readonly<Record<string, string>>, request: Pick<Request, 'url'>): void {
  for (const name in params) {
    if (params[name]?.includes('\ufffd')) decoded(pathOf(request.url));
  }
}

/** The path of an absolute or path-only URL, still percent-encoded. */
export function pathOf(url: string): string {
  const scheme = url.startsWith('/') ? -1 : url.indexOf('://');
  const start = scheme < 0 ? 0 : url.indexOf('/', scheme + 3);
  const end = url.indexOf('?', Math.max(start, 0));
  return start < 0 ? '/' : url.slice(start, end < 0 ? undefined : end);
}
