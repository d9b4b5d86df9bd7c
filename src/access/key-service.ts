import { ServiceError } from '../protocol/service-error.ts';
import { type AccessChanges, userNotFound } from './access-changes.ts';
import type { ApiKey } from './access-state.ts';
import { digestOf, type NewKeySecret, newKeySecret, type RandomBytes } from './authentication/key-secret.ts';
import type { Grant } from './grants.ts';
import { includesGrant } from './grants.ts';
import { type Caller, requireAdmin, requireGrants, requireUser } from './principal.ts';
import { type CheckFilter, checkRowFilter } from './user-service.ts';

const keysMax = 100_000;

/** The request to make a key. */
interface KeyRequest {
  readonly name: string;
  /** In milliseconds, from `readLifetime`; undefined for a key that stays valid. */
  readonly lifetimeMs: number | undefined;
  /** Undefined for all that the user has, also later. */
  readonly permissions: readonly Grant[] | undefined;
  readonly rowFilter: Readonly<Record<string, object>> | undefined;
}

interface CreatedKey {
  readonly key: ApiKey;
  /** Known to nobody but the caller from now on. */
  readonly secret: NewKeySecret;
}

/**
 * Keys of users. A key never has more than its user, whatever is granted or taken back later. Every method fails with `forbidden`
 * for a caller that may not use it.
 */
export class KeyService {
  readonly #changes: AccessChanges;
  readonly #checkFilter: CheckFilter;
  readonly #random: RandomBytes | undefined;

  constructor(changes: AccessChanges, checkFilter: CheckFilter, random?: RandomBytes) {
    this.#changes = changes;
    this.#checkFilter = checkFilter;
    this.#random = random;
  }

  /** All keys, in the order in which they were made. */
  all(caller: Caller): ApiKey[] {
    requireAdmin(caller);
    return this.#changes.state.keys();
  }

  of(userName: string, caller: Caller): ApiKey[] {
    requireUser(caller, userName, 'read');
    this.#requireUser(userName);
    return this.#changes.state.keysOf(userName);
  }

  /** Fails with `forbidden` for a key with more than its user, or than the caller, has. */
  async create(userName: string, request: KeyRequest, caller: Caller): Promise<CreatedKey> {
    requireUser(caller, userName, 'write');
    const { name, permissions, rowFilter, lifetimeMs } = request;
    const createdMs = this.#changes.clock.nowMs();
    for (const [table, filter] of Object.entries(rowFilter ?? {}))
      await checkRowFilter(table, filter, this.#checkFilter);
    const secret = newKeySecret(this.#random);
    await this.#changes.run(() => {
      this.#requireUser(userName);
      const held = this.#changes.state.effectiveGrants(userName);
      refuseMore(userName, held, permissions ?? []);
      requireGrants(caller, permissions ?? held);
      if (this.#changes.state.keyCount >= keysMax) {
        throw new ServiceError('limit_exceeded', `a server holds at most ${keysMax} keys`);
      }
      const key = {
        keyId: secret.keyId,
        name,
        userName,
        secretSha256: digestOf(secret.secret),
        permissions: permissions === undefined ? null : JSON.stringify(permissions),
        rowFilter: rowFilter === undefined ? null : JSON.stringify(rowFilter),
        createdMs,
        expiresMs: lifetimeMs === undefined ? null : createdMs + lifetimeMs,
      };
      return { put: { apiKeys: [key] } };
    });
    caller.noteMade?.('key', secret.keyId);
    const key = this.#changes.state.key(secret.keyId);
    if (key === undefined) throw keyNotFound();
    return { key, secret };
  }

  /** It is refused from the next request on. Fails with `api_key_not_found`; any user's key where none is named. */
  async revoke(keyId: string, userName: string | undefined, caller: Caller): Promise<void> {
    if (userName === undefined) requireAdmin(caller);
    else requireUser(caller, userName, 'write');
    await this.#changes.run(() => {
      if (userName !== undefined) this.#requireUser(userName);
      const key = this.#changes.state.key(keyId);
      if (key === undefined || (userName !== undefined && key.userName !== userName)) throw keyNotFound();
      return { remove: { apiKeys: [keyId] } };
    });
  }

  #requireUser(name: string): void {
    if (this.#changes.state.user(name) === undefined) throw userNotFound(name);
  }
}

function refuseMore(userName: string, held: readonly Grant[], wanted: readonly Grant[]): void {
  const lacking = wanted.find((grant) => !includesGrant(held, grant));
  if (lacking === undefined) return;
  const { level, resourceType, resource } = lacking;
  const what = `${level} access to "${resource}" of type "${resourceType}"`;
  throw new ServiceError('forbidden', `a key cannot have more than its user: "${userName}" has no ${what}`);
}

function keyNotFound(): ServiceError {
  return new ServiceError('api_key_not_found', 'there is no such key');
}
