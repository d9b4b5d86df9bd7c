import { type Caller, ownerOf, requireInference } from '../../access/principal.ts';
import type { PartnerAccount, PartnerAccounts } from './partner-accounts.ts';
import type { AttemptState, PartnerAttempts, StartedAttempt } from './partner-attempts.ts';
import type { PartnerConnections, PartnerModel } from './partner-connections.ts';

interface Deps {
  readonly attempts: PartnerAttempts;
  readonly connections: PartnerConnections;
  readonly accounts: PartnerAccounts;
}

/** The accounts at the partner, for requests. Every method fails with `forbidden` for a caller that may not write inference. */
export class PartnerService {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Begins a login. Fails with `partner_not_configured` and `unavailable`. */
  authorize(connectionId: string, caller: Caller): StartedAttempt {
    requireInference(caller, 'write');
    return this.#deps.attempts.authorize(connectionId, ownerOf(caller.principal));
  }

  /** How a login stands. Fails with `attempt_not_found`. */
  attempt(id: string, caller: Caller): AttemptState {
    requireInference(caller, 'write');
    return this.#deps.attempts.find(id);
  }

  /** The accounts that are connected, by connection. */
  accounts(caller: Caller): ReadonlyMap<string, PartnerAccount> {
    requireInference(caller, 'write');
    return this.#deps.accounts.all();
  }

  /** The models of an account. Fails with `connection_not_found`, `not_connected`, and what the partner answers. */
  async models(connectionId: string, caller: Caller): Promise<PartnerModel[]> {
    requireInference(caller, 'write');
    return await this.#deps.connections.models(connectionId, caller.signal);
  }

  /** Forgets an account and ends its pending logins; true when the partner has confirmed that its tokens are void. */
  async disconnect(connectionId: string, caller: Caller): Promise<boolean> {
    requireInference(caller, 'write');
    this.#deps.attempts.cancel(connectionId);
    return await this.#deps.connections.disconnect(connectionId);
  }

  /** Ends pending logins, and closes the listener of their callback. */
  stop(): Promise<void> {
    return this.#deps.attempts.stop();
  }
}
