import { ProviderRefusal } from '../../inference/providers/client/provider-gate.ts';
import type { Clock } from '../../lib/clock.ts';
import { KeyedMutex } from '../../lib/concurrency/keyed-mutex.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { PartnerAccount, PartnerAccounts, PartnerTokens } from './partner-accounts.ts';
import type { PartnerOAuth } from './partner-oauth.ts';

interface PartnerConnectionsDeps {
  readonly oauth: PartnerOAuth;
  readonly accounts: PartnerAccounts;
  readonly clock: Clock;
}

export interface PartnerModel {
  readonly id: string;
  readonly ownedBy: string;
}

/** An access token and how the partner refused it. */
interface RefusedToken {
  readonly accessToken: string;
  readonly error: ProviderRefusal;
}

/** A token that is void so soon is renewed before it is used. */
const renewBeforeMs = 60_000;

/** The operations on a connected account. What changes one account runs one after the other. */
export class PartnerConnections {
  readonly #deps: PartnerConnectionsDeps;
  readonly #turns = new KeyedMutex();

  constructor(deps: PartnerConnectionsDeps) {
    this.#deps = deps;
  }

  /** The models of an account. Throws `connection_not_found`, `not_connected`, and what the partner answers. */
  async models(connectionId: string, signal: AbortSignal): Promise<PartnerModel[]> {
    const { oauth } = this.#deps;
    const accessToken = await this.#accessToken(connectionId, undefined);
    try {
      return await oauth.models(accessToken, signal);
    } catch (error) {
      // The partner may take a token back before its time.
      if (!isTokenRefused(error)) throw shownRefusal(error);
      const renewed = await this.#accessToken(connectionId, { accessToken, error });
      return await oauth.models(renewed, signal).catch((again: unknown) => {
        throw shownRefusal(again);
      });
    }
  }

  /** Keeps what a login has brought. */
  connect(connectionId: string, account: PartnerAccount): Promise<void> {
    return this.#turns.run(connectionId, () => Promise.resolve(this.#deps.accounts.save(connectionId, account)));
  }

  /**
   * Forgets an account, whatever the partner says; true when the partner has confirmed that its tokens are void. An account
   * that is not there is forgotten already.
   */
  disconnect(connectionId: string): Promise<boolean> {
    const { oauth, accounts } = this.#deps;
    return this.#turns.run(connectionId, async () => {
      const tokens = accounts.find(connectionId)?.tokens;
      accounts.remove(connectionId);
      return tokens !== undefined && (await oauth.revoke(tokens, toTheEnd()));
    });
  }

  /** A token that is good for a while; another one than that which was refused. */
  #accessToken(connectionId: string, refused: RefusedToken | undefined): Promise<string> {
    const { accounts, clock } = this.#deps;
    return this.#turns.run(connectionId, async () => {
      const account = accounts.find(connectionId);
      if (account === undefined) {
        throw new ServiceError('connection_not_found', `there is no partner account "${connectionId.slice(0, 64)}"`);
      }
      const { tokens } = account;
      if (tokens === undefined) throw notConnected(connectionId);
      const { expiresMs, refreshToken } = tokens;
      // A token that cannot be renewed is good until the partner refuses it: the clock of this machine may be wrong.
      const isGood = expiresMs === undefined || refreshToken === undefined || expiresMs - clock.nowMs() > renewBeforeMs;
      if (isGood && tokens.accessToken !== refused?.accessToken) return tokens.accessToken;
      // Without another token to try, only "unauthorized" says that it is the token (RFC 6750, section 3.1).
      if (refused && refreshToken === undefined && refused.error.providerStatus !== 401) {
        throw shownRefusal(refused.error);
      }
      const renewed = await this.#renewed(connectionId, account, tokens);
      accounts.save(connectionId, { ...account, tokens: renewed });
      return renewed.accessToken;
    });
  }

  async #renewed(connectionId: string, account: PartnerAccount, { refreshToken }: PartnerTokens) {
    const { oauth, accounts } = this.#deps;
    try {
      if (refreshToken !== undefined) return await oauth.refresh(refreshToken, toTheEnd());
    } catch (error) {
      if (!isLoginOver(error)) throw shownRefusal(error);
    }
    accounts.save(connectionId, { ...account, tokens: undefined });
    throw notConnected(connectionId);
  }
}

/**
 * The signal of what changes tokens at the partner: it goes on, within the time that a request has, when its caller
 * leaves. A refresh token that is exchanged for another is void, whether anybody has read the answer or not.
 */
function toTheEnd(): AbortSignal {
  return new AbortController().signal;
}

function notConnected(connectionId: string): ServiceError {
  const message = `the partner does not take the login of "${connectionId}" any more; authorize it again`;
  return new ServiceError('not_connected', message);
}

/** Nothing is wrong with the request of the caller. */
function shownRefusal(error: unknown): unknown {
  return error instanceof ProviderRefusal ? new ServiceError('upstream_refused', error.message) : error;
}

/** The partner may not take an access token; one that leads elsewhere, or is lost, says nothing of it. */
function isTokenRefused(error: unknown): error is ProviderRefusal {
  return error instanceof ProviderRefusal && [400, 401, 403].includes(error.providerStatus);
}

/** Refusals of RFC 6749, section 5.2, that are about this client or its request, not about the login that it asks to renew. */
const faultsOfClient = [
  'invalid_client',
  'invalid_request',
  'invalid_scope',
  'unauthorized_client',
  'unsupported_grant_type',
];

/** The partner does not take a refresh token any more. */
function isLoginOver(error: unknown): boolean {
  return (
    error instanceof ProviderRefusal &&
    [400, 401].includes(error.providerStatus) &&
    !faultsOfClient.includes(error.reason)
  );
}
