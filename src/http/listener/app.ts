import { assert } from '../../lib/assert.ts';
import { openOnce } from '../../lib/concurrency/open-once.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Method, Route } from '../routing/route.ts';
import type { CallRouter } from './call-router.ts';
import type { Exchange } from './exchange.ts';
import type { InFlightRequests } from './in-flight-requests.ts';
import { isPreflight, preflightHeaders } from './origin-guard.ts';
import { Reply } from './reply.ts';
import { isAsSent, pathOf, withoutEmptySegments } from './request-path.ts';
import { type RequestRuleOptions, RequestRules } from './request-rules.ts';

export type { RequestObservation } from './request-rules.ts';

export interface AppDependencies extends RequestRuleOptions {
  readonly routes: readonly Route[];
  /**
   * Loads all routes, which take the place of `routes`: where a start does not wait for all of them. Not given where `routes` are
   * all. A path is among `routes` with all of its methods or with none.
   */
  readonly loadRoutes?: () => Promise<readonly Route[]>;
}

type Handler = (request: Bun.BunRequest) => Response | Promise<Response>;
type Handlers = Handler | Record<string, Handler>;

const methods: readonly Method[] = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT'];
/** `/:s1`, `/:s1/:s2`, ... for the runtime's router: every path of no more segments, as it was sent. */
const anyPaths = Array.from({ length: 12 }, (_, last) =>
  Array.from({ length: last + 1 }, (_each, segment) => `/:s${segment + 1}`).join(''),
);

/**
 * The HTTP interface without a port: the routes, each served by `RequestRules`. A listener gives `handlers` to the runtime's
 * router and the rest to `refuse`; calls find their route in an Elysia application: tests, an embedding program and
 * `new Elysia().mount(app.handle)` call `handle`.
 */
export class App {
  readonly #rules: RequestRules;
  readonly #complete: () => Promise<void>;
  #routes: readonly Route[];
  #isComplete: boolean;
  #onComplete: () => void = () => {};
  #callRouter: CallRouter | undefined;

  constructor({ routes, loadRoutes, ...options }: AppDependencies) {
    requireDistinct(routes);
    this.#routes = routes;
    this.#isComplete = loadRoutes === undefined;
    this.#rules = new RequestRules(options);
    this.#complete = openOnce(async () => {
      if (loadRoutes === undefined) return;
      const all = await loadRoutes();
      requireDistinct(all);
      this.#routes = all;
      this.#isComplete = true;
      this.#onComplete();
    });
  }

  /** Those that are loaded. */
  get routes(): readonly Route[] {
    return this.#routes;
  }

  get inFlight(): InFlightRequests {
    return this.#rules.inFlight;
  }

  /** Routes, answers, never rejects. */
  readonly handle = async (request: Request): Promise<Response> => {
    const exchange = this.#rules.begin(request);
    exchange.isCall = true;
    return this.#route(exchange, withoutEmptySegments(pathOf(request.url)));
  };

  /**
   * The routes for the runtime's router. It matches the path as it was sent, so `%2e%2e` is a name (and refused as one);
   * the URL of the request is normalised and would have lost a segment. Until all routes are loaded, other paths wait for
   * them; whoever has the handlers is told of that moment, and asks again.
   */
  handlers(onComplete: () => void = () => {}): Record<string, Handlers> {
    const handlers: Record<string, Record<string, Handler>> = {};
    for (const route of this.#routes) {
      const { method, path } = route;
      // The runtime builds an object of parameters for whoever asks.
      const hasParams = path.includes(':');
      const serve: Handler = (request) => {
        return this.#rules.serve(this.#rules.begin(request), route, hasParams ? request.params : undefined);
      };
      const alsoHead = method === 'GET' ? { HEAD: serve } : {};
      handlers[path] = { ...handlers[path], [method]: serve, ...alsoHead };
    }
    if (this.#isComplete) return handlers;
    this.#onComplete = onComplete;
    const serveLater: Handler = (request) => {
      const path = pathOf(request.url);
      return this.#route(this.#rules.begin(request), isAsSent(path, request.params) ? path : undefined);
    };
    return { ...handlers, ...Object.fromEntries(anyPaths.map((path) => [path, serveLater])) };
  }

  /**
   * Answers a request that the runtime's router has no route for: 405 where the path has other methods, else 404. Only
   * `//` on the inference plane is routed again: the path that Elysia would see is normalised, and may be another one.
   */
  async refuse(request: Request): Promise<Response> {
    const path = pathOf(request.url);
    const collapsed = withoutEmptySegments(path);
    return this.#route(this.#rules.begin(request), collapsed === path ? undefined : collapsed);
  }

  /** Loads what a start does not wait for: the other routes, and the router of calls and refusals. */
  async prepareCalls(): Promise<CallRouter> {
    await this.#complete();
    const { CallRouter } = await import('./call-router.ts');
    this.#callRouter ??= new CallRouter(this.#routes, (exchange, route, params) =>
      this.#rules.serve(exchange, route, params),
    );
    return this.#callRouter;
  }

  /** Answers by the route of the path; without a path, that there is none. */
  async #route(exchange: Exchange, path: string | undefined): Promise<Response> {
    try {
      const router = this.#callRouter ?? (await this.prepareCalls());
      const answer = path === undefined ? undefined : router.find(exchange.request.method, path);
      return await (answer === undefined ? this.#unmatched(exchange, router) : answer(exchange));
    } catch (thrown) {
      return this.#rules.fail(exchange, thrown);
    }
  }

  #unmatched(exchange: Exchange, router: CallRouter): Response {
    const { request } = exchange;
    const path = pathOf(request.url);
    this.#rules.admit(exchange);
    const allowed = methodsOf(router, path);
    // A method that is allowed has not come here by this path, but by one that is normalised to it.
    if (allowed.length === 0 || allowed.includes(request.method)) {
      throw new ServiceError('not_found', 'there is no such route; GET /docs lists what there is');
    }
    if (exchange.openToOrigin !== undefined && isPreflight(request)) {
      return this.#rules.finish(exchange, new Reply(204, null, preflightHeaders(request, allowed)));
    }
    const allow = allowed.join(', ');
    const error = new ServiceError('method_not_allowed', `this path takes ${allow}, not ${request.method}`);
    return this.#rules.fail(exchange, error, { allow });
  }
}

/** The methods that the path has; empty when there is no such path. */
function methodsOf(router: CallRouter, path: string): string[] {
  const found = methods.filter((method) => router.find(method, path) !== undefined);
  return found.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}

function requireDistinct(routes: readonly Route[]): void {
  const seen = new Set<string>();
  for (const route of routes) {
    const shape = `${route.method} ${route.path.replaceAll(/:[^/]+/g, ':')}`;
    assert(!seen.has(shape), `two routes for ${shape}`);
    seen.add(shape);
  }
}
