import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { AccessLevel, Grant } from '../../../src/access/grants.ts';
import type { Principal } from '../../../src/access/principal.ts';
import { SecretService } from '../../../src/access/secrets/secret-service.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { RunningConfig } from '../../../src/config/reload.ts';
import type { PartnerService } from '../../../src/connections/partner/partner-service.ts';
import { allRoutes, type RouteServices } from '../../../src/http/routing/all-routes.ts';
import type { Route } from '../../../src/http/routing/route.ts';
import type { ProviderHttp } from '../../../src/inference/providers/client/provider-http.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { Metrics } from '../../../src/observability/metrics.ts';
import { openAccess } from '../../../src/server/access/open-access.ts';
import { openSecrets } from '../../../src/server/access/open-secrets.ts';
import type { Database } from '../../../src/server/database/open-database.ts';
import { openPartner } from '../../../src/server/open-partner.ts';
import { callHandler } from '../../support/call-handler.ts';
import { openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { keepingLogger } from '../../support/test-app.ts';
import { type Need, rows } from './matrix-rows.ts';

// As `callers-by-route.test.ts` for tables: users, keys, secrets and partner accounts ask by themselves who calls, also where no
// route stands before them.

const needs = ['user read', 'user write', 'user admin', 'global admin', 'inference write'] as const;
const guarded = /^\w+ \/(?:auth\/v1\/|db\/v1\/secrets|db\/v1\/connections\/.*partner)/;
const cases = needs.flatMap((need) =>
  rows[need].filter((name) => guarded.test(name)).map((name): [string, Need] => [name, need]),
);

const bodies: Readonly<Record<string, object>> = {
  'POST /auth/v1/users/:user': { password: 'correct horse battery' },
  'PUT /auth/v1/users/:user/password': { new_password: 'correct horse battery' },
  'POST /auth/v1/users/:user/api-keys': { name: 'k' },
  'POST /auth/v1/users/:user/permissions': { resource: 'books', resource_type: 'table', type: 'read' },
  'POST /auth/v1/subjects/:subject/permissions': { resource: 'books', resource_type: 'table', type: 'read' },
  'POST /auth/v1/users/:user/roles': { role: 'role:readers' },
  'POST /auth/v1/subjects/:subject/roles': { role: 'role:readers' },
  'PUT /auth/v1/users/:user/row-filters/:table': { match_all: {} },
  'PUT /auth/v1/subjects/:subject/row-filters/:table': { match_all: {} },
  'PUT /db/v1/secrets/:key': { value: 'canary' },
  'POST /db/v1/connections/partner/authorize': { connection_id: 'mine' },
};

const levels: readonly AccessLevel[] = ['read', 'write', 'admin'];

/** Holders of all that comes close to what is needed, and does not reach it. */
function tooSmall(need: Need): Principal[] {
  const [kind = '', level = ''] = need.split(' ');
  const lower = levels.slice(0, levels.indexOf(level as AccessLevel));
  const all = { resource: '*' };
  const everythingElse: Grant[] = [
    { ...all, resourceType: 'table', level: 'admin' },
    ...(kind === 'inference' ? [] : [{ ...all, resourceType: 'inference', level: 'admin' } as const]),
    ...(kind === 'user' ? [] : [{ ...all, resourceType: 'user', level: 'admin' } as const]),
  ];
  const resourceType = kind === 'global' ? '*' : (kind as 'user' | 'inference');
  return [
    { kind: 'granted', name: 'somebody', madeMs: 1, grants: everythingElse },
    ...lower.map(
      (each): Principal => ({
        kind: 'granted',
        name: 'somebody',
        madeMs: 1,
        grants: [{ ...all, resourceType, level: each }],
      }),
    ),
  ];
}

describe('users, keys, secrets and accounts are guarded by their services', () => {
  const directory = new TemporaryDirectory();
  let database: Database;
  let partner: PartnerService;
  let served: ReadonlyMap<string, Route>;

  beforeAll(async () => {
    database = await openTestDatabase(directory.path);
    const flags = new Map([
      ['--data-dir', join(directory.path, 'data')],
      ['--auth', 'true'],
    ]);
    const load = () => loadConfig({ flags, environment: {}, file: undefined, readFile: () => '' });
    const config = new RunningConfig(load(), load);
    const deps = { config, clock: systemClock, logger: keepingLogger() };
    const secrets = openSecrets(deps);
    partner = openPartner({ ...deps, secrets, http: {} as ProviderHttp });
    const checked = { ...deps, config: config.config, metrics: new Metrics(), checkFilter: () => Promise.resolve() };
    const access = openAccess(database.access, checked);
    await access?.makeFirstKey();
    const services = { ...database.services, secrets: new SecretService(secrets), partner, access, inference: {} };
    served = new Map(
      allRoutes(services as unknown as RouteServices, '1').map((each) => [`${each.method} ${each.path}`, each]),
    );
  });

  afterAll(async () => {
    await partner.stop();
    await database.close();
    directory[Symbol.dispose]();
  });

  function codeFor(name: string, principal: Principal, rowFilter?: Readonly<Record<string, object>>) {
    const route = served.get(name);
    if (route === undefined) throw new Error(`no route ${name}`);
    const values = { user: 'admin', subject: 'role:readers', table: 'books', key: 'x', attempt: 'x', connection: 'x' };
    const params = Object.fromEntries(Object.entries(values).filter(([each]) => route.path.includes(`/:${each}`)));
    const query = { role: 'role:readers', resource: 'books', resourceType: 'table' };
    return callHandler(route, { caller: testCaller({ principal, rowFilter }), params, query, body: bodies[name] });
  }

  test('these are all of their routes', () => {
    const listed = [...served.keys()].filter((name) => guarded.test(name)).sort();
    const known = ['GET /auth/v1/me', 'GET /auth/v1/users'];
    expect([...cases.map(([name]) => name), ...known].sort()).toEqual(listed);
  });

  test.each(cases)('%s, which needs %s', async (name, need) => {
    for (const principal of tooSmall(need)) expect(await codeFor(name, principal)).toBe('forbidden');
    const everything: Principal = {
      kind: 'granted',
      name: 'root',
      madeMs: 1,
      grants: [{ resourceType: '*', resource: '*', level: 'admin' }],
    };
    if (need !== 'inference write') expect(await codeFor(name, everything, { books: {} })).toBe('forbidden');
    expect(await codeFor(name, everything)).not.toBe('forbidden');
  });

  test('a key sees itself as the caller, and nothing of its user', async () => {
    const key: Principal = { kind: 'granted', name: 'admin', madeMs: 1, grants: [], byKey: true };
    expect(await codeFor('GET /auth/v1/me', key)).toBeUndefined();
    expect(await codeFor('GET /auth/v1/users/:user', key)).toBe('forbidden');
    expect(await codeFor('GET /auth/v1/users/:user', { ...key, byKey: false })).toBeUndefined();
    expect(await codeFor('PUT /auth/v1/users/:user/row-filters/:table', { ...key, byKey: false })).toBe('forbidden');
  });
});
