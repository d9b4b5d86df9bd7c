import type { Clock } from '../../lib/clock.ts';
import { KeyedMutex } from '../../lib/concurrency/keyed-mutex.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { AccessState, Session } from '../access-state.ts';
import type { Caller } from '../principal.ts';
import { type Credential, readCredential } from './credentials.ts';
import { FailureThrottle, groupOf } from './failure-throttle.ts';
import { isSecret } from './key-secret.ts';
import type { Passwords } from './passwords.ts';
import { ProvenPasswords } from './proven-passwords.ts';
import { VerifiedCredentials } from './verified-credentials.ts';

/** Why a credential was refused; a label of the metric. */
type Refusal = 'missing' | 'malformed' | 'wrong' | 'expired' | 'throttled';

/** Where a request came from; asked only where a credential was not right. */
export interface Origin {
  clientAddress(): string | undefined;
}

/** Says by whom a request is made. */
export interface Authenticator {
  /**
   * By the header `Authorization` alone: credentials in query strings are never read. Throws, or fails with,
   * `unauthorized` and `too_many_attempts`. It answers at once but where a password has to be hashed.
   */
  identify(headers: Headers, origin: Origin): Session | Promise<Session>;
  /** The session that a caller who was identified before has now; undefined where it may not come in any more. */
  sessionNow(caller: Pick<Caller, 'principal' | 'keyId'>): Session | undefined;
}

interface Deps {
  readonly state: AccessState;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly onRefused?: (reason: Refusal, client: string | undefined) => void;
}

/**
 * Checks credentials against the users and keys of the catalog. The session of a credential that was right is
 * remembered under the SHA-256 of the header until `forget`: at every change of access.
 */
export class CatalogAuthenticator implements Authenticator {
  readonly #deps: Deps;
  readonly #throttle: FailureThrottle;
  readonly #verified: VerifiedCredentials;
  readonly #proven: ProvenPasswords;
  readonly #turns = new KeyedMutex();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#throttle = new FailureThrottle(deps.clock);
    this.#verified = new VerifiedCredentials(deps.clock);
    this.#proven = new ProvenPasswords(deps.clock);
  }

  identify(headers: Headers, origin: Origin): Session | Promise<Session> {
    const header = headers.get('authorization');
    if (header === null)
      throw this.#refused(
        'missing',
        origin.clientAddress(),
        'this needs a credential: send "Authorization: Bearer KEY"',
      );
    const known = this.#verified.find(header);
    if (known !== undefined) return known;
    const credential = readCredential(header);
    if (credential === undefined) throw this.#failed('malformed', origin.clientAddress());
    return credential.kind === 'key'
      ? this.#identifyKey(credential, header, origin)
      : this.#identifyUser(credential, header, origin.clientAddress());
  }

  sessionNow({ principal, keyId }: Pick<Caller, 'principal' | 'keyId'>): Session | undefined {
    if (principal.kind === 'everyone') return undefined;
    const { state, clock } = this.#deps;
    const user = state.user(principal.name);
    if (user?.createdMs !== principal.madeMs) return undefined;
    if (keyId === undefined) return state.heldBy(user).withPassword;
    const key = state.key(keyId);
    const isOver = key?.expiresMs !== undefined && clock.nowMs() >= key.expiresMs;
    return key === undefined || isOver ? undefined : state.heldByKey(key)?.withKey;
  }

  /** After every change of users, grants, keys or row filters. */
  forget(): void {
    this.#verified.clear();
  }

  #identifyKey({ keyId, secret }: Extract<Credential, { kind: 'key' }>, header: string, origin: Origin): Session {
    const { state, clock } = this.#deps;
    const key = state.key(keyId);
    // An unknown id costs what a wrong secret costs.
    const isRight = isSecret(secret, key?.secretSha256 ?? noDigest);
    const held = key === undefined || !isRight ? undefined : state.heldByKey(key);
    if (key === undefined || held === undefined) throw this.#failed('wrong', origin.clientAddress());
    if (key.expiresMs !== undefined && clock.nowMs() >= key.expiresMs) {
      throw this.#refused('expired', origin.clientAddress(), 'the key has expired');
    }
    const expiresMs = key.expiresMs ?? Number.POSITIVE_INFINITY;
    this.#verified.add(header, { session: held.withKey, expiresMs, untilMs: Number.POSITIVE_INFINITY });
    return held.withKey;
  }

  /**
   * One password of a client is hashed at a time: those that guess in parallel wait for each other, and not everybody else for
   * them; and a client that has guessed too often is refused before the next one is hashed.
   */
  #identifyUser(
    credential: Extract<Credential, { kind: 'password' }>,
    header: string,
    client: string | undefined,
  ): Promise<Session> {
    return this.#turns.run(groupOf(client ?? ''), async () => {
      return this.#verified.find(header) ?? (await this.#verify(credential, header, client));
    });
  }

  async #verify(
    { user: name, password }: Extract<Credential, { kind: 'password' }>,
    header: string,
    client: string | undefined,
  ): Promise<Session> {
    const { state } = this.#deps;
    for (;;) {
      const passwordHash = state.user(name)?.passwordHash ?? null;
      const proven = passwordHash === null ? undefined : this.#proven.untilMs(header, passwordHash);
      const untilMs = proven ?? (await this.#hashed(password, passwordHash, { header, client }));
      const user = state.user(name);
      if (user === undefined) throw this.#failed('wrong', client);
      // The user may have another password by now.
      if (user.passwordHash !== passwordHash) continue;
      const session = state.heldBy(user).withPassword;
      this.#verified.add(header, { session, expiresMs: Number.POSITIVE_INFINITY, untilMs });
      return session;
    }
  }

  /** Compares a password with the stored hash. Returns until when it need not be compared again; fails where it is wrong. */
  async #hashed(
    password: string,
    passwordHash: string | null,
    { header, client }: { header: string; client: string | undefined },
  ): Promise<number> {
    const { passwords, onRefused } = this.#deps;
    try {
      this.#throttle.check(client ?? '');
    } catch (error) {
      onRefused?.('throttled', client);
      throw error;
    }
    const isRight = await passwords.verify(password, passwordHash);
    if (!isRight || passwordHash === null) throw this.#failed('wrong', client);
    return this.#proven.add(header, passwordHash);
  }

  #failed(reason: Refusal, client: string | undefined): ServiceError {
    try {
      this.#throttle.failed(client ?? '');
    } catch (error) {
      this.#deps.onRefused?.('throttled', client);
      return error as ServiceError;
    }
    return this.#refused(reason, client, 'the credential is not valid');
  }

  #refused(reason: Refusal, client: string | undefined, message: string): ServiceError {
    this.#deps.onRefused?.(reason, client);
    return new ServiceError('unauthorized', message);
  }
}

const noDigest = new Uint8Array(32);
