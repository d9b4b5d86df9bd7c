import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type Callback, CallbackListener } from './callback-listener.ts';
import type { PartnerConnections } from './partner-connections.ts';
import type { PartnerOAuth } from './partner-oauth.ts';
import { base64url, newAuthorizationSecrets } from './pkce.ts';

interface PartnerAttemptsDeps {
  readonly oauth: PartnerOAuth;
  readonly connections: PartnerConnections;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
  /** Port of the callback; 0 for a free one. */
  readonly callbackPort: () => number;
  readonly onFailed: (connectionId: string, error: unknown) => void;
}

/** A login that was begun. */
export interface StartedAttempt {
  readonly id: string;
  /** Where the browser of the user goes. */
  readonly authorizationUrl: string;
  /** When it ends, in seconds since 1970. */
  readonly expiresSeconds: number;
}

export interface AttemptState {
  readonly status: 'pending' | 'completed' | 'failed' | 'expired';
  readonly connectionId: string;
  /** Why it failed; empty otherwise. */
  readonly error: string;
}

interface Attempt {
  readonly connectionId: string;
  readonly user: string;
  readonly verifier: string;
  readonly redirectUri: string;
  readonly startedMs: number;
  /** Undefined once the callback has come: it is taken once. */
  state: string | undefined;
  status: 'pending' | 'completed' | 'failed';
  error: string;
  readonly stop: AbortController;
}

const attemptLifeMs = 10 * 60_000;
/** How long the end of an attempt is told. */
const attemptKeptMs = 60 * 60_000;
const pendingMax = 100;
/** Of those, the pending logins of one user. */
const userPendingMax = 25;
/** Attempts that are kept; those that ended longest ago are forgotten first. */
const attemptsMax = 1_000;
const idBytes = 16;
const errorCharsMax = 200;

/** Logins that users have begun at the partner, each until its callback has come or ten minutes have passed. */
export class PartnerAttempts {
  readonly #deps: PartnerAttemptsDeps;
  readonly #attempts = new Map<string, Attempt>();
  #listener: CallbackListener | undefined;
  #cancelSweep: () => void = () => undefined;

  constructor(deps: PartnerAttemptsDeps) {
    this.#deps = deps;
  }

