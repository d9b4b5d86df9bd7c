import { Elysia } from 'elysia';
import { assert } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Method, Route } from '../routing/route.ts';
import type { Exchange } from './exchange.ts';
import type { InFlightRequests } from './in-flight-requests.ts';
import { isPreflight, preflightHeaders } from './origin-guard.ts';
import { Reply } from './reply.ts';
import { pathOf, withoutEmptySegments } from './request-path.ts';
import { type RequestRuleOptions, RequestRules } from './request-rules.ts';

export type { RequestObservation } from './request-rules.ts';

export interface AppDependencies extends RequestRuleOptions {
  readonly routes: readonly Route[];
}

interface Context {
  readonly request: Request;
  readonly params: Record<string, string> | undefined;
  readonly exchange: Exchange;
  readonly set: typeof untouched;
}
/** A route as Elysia compiles it at the first call. */
type Composed = (context: Context) => Response | Promise<Response>;
type Handler = (request: Bun.BunRequest) => Response | Promise<Response>;

const methods: readonly Method[] = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT'];

/** Elysia's place for a status and headers; `RequestRules` makes whole responses, so what is written here is dropped. */
const untouched = {
  headers: Object.freeze({}),
  get status() {
    return 200;
  },
  set status(_) {},
};

/**
 * The HTTP interface without a port: the routes, each served by `RequestRules`. A listener gives `handlers` to the runtime's
 * router and the rest to `refuse`; calls find their route in an Elysia application: tests, an embedding program and
 * `new Elysia().mount(app.handle)` call `handle`.
 */
export class App {
  readonly routes: readonly Route[];
  readonly #elysia: Elysia;
  readonly #rules: RequestRules;

  constructor({ routes, ...options }: AppDependencies) {
    this.routes = routes;
    this.#rules = new RequestRules(options);
    this.#elysia = compose(routes, this.#rules);
  }

  get inFlight(): InFlightRequests {
    return this.#rules.inFlight;
  }

  /** Routes, answers, never rejects. */
  readonly handle = async (request: Request): Promise<Response> => {
    const exchange = this.#rules.begin(request);
    exchange.isCall = true;
    const found = this.#find(request.method, withoutEmptySegments(pathOf(request.url)));
    if (found === undefined) return this.#unmatched(exchange);
    return found.composed({ request, params: found.params, exchange, set: untouched });
  };

  /**
   * The routes for the runtime's router. It matches the path as it was sent, so `%2e%2e` is a name (and refused as one);
   * the URL of the request is normalised and would have lost a segment.
   */
  handlers(): Record<string, Record<string, Handler>> {
    const handlers: Record<string, Record<string, Handler>> = {};
    for (const route of this.routes) {
      const { method, path } = route;
      // The runtime builds an object of parameters for whoever asks.
      const hasParams = path.includes(':');
      const serve: Handler = (request) => {
        return this.#rules.serve(this.#rules.begin(request), route, hasParams ? request.params : undefined);
      };
      const alsoHead = method === 'GET' ? { HEAD: serve } : {};
      handlers[path] = { ...handlers[path], [method]: serve, ...alsoHead };
    }
    return handlers;
  }

  /**
   * Answers a request that the runtime's router has no route for: 405 where the path has other methods, else 404. Only
   * `//` on the inference plane is routed again: the path that Elysia would see is normalised, and may be another one.
   */
  async refuse(request: Request): Promise<Response> {
    const path = pathOf(request.url);
    const collapsed = withoutEmptySegments(path);
    const exchange = this.#rules.begin(request);
    const found = collapsed === path ? undefined : this.#find(request.method, collapsed);
    if (found === undefined) return this.#unmatched(exchange);
    return found.composed({ request, params: found.params, exchange, set: untouched });
  }

  #find(method: string, path: string): { composed: Composed; params: Record<string, string> | undefined } | undefined {
    const wanted = method === 'HEAD' ? 'GET' : method;
    const { router } = this.#elysia;
    const index = Object.hasOwn(router.static, path) ? router.static[path]?.[wanted] : undefined;
    if (index !== undefined) {
      return { composed: router.history[index]?.compile() as unknown as Composed, params: undefined };
    }
    const found = router.http.find(wanted, path);
    if (found === null) return undefined;
    return { composed: (found.store.handler ?? found.store.compile()) as unknown as Composed, params: found.params };
  }

  /** The methods that the path has; empty when there is no such path. `HEAD` goes with `GET`. */
  #methodsOf(path: string): string[] {
    const found = methods.filter((method) => this.#find(method, path) !== undefined);
    return found.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  }

  #unmatched(exchange: Exchange): Response {
    const { request } = exchange;
    const path = pathOf(request.url);
    try {
      this.#rules.admit(exchange);
      const allowed = this.#methodsOf(path);
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
    } catch (thrown) {
      return this.#rules.fail(exchange, thrown);
    }
  }
}

function compose(routes: readonly Route[], rules: RequestRules): Elysia {
  const seen = new Set<string>();
  // Bodies are checked, never rewritten, and a path means only itself.
  const elysia = new Elysia({ normalize: false, strictPath: true })
    .decorate('exchange', undefined as unknown as Exchange)
    .mapResponse({ as: 'global' }, ({ exchange }) => exchange.answer);
  for (const route of routes) {
    const shape = `${route.method} ${route.path.replaceAll(/:[^/]+/g, ':')}`;
    assert(!seen.has(shape), `two routes for ${shape}`);
    seen.add(shape);
    // Elysia reads the text of a handler: one that returns a call is awaited, which costs what a small answer costs.
    elysia.route(route.method, route.path, ({ exchange, params }) => {
      exchange.answer = rules.serve(exchange, route, params);
    });
  }
  return elysia as unknown as Elysia;
}
