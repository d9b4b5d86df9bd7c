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
  test('is hashed once a minute, whatever changes of access there are', async () => {
    const { clock, passwords, state, authenticator, identify } = opened();
    await identify(ann);
    expect(identify(ann)).not.toBeInstanceOf(Promise);
    state.apply({ remove: { grants: [{ subject: 'ann', resourceType: 'table', resource: 'books', level: 'read' }] } });
    authenticator.forget();
    expect(await identify(ann)).toMatchObject({ principal: { name: 'ann', grants: [] } });
    expect(passwords.checks).toBe(1);
    await clock.advance(60_000);
    await identify(ann);
    expect(passwords.checks).toBe(2);
  });

  test('is hashed again when its user has another one', async () => {
    const { passwords, state, authenticator, identify } = opened();
    await identify(ann);
    const other = { name: 'ann', passwordHash: 'another hash', metadata: '{}', createdMs: 0 };
    state.apply({ put: { users: [other] } });
    authenticator.forget();
    await identify(ann);
    expect(passwords.checks).toBe(2);
  });

  test('that is being checked while its user gets another one is checked again, and while its user is removed is refused', async () => {
    const { passwords, state, authenticator, identify } = opened();
    const begin = async (count: number) => {
      const pending = identify(ann) as Promise<Session>;
      pending.catch(() => undefined);
      while (passwords.checks < count) await Promise.resolve();
      return { pending };
    };
    const first = await begin(1);
    const other = { name: 'ann', passwordHash: 'another hash', metadata: '{}', createdMs: 0 };
    state.apply({ put: { users: [other] } });
    authenticator.forget();
    await first.pending;
    expect(passwords.checks).toBe(2);
    state.apply({ put: { users: [{ ...other, passwordHash: 'a third' }] } });
    authenticator.forget();
    const second = await begin(3);
    state.apply({ remove: { users: ['ann'] } });
    await expect(second.pending).rejects.toMatchObject({ code: 'unauthorized' });
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

describe('passwords that are sent in parallel', () => {
  function latched() {
    const all = opened();
    const first = Promise.withResolvers<void>();
    const { passwords } = all;
    const verify = passwords.verify.bind(passwords);
    passwords.verify = async (password, hash) => {
      const isRight = verify(password, hash);
      if (passwords.checks === 1) await first.promise;
      return isRight;
    };
    return { ...all, release: first.resolve };
  }
  const from = (address: string) => ({ clientAddress: () => address });
  const codeOf = (error: unknown) => (error as { code: string }).code;

  test('are hashed one at a time, and no more of them than one client may guess', async () => {
    const { passwords, authenticator, release } = latched();
    const guess = (at: number) => new Headers({ authorization: `Basic ${btoa(`ann:guess ${at}`)}` });
    const guesses = Array.from({ length: 100 }, (_, at) =>
      Promise.resolve(authenticator.identify(guess(at), from('10.0.0.1'))).then(() => 'in', codeOf),
    );
    await authenticator.identify(new Headers({ authorization: ann }), from('10.0.0.2'));
    expect(passwords.checks).toBe(2);
    release();
    const codes = await Promise.all(guesses);
    expect(passwords.checks).toBeLessThan(25);
    expect(new Set(codes)).toEqual(new Set(['unauthorized', 'too_many_attempts']));
  });

  test('are hashed once where they are one and the same', async () => {
    const { passwords, identify, release } = latched();
    const all = Array.from({ length: 50 }, () => identify(ann));
    release();
    await Promise.all(all);
    expect(passwords.checks).toBe(1);
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
