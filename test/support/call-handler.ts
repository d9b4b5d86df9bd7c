import type { Caller } from '../../src/access/principal.ts';
import type { Route } from '../../src/http/routing/route.ts';

interface Given {
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  readonly query?: object | undefined;
  readonly body?: unknown;
}

/**
 * Calls the handler of a route without the guard before it, so that what refuses the caller is the service behind it. Resolves
 * with the code of the error, or undefined where there is none.
 */
export async function callHandler(
  route: Route,
  { caller, params, query = {}, body }: Given,
): Promise<string | undefined> {
  const context = {
    params,
    query,
    body,
    request: new Request(`http://localhost${route.path}`, { method: route.method }),
    requestId: caller.requestId,
    signal: caller.signal,
    caller,
    acceptsMsgpack: false,
    addTiming: () => undefined,
    openStream: () => ({ failed: (thrown: unknown) => thrown as never, end: () => undefined }),
  };
  try {
    const answer = await route.handler(context as never);
    if (answer instanceof Response) await answer.text();
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === undefined) throw error;
    return code;
  }
  return undefined;
}
