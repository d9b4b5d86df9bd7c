import { describe, expect, test } from 'bun:test';
import type { AccessLevel, Grant } from '../../../src/access/grants.ts';
import { everyone, type Principal } from '../../../src/access/principal.ts';
import { allRoutes, type RouteServices } from '../../../src/http/routing/all-routes.ts';
import { defineRoute } from '../../../src/http/routing/route.ts';
import { testApp } from '../../support/test-app.ts';

function granted(resource: string, level: AccessLevel): Principal {
  const grants: Grant[] = [{ resourceType: 'table', resource, level }];
  return { kind: 'granted', name: 'somebody', madeMs: 1, grants };
}

describe('a route asks who calls it before it reads the body', () => {
  const described = {
    summary: 'A route of this test',
    tag: 'test',
    responses: { 200: { description: 'Fine' } },
  } as const;
  const schema = { kind: 'bytes', bytesMax: 10 } as const;
  const route = (path: string, access: Parameters<typeof defineRoute>[0]['access']) =>
    defineRoute({ ...described, method: 'POST', path, access, body: schema, handler: () => ({}) });
  const routes = [
    route('/open', 'open'),
    route('/tables/:table/read', { table: 'read' }),
    route('/tables/:table/admin', { table: 'admin' }),
    route('/new/:table', 'new-table'),
    route('/models', { inference: 'read' }),
    route('/admin', 'admin'),
  ];

  const cases: readonly (readonly [principal: Principal, path: string, status: number])[] = [
    [everyone, '/admin', 413],
    [granted('books', 'read'), '/open', 413],
    [granted('books', 'read'), '/tables/books/read', 413],
    [granted('books', 'read'), '/tables/books/admin', 403],
    [granted('books', 'read'), '/tables/other/read', 404],
    [granted('books', 'read'), '/new/other', 403],
    [granted('*', 'admin'), '/new/other', 413],
    [granted('books', 'read'), '/models', 403],
    [granted('books', 'admin'), '/models', 413],
    [granted('*', 'admin'), '/admin', 403],
  ];
  test.each(cases)('%j on %s is answered %d', async (principal, path, status) => {
    const session = { principal, rowFilter: undefined };
    const app = testApp({ routes, authenticator: { identify: () => session, sessionNow: () => session } });
    const headers = { 'content-length': '11' };
    const request = new Request(`http://localhost${path}`, { method: 'POST', body: 'more than 10', headers });
    expect((await app.handle(request)).status).toBe(status);
  });

  test('what is open is what a stranger may know: probes and documentation', () => {
    const open = allRoutes({ inference: {} } as RouteServices, '1').filter(({ access }) => access === 'open');
    expect(open.map(({ path }) => path).filter((path) => !path.startsWith('/docs'))).toEqual([
      '/healthz',
      '/livez',
      '/readyz',
      '/',
      '/openapi.json',
    ]);
  });
});
