import { describe, expect, test } from 'bun:test';
import { AccessState, type Session } from '../../../src/access/access-state.ts';
import { CatalogAuthenticator } from '../../../src/access/authentication/authenticator.ts';
import { digestOf, newKeySecret } from '../../../src/access/authentication/key-secret.ts';
import { Passwords } from '../../../src/access/authentication/passwords.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Counts what is hashed; every password that ends in "right" is right. */
class CountingPasswords extends Passwords {
  checks = 0;
  override verify(password: string, hash: string | null): Promise<boolean> {
    this.checks += 1;
    return Promise.resolve(hash !== null && password.endsWith('right'));
  }
}

function opened() {
  const clock = new FakeClock();
  const passwords = new CountingPasswords();
  const state = AccessState.of({
    users: [{ name: 'ann', passwordHash: 'some hash', metadata: '{}', createdMs: 0 }],
    grants: [{ subject: 'ann', resourceType: 'table', resource: 'books', level: 'read' }],
    memberships: [],
    apiKeys: [],
    rowFilters: [],
  });
  const authenticator = new CatalogAuthenticator({ state, clock, passwords });
  const identify = (authorization: string): Session | Promise<Session> =>
    authenticator.identify(new Headers({ authorization }), { clientAddress: () => '10.0.0.1' });
  return { clock, passwords, state, authenticator, identify };
}

const ann = `Basic ${Buffer.from('ann:right').toString('base64')}`;

describe('a password', () => {
  test('is hashed once a minute, and again after every change of access', async () => {
    const { clock, passwords, authenticator, identify } = opened();
    await identify(ann);
    expect(identify(ann)).not.toBeInstanceOf(Promise);
    expect(passwords.checks).toBe(1);
    authenticator.forget();
    await identify(ann);
    await clock.advance(60_000);
    await identify(ann);
    expect(passwords.checks).toBe(3);
  });

  test('that is being checked while access changes is checked again', async () => {
    const { passwords, state, authenticator, identify } = opened();
    const pending = identify(ann) as Promise<Session>;
    state.apply({ remove: { users: ['ann'] } });
    authenticator.forget();
    await expect(pending).rejects.toMatchObject({ code: 'unauthorized' });
    expect(passwords.checks).toBe(2);
  });

  test('is not hashed for a client over its bound', async () => {
    const { passwords, identify } = opened();
    const wrong = `Basic ${Buffer.from('ann:wrong').toString('base64')}`;
    const codes = new Set<string>();
    for (let i = 0; i < 100; i += 1) {
      try {
        await identify(wrong);
      } catch (error) {
        codes.add((error as { code: string }).code);
      }
    }
    expect(codes).toEqual(new Set(['unauthorized', 'too_many_attempts']));
    expect(passwords.checks).toBeLessThan(25);
  });
});

describe('a key', () => {
  test('has 256 random bits, and what is kept of it is a digest', () => {
    const made = Array.from({ length: 100 }, () => newKeySecret());
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(100);
    for (const { keyId, secret, encoded } of made) {
      expect([keyId, Buffer.from(secret, 'base64url').length]).toEqual([
        expect.stringMatching(/^[A-Za-z0-9]{20}$/),
        32,
      ]);
      expect(Buffer.from(encoded, 'base64').toString()).toBe(`${keyId}:${secret}`);
      expect(digestOf(secret)).toHaveLength(32);
    }
  });
});

describe('real hashes', () => {
  test('are right for their password alone, and never for a user without one', async () => {
    const passwords = new Passwords();
    const hash = await passwords.hash('a password');
    expect(hash).toStartWith('$argon2id$');
    expect(await passwords.verify('a password', hash)).toBe(true);
    expect(await passwords.verify('another one', hash)).toBe(false);
    expect(await passwords.verify('a password', null)).toBe(false);
  });
});
