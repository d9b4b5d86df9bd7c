import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { AccessLevel } from '../../../src/access/grants.ts';
import { everyone, type Principal, type RowFilters } from '../../../src/access/principal.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { RunningConfig } from '../../../src/config/reload.ts';
import { allRoutes, type RouteServices } from '../../../src/http/routing/all-routes.ts';
import type { Route } from '../../../src/http/routing/route.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { openSecrets } from '../../../src/server/access/open-secrets.ts';
import type { Database } from '../../../src/server/database/open-database.ts';
import { openBackups } from '../../../src/server/open-backups.ts';
import { callHandler } from '../../support/call-handler.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { keepingLogger } from '../../support/test-app.ts';

// The handlers are called without the guard of the routes, so that what refuses a caller is the service behind each.
// A new route that reaches a table is part of it by its `access`; one with a body fails until it has one here.

type Reach = AccessLevel | 'every table' | 'nothing';

interface Case {
  /** Of the table `books`; the route's own where its access names it. */
  readonly needs?: Reach;
  /** The answer for a stranger, where it is not the answer that hides the table. */
  readonly stranger?: string;
  readonly body?: unknown;
  readonly query?: object;
  /** A caller with a row filter is refused, whatever its grants. */
  readonly tellsOfAll?: boolean;
}

const insert = { inserts: { a: { n: 1 } } };
const columns = {
  storage_mode: 'relational',
  default_type: 'book',
  document_schemas: { book: { schema: { type: 'object', properties: { n: { type: 'integer' } } } } },
};
const backup = { backup_id: 'b', location: 'file:///backups/b', connection: 'disk' };

const cases: Readonly<Record<string, Case>> = {
  // The list shows every caller its own tables.
  'GET /db/v1/tables': { needs: 'nothing' },
  'POST /db/v1/tables/:table': { needs: 'admin', body: {} },
  'PUT /db/v1/tables/:table/schema': { body: {} },
  'POST /db/v1/tables/:table/batch': { body: bodyOf(insert) },
  'POST /db/v1/batch': { needs: 'write', body: bodyOf({ tables: { books: insert } }) },
  'POST /db/v1/tables/:table/merge': { body: bodyOf({ records: { a: { n: 2 } }, dry_run: true }) },
  'POST /db/v1/transactions/commit': { needs: 'write', body: bodyOf({ read_set: [], tables: { books: insert } }) },
  'POST /db/v1/transactions/:transaction/stage': { needs: 'write', body: bodyOf({ tables: { books: insert } }) },
  'POST /db/v1/transactions/:transaction/read': { needs: 'read', body: { table: 'books', key: 'a' } },
  'POST /db/v1/transactions/:transaction/write': {
    needs: 'write',
    body: bodyOf({ table: 'books', key: 'a', document: { n: 1 } }),
  },
  'POST /db/v1/transactions/:transaction/delete': { needs: 'write', body: { table: 'books', key: 'a' } },
  'POST /db/v1/transactions/:transaction/commit': { needs: 'write' },
  'POST /db/v1/tables/:table/lookup': { body: {} },
  'POST /db/v1/tables/:table/documents': { body: {} },
  'POST /db/v1/query': { needs: 'read', body: bodyOf({ table: 'books', limit: 1 }) },
  'POST /db/v1/tables/:table/query': { body: bodyOf({ limit: 1 }) },
  // SQL itself says that a hidden table is not there.
  'POST /db/v1/sql': { needs: 'read', stranger: 'invalid_query', body: { sql: 'SELECT 1 FROM books' } },
  'GET /db/v1/tables/:table/indexes': { tellsOfAll: true },
  'GET /db/v1/tables/:table/indexes/:index': { tellsOfAll: true },
  'POST /db/v1/tables/:table/indexes/:index': { body: { type: 'full_text' } },
  'POST /db/v1/tables/:table/indexes/:index/preview': { body: {} },
  'GET /db/v1/tables/:table/indexes/:index/edges': { query: { key: 'a' } },
  'POST /db/v1/tables/:table/indexes/:index/traverse': { body: { start: 'a' } },
  'POST /db/v1/tables/:table/indexes/:index/shortest-path': { body: { source: 'a', target: 'b' } },
  'POST /db/v1/tables/:table/indexes/:index/algorithms': { body: { algorithm: 'degree' } },
  'PUT /db/v1/tables/:table/artifacts/:artifact/enrichment': { body: {} },
  'POST /db/v1/tables/:table/artifacts/:artifact/reprocess': { body: {} },
  'POST /db/v1/backup': { needs: 'every table', body: backup },
  'GET /db/v1/backups': { needs: 'every table', query: { location: backup.location, connection: 'disk' } },
  'POST /db/v1/tables/:table/backup': { body: backup },
  'POST /db/v1/restore': { needs: 'every table', body: backup },
  'POST /db/v1/tables/:table/restore': { needs: 'admin', body: backup },
};

