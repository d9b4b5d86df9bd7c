import { Elysia } from 'elysia';
import type { Route } from '../routing/route.ts';
import type { Exchange } from './exchange.ts';

// This module is a bundle of its own: the listener does without the framework until a call or a refusal needs it.

type Params = Record<string, string> | undefined;
type Serve = (exchange: Exchange, route: Route, params: Params) => Response | Promise<Response>;

interface Context {
  readonly request: Request;
  readonly params: Params;
  readonly exchange: Exchange;
  readonly set: typeof untouched;
}
/** A route as Elysia compiles it at the first call. */
type Composed = (context: Context) => Response | Promise<Response>;

/** Elysia's place for a status and headers; `RequestRules` makes whole responses, so what is written here is dropped. */
const untouched = {
  headers: Object.freeze({}),
  get status() {
    return 200;
  },
  set status(_) {},
};

/** Routes of calls, which the runtime's router does not see, as one Elysia application. `HEAD` goes with `GET`. */
export class CallRouter {
  readonly #elysia: Elysia;

  constructor(routes: readonly Route[], serve: Serve) {
    // Bodies are checked, never rewritten, and a path means only itself.
    const elysia = new Elysia({ normalize: false, strictPath: true })
      .decorate('exchange', undefined as unknown as Exchange)
      .mapResponse({ as: 'global' }, ({ exchange }) => exchange.answer);
    for (const route of routes) {
      // Elysia reads the text of a handler: one that returns a call is awaited, which costs what a small answer costs.
      elysia.route(route.method, route.path, ({ exchange, params }) => {
        exchange.answer = serve(exchange, route, params);
      });
    }
    this.#elysia = elysia as unknown as Elysia;
  }

  /** The route of `method` and `path` as a function that answers, or undefined where there is none. */
  find(method: string, path: string): ((exchange: Exchange) => Response | Promise<Response>) | undefined {
    const wanted = method === 'HEAD' ? 'GET' : method;
    const { router } = this.#elysia;
    const index = Object.hasOwn(router.static, path) ? router.static[path]?.[wanted] : undefined;
    if (index !== undefined) return answering(router.history[index]?.compile(), undefined);
    const found = router.http.find(wanted, path);
    return found === null ? undefined : answering(found.store.handler ?? found.store.compile(), found.params);
  }
}

function answering(compiled: unknown, params: Params) {
  const composed = compiled as Composed;
  return (exchange: Exchange) => composed({ request: exchange.request, params, exchange, set: untouched });
}
