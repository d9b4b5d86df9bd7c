import { afterEach, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { PartnerAttempts } from '../../../src/connections/partner/partner-attempts.ts';
import type { PartnerConnections } from '../../../src/connections/partner/partner-connections.ts';
import type { PartnerOAuth } from '../../../src/connections/partner/partner-oauth.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { freePort } from '../../support/free-port.ts';

let attempts: PartnerAttempts;

function open(oauth: object = {}): PartnerAttempts {
  attempts = new PartnerAttempts({
    oauth: { authorizationUrl: () => 'https://partner.example/authorize', ...oauth } as unknown as PartnerOAuth,
    connections: {} as PartnerConnections,
    clock: new FakeClock(),
    randomBytes,
    callbackPort: () => 0,
    onFailed: () => undefined,
  });
  return attempts;
}

afterEach(() => attempts.stop());

test('one user leaves most of the pending logins to others', () => {
  const logins = open();
  for (let at = 0; at < 25; at += 1) logins.authorize('mine', 'ann 1');
  expect(() => logins.authorize('mine', 'ann 1')).toThrow('one user has at most 25 pending logins');
  for (const user of ['ben 1', 'cid 1', 'dan 1']) {
    for (let at = 0; at < 25; at += 1) expect(logins.find(logins.authorize('mine', user).id).status).toBe('pending');
  }
  expect(() => logins.authorize('mine', 'eve 1')).toThrow('100 logins are pending');
});

test('logins that have ended stand in the way of no other, however many there were', () => {
  const logins = open();
  const { id } = logins.authorize('other', 'ben 1');
  for (let at = 0; at < 1_100; at += 1) {
    logins.authorize('mine', 'ann 1');
    logins.cancel('mine');
  }
  expect(logins.find(id).status).toBe('pending');
  expect(logins.find(logins.authorize('mine', 'ben 1').id).status).toBe('pending');
});

test.each(['fails', 'is cancelled'])('the tokens of a login that %s after they came are taken back', async (how) => {
  const taken: unknown[] = [];
  const tokens = { accessToken: 'a', refreshToken: 'r', expiresMs: undefined };
  const logins = open({
    authorizationUrl: (redirectUri: string, { state }: { state: string }) => `${redirectUri}?code=c&state=${state}`,
    exchange: () => Promise.resolve(tokens),
    profile: () => {
      if (how === 'is cancelled') logins.cancel('mine');
      return Promise.reject(new Error('the profile cannot be read'));
    },
    revoke: (given: unknown) => Promise.resolve(taken.push(given)),
  });
  const { id, authorizationUrl } = logins.authorize('mine', 'ann 1');
  expect(await (await fetch(authorizationUrl)).text()).toContain('The login was not completed.');
  expect([logins.find(id).status, taken]).toEqual(['failed', [tokens]]);
});

test('a login at a partner that is not configured leaves no port open', async () => {
  const [clock, port] = [new FakeClock(), await freePort()];
  const refuse = () => {
    throw new Error('the partner is not configured');
  };
  attempts = new PartnerAttempts({
    oauth: { authorizationUrl: refuse } as unknown as PartnerOAuth,
    connections: {} as PartnerConnections,
    clock,
    randomBytes,
    callbackPort: () => port,
    onFailed: () => undefined,
  });
  expect(() => attempts.authorize('mine', 'ann 1')).toThrow('not configured');
  await clock.advance(10 * 60_000);
  await expect(fetch(`http://127.0.0.1:${port}/callback`)).rejects.toThrow();
});
