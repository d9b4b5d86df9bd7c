import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Method, type Route } from './route.ts';

interface Part {
  /** Subject of the sentence "... is not built yet" that the caller reads. */
  readonly name: string;
  /** `METHOD /path` */
  readonly routes: readonly string[];
}

/**
 * Every route of the interface that has no code behind it yet. Each answers 501 `not_implemented` and names its part;
 * the README's table and the tests walk this list. A part that gets built leaves it.
 */
export const unimplementedParts: readonly Part[] = [
  {
    name: 'Agents and evaluation',
    routes: ['POST /db/v1/agents/retrieval', 'POST /db/v1/agents/query-builder', 'POST /db/v1/eval'],
  },
];

/** One route for each of them. The body is not read. */
export function unimplementedRoutes(concerns: (path: string) => boolean = () => true): Route[] {
  const all = unimplementedParts.flatMap(({ name, routes }) => routes.map((route) => unimplementedRoute(name, route)));
  return all.filter(({ path }) => concerns(path));
}

function unimplementedRoute(part: string, route: string): Route {
  const [method, path] = route.split(' ') as [Method, string];
  return defineRoute({
    method,
    path,
    // Says nothing but that it is not there; whoever builds it says who may call it.
    access: 'authenticated',
    tag: 'Not built yet',
    summary: `${part}: not built yet.`,
    // The error that every route may answer.
    responses: {},
    handler() {
      throw new ServiceError('not_implemented', `${part}: ${method} ${shown(path)} is not built yet`);
    },
  });
}

function shown(path: string): string {
  return path.replaceAll(/:([^/]+)/g, '{$1}');
}
