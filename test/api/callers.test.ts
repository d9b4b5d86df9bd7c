import { describe, expect, test } from 'bun:test';
import type { AccessLevel, Grant } from '../../src/access/grants.ts';
import { everyone, type Principal } from '../../src/access/principal.ts';
import { allRoutes, type RouteServices } from '../../src/http/routing/all-routes.ts';
import { defineRoute } from '../../src/http/routing/route.ts';
import type { Database } from '../../src/server/database/open-database.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { testApp } from '../support/test-app.ts';

const callerOf = (principal: Principal) => testCaller({ principal });

function granted(resource: string, level: AccessLevel): Principal {
  const grants: Grant[] = [{ resourceType: 'table', resource, level }];
  return { kind: 'granted', name: 'somebody', grants };
}

async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work();
    return 'ok';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

/** Every method that a request can reach, with what it needs of the table `books`. */
function methods({ services }: Database, caller: ReturnType<typeof testCaller>) {
  const { tables, writes, documents, queries, indexes } = services;
  const insert = { inserts: { a: { n: 1 } } };
  const read: Record<string, () => unknown> = {
    'tables.get': () => tables.get('books', caller, 'read'),
    'documents.lookup': () => documents.lookup('books', 'a', undefined, caller),
    'documents.scan': () => documents.scan('books', {}, caller),
    'queries.run': () => queries.run('books', bodyOf({ limit: 1 }), caller),
    'queries.run, table in the body': () => queries.run(undefined, bodyOf({ table: 'books', limit: 1 }), caller),
    'indexes.list': () => indexes.list('books', caller),
  };
  const write: Record<string, () => unknown> = {
    'writes.batch': () => writes.batch('books', bodyOf(insert), caller),
    'writes.multiBatch': () => writes.multiBatch(bodyOf({ tables: { books: insert } }), caller),
    'writes.commit': () => writes.commit(bodyOf({ read_set: [], tables: { books: insert } }), caller),
    'writes.merge': () => writes.merge('books', bodyOf({ records: { a: { n: 2 } }, dry_run: true }), caller),
  };
  const admin: Record<string, () => unknown> = {
    'tables.updateSchema': () => tables.updateSchema('books', {}, caller),
    'indexes.create': () => indexes.create('books', 'more', { type: 'full_text' }, caller),
    'indexes.drop': () => indexes.drop('books', 'more', caller),
  };
  return { read, write, admin };
}

describe('every method of a service asks who calls it', () => {
  test('a table without a grant is not there, with too small a grant it is forbidden', async () => {
    using directory = new TemporaryDirectory();
    const database = await openTestDatabase(directory.path);
    try {
      const all = callerOf(everyone);
      await database.services.tables.create('books', {}, all);
      await database.services.writes.batch('books', bodyOf({ inserts: { a: { n: 1 } } }), all);
      for (const level of ['read', 'write', 'admin'] as const) {
        for (const [needed, calls] of Object.entries(methods(database, callerOf(granted('books', level))))) {
          const expected = level === needed || level === 'admin' ? 'ok' : 'forbidden';
          for (const [name, call] of Object.entries(calls)) {
            const code = await codeOf(call);
            expect([level, name, code === 'index_not_found' ? 'ok' : code]).toEqual([level, name, expected]);
          }
        }
      }
      const stranger = methods(database, callerOf(granted('other', 'admin')));
      for (const [name, call] of Object.values(stranger).flatMap((calls) => Object.entries(calls))) {
        expect([name, await codeOf(call)]).toEqual([name, 'table_not_found']);
      }
      const { tables } = database.services;
      const names = (principal: Principal) =>
        tables.list(undefined, undefined, callerOf(principal)).map(({ name }) => name);
      expect([names(everyone), names(granted('books', 'read')), names(granted('x', 'admin'))]).toEqual([
        ['books'],
        ['books'],
        [],
      ]);
      expect(await codeOf(() => tables.create('new', {}, callerOf(granted('books', 'admin'))))).toBe('forbidden');
      expect(await codeOf(() => tables.drop('books', callerOf(granted('books', 'write'))))).toBe('forbidden');
    } finally {
      await database.close();
    }
  });
});

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
    const app = testApp({ routes, authenticator: { identify: () => ({ principal, rowFilter: undefined }) } });
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
      '/openapi.json',
    ]);
  });
});
