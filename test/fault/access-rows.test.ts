import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AccessState } from '../../src/access/access-state.ts';
import { CatalogAuthenticator } from '../../src/access/authentication/authenticator.ts';
import { digestOf, newKeySecret } from '../../src/access/authentication/key-secret.ts';
import { Passwords } from '../../src/access/authentication/passwords.ts';
import { defineRoute } from '../../src/http/routing/route.ts';
import { must } from '../../src/lib/assert.ts';
import { adminPassword, basic, startGuardedServer, table } from '../support/access.ts';
import { BackupPlace } from '../support/backup-place.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { freePort } from '../support/free-port.ts';
import { testApp } from '../support/test-app.ts';

// Rows of the fault matrix about credentials of users: what wrong ones tell, what they cost, and where right ones are kept.

/** Counts what is hashed; no password is right. */
class CountingPasswords extends Passwords {
  checks = 0;
  override verify(): Promise<boolean> {
    this.checks += 1;
    return Promise.resolve(false);
  }
}

function opened() {
  const clock = new FakeClock();
  const passwords = new CountingPasswords();
  const { keyId, secret } = newKeySecret();
  const key = { keyId, name: 'k', userName: 'ann', secretSha256: digestOf(secret), permissions: null };
  const state = AccessState.of({
    users: [{ name: 'ann', passwordHash: 'some hash', metadata: '{}', createdMs: 0 }],
    grants: [],
    memberships: [],
    apiKeys: [{ ...key, rowFilter: null, createdMs: 0, expiresMs: null }],
    rowFilters: [],
  });
  const authenticator = new CatalogAuthenticator({ state, clock, passwords });
  return { authenticator, passwords, keyId, secret };
}

const bearer = (keyId: string, secret: string) => `Bearer ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`;

describe('A02: the time of a refusal', () => {
  const probes = 10_000;
  /** A share above this one tells two headers apart. */
  const toldApart = 0.6;

  /**
   * How often the first header took longer than the second one, of pairs in an
   * order that alternates: 0.5 where neither is told apart.
   */
  function slowerShare(first: string, second: string, authenticator: CatalogAuthenticator): number {
    let client = 0;
    // Each from an address of its own, so that the throttle stays out of it.
    const time = (authorization: string): number => {
      const headers = new Headers({ authorization });
      const started = Bun.nanoseconds();
      expect(() =>
        authenticator.identify(headers, {
          clientAddress: () => `10.${client >> 16}.${(client++ >> 8) & 255}.${client & 255}`,
        }),
      ).toThrow();
      return Bun.nanoseconds() - started;
    };
    let slower = 0;
    for (let at = -2_000; at < probes; at += 1) {
      const isTurned = at % 2 === 0;
      const early = time(isTurned ? first : second);
      const late = time(isTurned ? second : first);
      const [one, other] = isTurned ? [early, late] : [late, early];
      if (at >= 0) slower += one > other ? 1 : one === other ? 0.5 : 0;
    }
    return slower / probes;
  }

  test('does not tell how much of a secret was right', () => {
    const { authenticator, keyId, secret } = opened();
    const last = secret.endsWith('A') ? 'B' : 'A';
    const almost = bearer(keyId, secret.slice(0, -1) + last);
    const wrong = bearer(keyId, newKeySecret().secret);
    const share = slowerShare(almost, wrong, authenticator);
    expect(share).toBeGreaterThan(1 - toldApart);
    expect(share).toBeLessThan(toldApart);
  });

  test('is seen by this measure where the work differs', () => {
    const { authenticator, keyId } = opened();
    const share = slowerShare(bearer(keyId, newKeySecret().secret), 'Bearer !', authenticator);
    expect(share).toBeGreaterThan(toldApart);
  });
});

