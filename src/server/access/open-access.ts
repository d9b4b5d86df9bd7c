import { AccessChanges } from '../../access/access-changes.ts';
import { AccessState } from '../../access/access-state.ts';
import { type Authenticator, CatalogAuthenticator } from '../../access/authentication/authenticator.ts';
import { Passwords } from '../../access/authentication/passwords.ts';
import { createFirstAdmin } from '../../access/first-admin.ts';
import { KeyService } from '../../access/key-service.ts';
import { type CheckFilter, UserService } from '../../access/user-service.ts';
import type { Config } from '../../config/options.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { AccessStore, CatalogAccessStore } from '../../storage/catalog/access-store.ts';
import { DataDirectoryError } from '../../storage/directory/data-directory-error.ts';

interface Deps {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly checkFilter: CheckFilter;
}

interface Access {
  readonly authenticator: Authenticator;
  readonly users: UserService;
  readonly keys: KeyService;
  /** Makes an administrator where there is no user; the key of it, unless a password was given. */
  makeFirstKey(): Promise<string | undefined>;
}

/** Users and keys while authentication is on; undefined while it is off. Refuses to start where they cannot be read. */
export function openAccess(store: CatalogAccessStore, parts: Deps): Access | undefined {
  const { config, clock, logger, metrics, checkFilter } = parts;
  if (!config.authEnabled) {
    if (store.rows().users.length > 0) {
      logger.warn('authentication is off, though this data directory has users: everybody may do everything');
    }
    return undefined;
  }
  const state = readState(store);
  const passwords = new Passwords();
  const authenticator = new CatalogAuthenticator({
    state,
    clock,
    passwords,
    onRefused(reason, client) {
      metrics.increment('authFailures', [reason]);
      if (reason !== 'missing') logger.debug('a credential was refused', { reason, client });
    },
  });
  const changes = new AccessChanges({ state, store, clock, onChange: () => authenticator.forget() });
  store.onDrop(changes.aroundDrop);
  const users = new UserService(changes, passwords, checkFilter);
  const keys = new KeyService(changes, checkFilter);
  const makeFirstKey = () => createFirstAdmin(changes, passwords, config.adminPassword);
  return { authenticator, users, keys, makeFirstKey };
}

/** Grants that cannot be read are not left out: a start without it would let in who was kept out. */
function readState(store: AccessStore): AccessState {
  try {
    return AccessState.of(store.rows());
  } catch (error) {
    const message = `users and keys cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    const hint = 'restore catalog.db from a backup; the server does not start without them while auth.enabled is true';
    throw new DataDirectoryError('damaged', message, hint, error);
  }
}
