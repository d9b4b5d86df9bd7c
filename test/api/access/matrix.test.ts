import { describe, expect, test } from 'bun:test';
import { AccessState } from '../../../src/access/access-state.ts';
import { CatalogAuthenticator } from '../../../src/access/authentication/authenticator.ts';
import { digestOf, newKeySecret } from '../../../src/access/authentication/key-secret.ts';
import { Passwords } from '../../../src/access/authentication/passwords.ts';
import { allRoutes, type RouteServices } from '../../../src/http/routing/all-routes.ts';
import { unimplementedParts } from '../../../src/http/routing/unimplemented-routes.ts';
import type { AccessRows } from '../../../src/storage/catalog/access-records.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { testApp } from '../../support/test-app.ts';
import { type Need, rows } from './matrix-rows.ts';

// Every route beside every kind of credential. A new route without a row fails; so does one that asks for something else.

const clock = new FakeClock();
const known = ['reader', 'writer', 'admin', 'other', 'inference', 'model'] as const;
const unknown = ['none', 'wrong', 'expired', 'revoked'] as const;
type Holder = (typeof known)[number];
type Credential = Holder | (typeof unknown)[number];

const grants: Readonly<Record<Holder, AccessRows['grants']>> = {
  reader: [{ subject: 'reader', resourceType: 'table', resource: 'books', level: 'read' }],
  writer: [{ subject: 'writer', resourceType: 'table', resource: 'books', level: 'write' }],
  admin: [{ subject: 'admin', resourceType: '*', resource: '*', level: 'admin' }],
  other: [{ subject: 'other', resourceType: 'table', resource: 'plates', level: 'admin' }],
  inference: [{ subject: 'inference', resourceType: 'inference', resource: '*', level: 'read' }],
  model: [{ subject: 'model', resourceType: 'inference', resource: 'one', level: 'read' }],
};

/** A key of each user, and two of the administrator that are no longer good. */
function accessRows() {
  const headers: Partial<Record<Credential, string>> = { wrong: `Bearer ${newKeySecret().encoded}` };
  const key = (credential: Credential, userName: string, expiresMs: number | null) => {
    const { keyId, secret, encoded } = newKeySecret();
    headers[credential] = `Bearer ${encoded}`;
    return {
      keyId,
      name: credential,
      userName,
      secretSha256: digestOf(secret),
      permissions: null,
      rowFilter: null,
      createdMs: 0,
      expiresMs,
    };
  };
  const access: AccessRows = {
    users: known.map((name) => ({ name, passwordHash: null, metadata: '{}', createdMs: 0 })),
    grants: Object.values(grants).flat(),
    memberships: [],
    apiKeys: [...known.map((name) => key(name, name, null)), key('expired', 'admin', clock.nowMs())],
    rowFilters: [],
  };
  const revoked = key('revoked', 'admin', null);
  return { access, headers, revoked };
}

/** Whether the guard lets a known caller through: `yes`, or what it answers. */
const expectations: Readonly<Record<Need, Readonly<Record<Holder, 'yes' | 403 | 404>>>> = {
  open: { reader: 'yes', writer: 'yes', admin: 'yes', other: 'yes', inference: 'yes', model: 'yes' },
  'anybody who is known': { reader: 'yes', writer: 'yes', admin: 'yes', other: 'yes', inference: 'yes', model: 'yes' },
  'table read': { reader: 'yes', writer: 403, admin: 'yes', other: 404, inference: 404, model: 404 },
  'table write': { reader: 403, writer: 'yes', admin: 'yes', other: 404, inference: 404, model: 404 },
  'table admin': { reader: 403, writer: 403, admin: 'yes', other: 404, inference: 404, model: 404 },
  'table admin, which need not exist': {
    reader: 403,
    writer: 403,
    admin: 'yes',
    other: 403,
    inference: 403,
    model: 403,
  },
  // An admin grant of any kind also suffices.
  'inference read': { reader: 403, writer: 403, admin: 'yes', other: 'yes', inference: 'yes', model: 'yes' },
  'inference read of all models': {
    reader: 403,
    writer: 403,
    admin: 'yes',
    other: 'yes',
    inference: 'yes',
    model: 403,
  },
  'inference write': { reader: 403, writer: 403, admin: 'yes', other: 403, inference: 403, model: 403 },
  'user read': { reader: 403, writer: 403, admin: 'yes', other: 403, inference: 403, model: 403 },
  'user write': { reader: 403, writer: 403, admin: 'yes', other: 403, inference: 403, model: 403 },
  'user admin': { reader: 403, writer: 403, admin: 'yes', other: 403, inference: 403, model: 403 },
  'global admin': { reader: 403, writer: 403, admin: 'yes', other: 403, inference: 403, model: 403 },
};

const unbuilt = unimplementedParts.flatMap(({ routes }) => routes);

/** With the routes that have an alias or no code yet. */
function needs(): Map<string, Need> {
  const listed = Object.entries(rows).flatMap(([need, routes]) =>
    routes.map((route): [string, Need] => [route, need as Need]),
  );
  const aliases = listed
    .filter(([route]) => route.includes(' /ai/v1/'))
    .map(([route, need]): [string, Need] => [route.replace(' /ai/v1/', ' /v1/'), need]);
  return new Map([...listed, ...aliases, ...unbuilt.map((route): [string, Need] => [route, 'anybody who is known'])]);
}

const { access, headers, revoked } = accessRows();
const state = AccessState.of(access);
state.apply({ put: { apiKeys: [revoked] } });
state.apply({ remove: { apiKeys: [revoked.keyId] } });
const authenticator = new CatalogAuthenticator({ state, clock, passwords: new Passwords() });
// No service stands behind the routes: whatever passes the guard fails behind it, as 400, 500 or 501.
const routes = allRoutes({ inference: {} } as RouteServices, '1');
let client = 0;
const app = testApp({ routes, authenticator, clientOf: () => `10.0.${Math.floor(client / 250)}.${client++ % 250}` });

async function ask(route: string, credential: Credential): Promise<'yes' | number> {
  const [method = '', pattern = ''] = route.split(' ');
  const path = pattern.replace(':table', 'books').replaceAll(/:[a-z]+/g, 'x');
  const authorization = headers[credential];
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...(authorization === undefined ? {} : { authorization }) },
    ...(method === 'POST' || method === 'PUT' ? { body: '{' } : {}),
  });
  const response = await app.handle(request);
  const text = await response.text();
  const isHidden = response.status === 404 && text.includes('table_not_found');
  return response.status === 401 || response.status === 403 || isHidden ? response.status : 'yes';
}

describe('every route beside every credential', () => {
  const rowsOf = needs();

  test('has a row', () => {
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...rowsOf.keys()].sort());
  });

  test.each([...known, ...unknown])('%s', async (credential) => {
    const answers: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const [route, need] of rowsOf) {
      const isKnown = known.find((holder) => holder === credential);
      expected[route] = isKnown === undefined ? (need === 'open' ? 'yes' : 401) : expectations[need][isKnown];
      answers[route] = await ask(route, credential);
    }
    expect(answers).toEqual(expected);
  });
});
