import { partnerPrefix } from '../../access/secrets/secret-service.ts';
import type { SecretStore } from '../../access/secrets/secret-store.ts';

export interface PartnerTokens {
  readonly accessToken: string;
  /** Undefined where the partner gives none: the account ends with its access token. */
  readonly refreshToken: string | undefined;
  /** Milliseconds since 1970; undefined where the partner does not say. */
  readonly expiresMs: number | undefined;
}

export interface PartnerAccount {
  readonly email: string;
  readonly label: string;
  readonly planEnabled: boolean;
  /** Undefined once the partner refuses them. */
  readonly tokens: PartnerTokens | undefined;
}

/** The accounts that users have connected, each a secret of its own: tokens lie nowhere else. */
export class PartnerAccounts {
  readonly #secrets: Pick<SecretStore, 'records' | 'get' | 'put' | 'delete'>;

  constructor(secrets: Pick<SecretStore, 'records' | 'get' | 'put' | 'delete'>) {
    this.#secrets = secrets;
  }

  all(): ReadonlyMap<string, PartnerAccount> {
    const keys = [...this.#secrets.records().keys()].filter((key) => key.startsWith(partnerPrefix));
    const ids = keys.map((key) => key.slice(partnerPrefix.length)).sort();
    return new Map(
      ids.flatMap((id) => {
        const account = this.find(id);
        return account === undefined ? [] : [[id, account] as const];
      }),
    );
  }

  find(connectionId: string): PartnerAccount | undefined {
    const record = this.#secrets.get(partnerPrefix + connectionId);
    return record === undefined ? undefined : readAccount(record.value);
  }

  /** Durably, for no host: references of credentials do not reach these secrets. */
  save(connectionId: string, account: PartnerAccount): void {
    this.#secrets.put(partnerPrefix + connectionId, JSON.stringify(account), []);
  }

  remove(connectionId: string): void {
    this.#secrets.delete(partnerPrefix + connectionId);
  }
}

/**
 * An entry that was put there by hand, and is no account, counts as one without
 * a login: it can be disconnected, and authorized again.
 */
function readAccount(value: string): PartnerAccount {
  let members: Partial<PartnerAccount> | null = null;
  try {
    members = JSON.parse(value) as Partial<PartnerAccount> | null;
  } catch {
    // The message of the parser would quote the value.
  }
  const { email = '', label = '', planEnabled = false, tokens } = members ?? {};
  const isLogin = typeof tokens === 'object' && typeof tokens?.accessToken === 'string';
  return {
    email: String(email),
    label: String(label),
    planEnabled: planEnabled === true,
    tokens: isLogin ? tokens : undefined,
  };
}