  /**
   * Begins a login for a user, as `ownerOf` writes it. Throws `partner_not_configured`, and `unavailable` where the callback has
   * no port or too many wait.
   */
  authorize(connectionId: string, user: string): StartedAttempt {
    const { oauth, clock, randomBytes } = this.#deps;
    this.#makeRoom(user);
    const { redirectUri } = this.#listening();
    // Closes the port also where the partner turns out not to be configured.
    this.#sweepLater();
    const secrets = newAuthorizationSecrets(randomBytes);
    const authorizationUrl = oauth.authorizationUrl(redirectUri, secrets);
    const id = base64url(randomBytes(idBytes));
    this.#attempts.set(id, {
      connectionId,
      user,
      verifier: secrets.verifier,
      redirectUri,
      startedMs: clock.monotonicMs(),
      state: secrets.state,
      status: 'pending',
      error: '',
      stop: new AbortController(),
    });
    return { id, authorizationUrl, expiresSeconds: Math.floor((clock.nowMs() + attemptLifeMs) / 1_000) };
  }

  /** How a login stands. Throws `attempt_not_found`. */
  find(id: string): AttemptState {
    this.#forget();
    const attempt = this.#attempts.get(id);
    if (attempt === undefined) {
      throw new ServiceError('attempt_not_found', 'there is no such attempt, or it ended long ago; authorize again');
    }
    const { connectionId, status, error } = attempt;
    return { connectionId, error, status: this.#isExpired(attempt) ? 'expired' : status };
  }

  /** Ends what is pending for a connection: it must not come back after it was disconnected. */
  cancel(connectionId: string): void {
    for (const attempt of this.#pending()) {
      if (attempt.connectionId === connectionId) this.#fail(attempt, 'the connection was disconnected');
    }
  }

  async stop(): Promise<void> {
    for (const attempt of this.#pending()) this.#fail(attempt, 'the server stops');
    this.#cancelSweep();
    await this.#listener?.stop();
    this.#listener = undefined;
  }

  /** Takes what the browser brings. The sentence for its page; undefined for a state that is unknown or was taken. */
  async #take({ state, code, error }: Callback): Promise<string | undefined> {
    const attempt = state === '' ? undefined : this.#pending().find((each) => each.state === state);
    if (attempt === undefined) return undefined;
    attempt.state = undefined;
    if (code === undefined || error !== undefined) {
      this.#fail(attempt, sentenceOf(error));
      return 'The login was not completed. You may close this window.';
    }
    try {
      await this.#complete(attempt, code);
    } catch (thrown) {
      if (!attempt.stop.signal.aborted) this.#deps.onFailed(attempt.connectionId, thrown);
      const known = thrown instanceof ServiceError;
      this.#fail(attempt, known ? thrown.message : 'the account could not be connected; the log has the details');
    }
    return attempt.status === 'completed'
      ? 'The account is connected. You may close this window.'
      : 'The login was not completed. You may close this window.';
  }

  async #complete(attempt: Attempt, code: string): Promise<void> {
    const { oauth, connections } = this.#deps;
    const { signal } = attempt.stop;
    const tokens = await oauth.exchange(code, attempt.verifier, attempt.redirectUri, signal);
    try {
      const profile = await oauth.profile(tokens.accessToken, signal);
      signal.throwIfAborted();
      await connections.connect(attempt.connectionId, { ...profile, tokens });
    } catch (error) {
      // Nobody has them: they would be good at the partner for as long as it likes.
      await oauth.revoke(tokens, new AbortController().signal);
      throw error;
    }
    if (attempt.status === 'pending') attempt.status = 'completed';
  }

  #fail(attempt: Attempt, error: string): void {
    if (attempt.status !== 'pending') return;
    attempt.status = 'failed';
    attempt.error = error;
    attempt.stop.abort(new ServiceError('unavailable', error));
  }

  /** One whose callback has come in time is not. */
  #isExpired({ status, state, startedMs }: Attempt): boolean {
    return status === 'pending' && state !== undefined && this.#deps.clock.monotonicMs() - startedMs >= attemptLifeMs;
  }

  #pending(): Attempt[] {
    return [...this.#attempts.values()].filter((each) => each.status === 'pending' && !this.#isExpired(each));
  }

  #makeRoom(user: string): void {
    this.#forget();
    const pending = this.#pending();
    if (pending.length >= pendingMax) {
      throw new ServiceError('unavailable', `${pendingMax} logins are pending, which is the most; try again later`);
    }
    if (user !== '' && pending.filter((each) => each.user === user).length >= userPendingMax) {
      const message = `one user has at most ${userPendingMax} pending logins; end some of them, or try again later`;
      throw new ServiceError('unavailable', message);
    }
    for (const [id, attempt] of this.#attempts) {
      if (this.#attempts.size < attemptsMax) break;
      if (!pending.includes(attempt)) this.#attempts.delete(id);
    }
  }

  #forget(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [id, { startedMs }] of this.#attempts) if (nowMs - startedMs >= attemptKeptMs) this.#attempts.delete(id);
  }

  #listening(): CallbackListener {
    try {
      this.#listener ??= new CallbackListener(this.#deps.callbackPort(), (callback) => this.#take(callback));
      return this.#listener;
    } catch (cause) {
      throw new ServiceError('unavailable', 'the port of the callback cannot be opened; see "partner.callback_port"', {
        cause,
      });
    }
  }

  /** Closes the listener when nobody is waited for. */
  #sweepLater(): void {
    this.#cancelSweep();
    this.#cancelSweep = this.#deps.clock.after(attemptLifeMs, () => {
      for (const attempt of this.#attempts.values()) if (this.#isExpired(attempt)) attempt.stop.abort();
      void this.#listener?.stop();
      this.#listener = undefined;
    });
  }
}

/** The text of a partner in a query string: words of the protocol only. */
function sentenceOf(error: string | undefined): string {
  const words = (error ?? '').replaceAll(/[^A-Za-z0-9_ .-]/g, '').slice(0, errorCharsMax);
  return words === '' ? 'the partner brought no code' : `the partner refused the login: ${words}`;
}
