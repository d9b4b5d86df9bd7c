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
    const token = await this.#accessToken(connectionId, undefined, signal);
    try {
      return await oauth.models(token, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The partner may take a token back before its time.
      return await oauth.models(await this.#accessToken(connectionId, token, signal), signal);
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
  disconnect(connectionId: string, signal: AbortSignal): Promise<boolean> {
    const { oauth, accounts } = this.#deps;
    return this.#turns.run(connectionId, async () => {
      const tokens = accounts.find(connectionId)?.tokens;
      accounts.remove(connectionId);
      return tokens !== undefined && (await oauth.revoke(tokens, signal));
    });
  }

  /** A token that is good for a while; another one than `refused`. */
  #accessToken(connectionId: string, refused: string | undefined, signal: AbortSignal): Promise<string> {
    const { accounts, clock } = this.#deps;
    return this.#turns.run(connectionId, async () => {
      const account = accounts.find(connectionId);
      if (account === undefined) {
        throw new ServiceError('connection_not_found', `there is no partner account "${connectionId.slice(0, 64)}"`);
      }
      const { tokens } = account;
      if (tokens === undefined) throw notConnected(connectionId);
      const isGood = tokens.expiresMs === undefined || tokens.expiresMs - clock.nowMs() > renewBeforeMs;
      if (isGood && tokens.accessToken !== refused) return tokens.accessToken;
      const renewed = await this.#renewed(connectionId, account, tokens, signal);
      accounts.save(connectionId, { ...account, tokens: renewed });
      return renewed.accessToken;
    });
  }

  async #renewed(connectionId: string, account: PartnerAccount, { refreshToken }: PartnerTokens, signal: AbortSignal) {
    const { oauth, accounts } = this.#deps;
    try {
      if (refreshToken !== undefined) return await oauth.refresh(refreshToken, signal);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
    accounts.save(connectionId, { ...account, tokens: undefined });
    throw notConnected(connectionId);
  }
}

function notConnected(connectionId: string): ServiceError {
  const message = `the partner does not take the login of "${connectionId}" any more; authorize it again`;
  return new ServiceError('not_connected', message);
}

/** The partner has answered, and does not take what it was given. */
function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && ['upstream_refused', 'invalid_request'].includes(error.code);
}
