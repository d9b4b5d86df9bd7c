import { isHostPattern } from '../../config/named-sections/host-pattern.ts';
import { isSecretKey, variableOfSecret } from '../../lib/text/credential-references.ts';
import type { SecretEntry } from '../../protocol/database/secrets.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type Caller, requireAdmin } from '../principal.ts';
import type { SecretRecord } from './secret-records.ts';
import type { SecretStore } from './secret-store.ts';

interface Deps {
  readonly store: Pick<SecretStore, 'records' | 'put' | 'delete'>;
  /** The variables that credentials may refer to and that are set. */
  readonly variables: () => ReadonlyMap<string, string>;
}

/** Accounts at a partner are secrets whose keys begin with this; only a login writes them. */
export const partnerPrefix = 'partner.';

/** The secrets, for requests. No answer has a value. Every method fails with `forbidden` for all but administrators. */
export class SecretService {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The secrets of the file and the variables that no secret of the file has the name of, by key. */
  list(caller: Caller): SecretEntry[] {
    requireAdmin(caller);
    const records = [...this.#deps.store.records().values()];
    const named = new Set(records.map(({ key }) => variableOfSecret(key)));
    const others = [...this.#deps.variables().keys()].filter((name) => !named.has(name));
    const fromEnvironment = others.map(
      (name): SecretEntry => ({ key: name.toLowerCase(), status: 'configured_env', env_var: name }),
    );
    const all = [...records.map((record) => this.#entryOf(record)), ...fromEnvironment];
    return all.sort((left, right) => (left.key < right.key ? -1 : 1));
  }

  /** Stores a secret, durably. Without `hosts` a stored one keeps its own. Fails with `invalid_request`. */
  put(key: string, given: { readonly value: string; readonly hosts?: readonly string[] }, caller: Caller): SecretEntry {
    requireAdmin(caller);
    requireWritableKey(key);
    const { value, hosts } = given;
    const wrong = hosts?.find((host) => !isHostPattern(host));
    if (wrong !== undefined) {
      throw new ServiceError('invalid_request', `member "hosts": "${wrong}" is not a host; leave scheme and path out`);
    }
    return this.#entryOf(this.#deps.store.put(key, value, hosts));
  }

  /** Removes a secret from the file. Fails with `secret_not_found`. */
  remove(key: string, caller: Caller): void {
    requireAdmin(caller);
    requireWritableKey(key);
    if (this.#deps.store.delete(key)) return;
    const variable = variableOfSecret(key);
    const why = this.#deps.variables().has(variable) ? `; it comes from the variable "${variable}"` : '';
    throw new ServiceError('secret_not_found', `the file of secrets has no "${key}"${why}`);
  }

  #entryOf({ key, hosts, createdMs, updatedMs }: SecretRecord): SecretEntry {
    const variable = variableOfSecret(key);
    return {
      key,
      status: this.#deps.variables().has(variable) ? 'configured_both' : 'configured_file',
      env_var: variable,
      ...(hosts && { hosts: [...hosts] }),
      ...(createdMs !== undefined && { created_at: new Date(createdMs).toISOString() }),
      ...(updatedMs !== undefined && { updated_at: new Date(updatedMs).toISOString() }),
    };
  }
}

function requireWritableKey(key: string): void {
  if (key.startsWith(partnerPrefix)) {
    throw new ServiceError('invalid_request', `keys that begin with "${partnerPrefix}" belong to partner accounts`);
  }
  if (isSecretKey(key)) return;
  const form = 'letters, digits, "_", "-" and single dots between them, at most 128 characters';
  throw new ServiceError('invalid_request', `the key of a secret has ${form}`);
}