describe('A04: a flood of wrong credentials', () => {
  const route = defineRoute({
    method: 'GET',
    path: '/',
    access: 'authenticated',
    tag: 'test',
    summary: 'test',
    responses: { 200: { description: 'fine' } },
    handler: () => ({}),
  });

  test('is refused with a time to wait, by less than a tenth of a processor for a thousand a second', async () => {
    const { authenticator, keyId } = opened();
    const app = testApp({ routes: [route], authenticator, clientOf: () => '10.0.0.1' });
    const ask = (authorization: string) => app.handle(new Request('http://localhost/', { headers: { authorization } }));
    const statuses: number[] = [];
    let retryAfter: string | null = null;
    let beforeUs = process.cpuUsage();
    const warmUp = 2_000;
    const asked = 10_000;
    for (let at = -warmUp; at < asked; at += 1) {
      if (at === 0) beforeUs = process.cpuUsage();
      const response = await ask(bearer(keyId, `wrong ${at}`));
      if (statuses.length < 21) statuses.push(response.status);
      retryAfter = response.headers.get('retry-after');
    }
    const { user, system } = process.cpuUsage(beforeUs);
    expect(statuses).toEqual([...Array<number>(20).fill(401), 429]);
    expect(Number(retryAfter)).toBeGreaterThanOrEqual(1);
    expect((user + system) / asked).toBeLessThan(100);
  });

  test('of passwords is hashed twenty times, and no more', async () => {
    const { authenticator, passwords } = opened();
    const app = testApp({ routes: [route], authenticator, clientOf: () => '10.0.0.1' });
    const statuses = new Map<number, number>();
    for (let at = 0; at < 1_000; at += 1) {
      const authorization = `Basic ${Buffer.from(`ann:wrong ${at}`).toString('base64')}`;
      const { status } = await app.handle(new Request('http://localhost/', { headers: { authorization } }));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect(Object.fromEntries(statuses)).toEqual({ 401: 20, 429: 980 });
    expect(passwords.checks).toBe(20);
  });
});

describe('A05: passwords and keys of users', () => {
  test('are in no answer but the one that makes a key, no log, no metric, no backup and no file', async () => {
    using place = new BackupPlace();
    const metricsPort = String(await freePort());
    const file = `${place.file}\naudit: {reads: true}\n`;
    await using guarded = await startGuardedServer({ file, set: { '--metrics-port': metricsPort } });
    const { server } = guarded;
    const [password, wrong] = ['canary-31c9 of ann', 'canary-31c9 of nobody'];
    const told: string[] = [];
    const ask = async (credential: string | undefined, method: string, path: string, body?: unknown) => {
      const { status, body: answer, headers } = await guarded.as<unknown>(credential, method, path, body);
      told.push(JSON.stringify([...headers]), JSON.stringify(answer));
      return status;
    };
    const admin = basic('admin', adminPassword);
    const user = { password, initial_policies: [table('books', 'admin')] };
    expect(await ask(admin, 'POST', '/auth/v1/users/ann', user)).toBe(201);
    expect(await ask(admin, 'POST', '/auth/v1/users/ann', user)).toBe(409);
    const { credential } = await guarded.key('ann');
    const secret = must(
      Buffer.from(credential.slice('Bearer '.length), 'base64').toString().split(':')[1],
      'a secret in a key',
    );
    expect(await ask(admin, 'POST', '/db/v1/tables/books', {})).toBe(200);
    for (const each of [basic('ann', password), credential, basic('ann', wrong), `${credential.slice(0, -6)}AAAAAA`]) {
      for (const path of ['/auth/v1/me', '/db/v1/status', '/db/v1/tables/books', '/db/v1/none'])
        await ask(each, 'GET', path);
      await ask(each, 'PUT', '/auth/v1/users/ann/password', { password });
      await ask(each, 'POST', '/db/v1/tables/books/query', '{"limit":');
    }
    for (const path of ['users', 'users/ann', 'users/ann/api-keys', 'subjects'])
      await ask(admin, 'GET', `/auth/v1/${path}`);
    for (const path of ['/openapi.json', '/docs', '/readyz']) await ask(undefined, 'GET', path);
    for (const format of ['portable', 'native']) {
      const backup = { backup_id: format, location: place.location, format };
      expect(await ask(admin, 'POST', '/db/v1/backup', backup)).toBe(200);
    }
    told.push(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(), ...server.logLines);
    told.push(...[server.directory, place.path].flatMap(textsIn));
    const inHeaders = [basic('ann', password), basic('ann', wrong), credential].map((each) =>
      must(each.split(' ')[1], ''),
    );
    expect(
      [password, wrong, secret, ...inHeaders].filter((value) => told.some((text) => text.includes(value))),
    ).toEqual([]);
    expect(told.some((text) => text.includes('"user":"ann"'))).toBe(true);
  });
});

/** The contents of all files in a folder, unpacked where they are archives. */
function textsIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  return files.map(({ parentPath, name }) => {
    const bytes = readFileSync(join(parentPath, name));
    const isPacked = name.endsWith('.zst') && bytes.byteLength > 0;
    return (isPacked ? Bun.zstdDecompressSync(bytes) : bytes).toString('latin1');
  });
}