const nameOf = ({ method, path }: Route) => `${method} ${path}`;

/** Whether the access names a table or leaves it to the services. Backups and restores reach every table. */
function reachesTables({ access, tag }: Route): boolean {
  return access === 'tables' || access === 'new-table' || isOfTable(access) || (access === 'admin' && tag === 'backup');
}

function isOfTable(access: Route['access']): access is { readonly table: AccessLevel } {
  return typeof access === 'object' && 'table' in access;
}

/** A stranger does not hear whether a table exists, so it is refused alike where the table need not. */
function strangerOf(needs: Reach, access: Route['access'] | undefined): string {
  if (needs === 'nothing') return 'reached';
  return needs === 'every table' || access === 'new-table' ? 'forbidden' : 'table_not_found';
}

function holder(resource: string, level: AccessLevel): Principal {
  return { kind: 'granted', name: 'somebody', madeMs: 1, grants: [{ resourceType: 'table', resource, level }] };
}

const routes = allRoutes({ inference: {} } as RouteServices, '1').filter(reachesTables);

describe('the service behind every route asks who calls it', () => {
  const directory = new TemporaryDirectory();
  let database: Database;
  let backups: Awaited<ReturnType<typeof openBackups>>;
  let served: ReadonlyMap<string, Route>;

  beforeAll(async () => {
    database = await openTestDatabase(directory.path);
    const flags = new Map([['--data-dir', join(directory.path, 'data')]]);
    const load = () => loadConfig({ flags, environment: {}, file: undefined, readFile: () => '' });
    const deps = { config: new RunningConfig(load(), load), clock: systemClock, logger: keepingLogger() };
    backups = await openBackups({ ...deps, secrets: openSecrets(deps), database });
    const services = { ...database.services, ...backups.services, inference: {} } as unknown as RouteServices;
    served = new Map(allRoutes(services, '1').map((route) => [nameOf(route), route]));
  });

  afterAll(async () => {
    await backups.stop();
    await database.close();
    directory[Symbol.dispose]();
  });

  /** The code that the handler fails with; `reached` for any that does not refuse the caller. */
  async function answerTo(name: string, principal: Principal, rowFilter?: RowFilters): Promise<string> {
    const route = served.get(name);
    if (route === undefined) throw new Error(`no route ${name}`);
    const caller = testCaller({ principal, rowFilter });
    const { tables, transactions } = database.services;
    if (tables.all().length === 0) await tables.create('books', { schema: columns }, testCaller());
    const { id } = transactions.begin(undefined, caller);
    // The grants of the owner may have become smaller since it staged the write.
    const writer = testCaller({ principal: principal.kind === 'everyone' ? everyone : holder('books', 'write') });
    await transactions.stage(id, bodyOf({ tables: { books: insert } }), writer);
    const { body, query } = cases[name] ?? {};
    const params = { table: 'books', key: 'a', index: 'x', artifact: 'x', job: 'x', transaction: id };
    try {
      const code = (await callHandler(route, { caller, params, query, body })) ?? 'reached';
      return ['forbidden', 'table_not_found', cases[name]?.stranger].includes(code) ? code : 'reached';
    } finally {
      await transactions.abort(id, caller).catch(() => undefined);
    }
  }

  test('no case is of a route that is gone, and each route that needs one has it', () => {
    const names = routes.map(nameOf);
    expect(Object.keys(cases).filter((name) => !names.includes(name))).toEqual([]);
    const bare = routes.filter(({ access, body }) => !isOfTable(access) || (body && !('optional' in body)));
    expect(bare.map(nameOf).filter((name) => !(name in cases))).toEqual([]);
  });

  const listed = routes.map((route): [string, Reach] => {
    const needs = cases[nameOf(route)]?.needs ?? (isOfTable(route.access) ? route.access.table : 'every table');
    return [nameOf(route), needs];
  });

  test.each(listed)('%s, which needs %s', async (name, needs) => {
    const answers: Record<string, string> = {};
    const expected: Record<string, string> = {};
    for (const level of ['read', 'write', 'admin'] as const) {
      answers[level] = await answerTo(name, holder('books', level));
      const isEnough = needs === 'nothing' || level === needs || (level === 'admin' && needs !== 'every table');
      expected[level] = isEnough ? 'reached' : 'forbidden';
    }
    answers.stranger = await answerTo(name, holder('plates', 'admin'));
    expected.stranger = cases[name]?.stranger ?? strangerOf(needs, served.get(name)?.access);
    answers.everyone = await answerTo(name, everyone);
    expected.everyone = 'reached';
    // A caller that sees only some documents reads and writes those, and does not administer the table.
    answers.filtered = await answerTo(name, holder('books', 'admin'), { books: { match_all: {} } });
    const isForAll = needs === 'admin' || needs === 'every table' || cases[name]?.tellsOfAll === true;
    expected.filtered = isForAll ? 'forbidden' : 'reached';
    expect(answers).toEqual(expected);
  });
});
