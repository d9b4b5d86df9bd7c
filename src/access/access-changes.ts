import type { Clock } from '../lib/clock.ts';
import { KeyedMutex } from '../lib/concurrency/keyed-mutex.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { AccessChange, GrantRecord } from '../storage/catalog/access-records.ts';
import type { AccessStore } from '../storage/catalog/access-store.ts';
import { AccessState } from './access-state.ts';
import type { Grant } from './grants.ts';

interface Deps {
  readonly state: AccessState;
  readonly store: AccessStore;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Called once a change holds for every request that follows. */
  readonly onChange: () => void;
}

/** The only way to change who may do what: one change at a time, durable first, then in force. */
export class AccessChanges {
  readonly state: AccessState;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly #store: AccessStore;
  readonly #onChange: () => void;
  readonly #mutex = new KeyedMutex();

  constructor({ state, store, clock, onChange }: Deps) {
    this.state = state;
    this.clock = clock;
    this.#store = store;
    this.#onChange = onChange;
  }

  /**
   * Decides on a change by what holds now, and makes it; undefined changes nothing. Fails with `last_admin` where nobody
   * could come in as a global administrator afterwards.
   */
  run(decide: () => AccessChange | undefined): Promise<void> {
    return this.#mutex.run('access', async () => {
      const change = decide();
      if (change === undefined) return;
      this.#keepAdmin(change);
      await this.#store.change(change);
      this.state.apply(change);
      this.#onChange();
    });
  }

  /** Runs the drop of a table, which takes back `read` and `write` on it: a later table of its name is another one. */
  readonly aroundDrop = (table: string, drop: () => Promise<void>): Promise<void> =>
    this.#mutex.run('access', async () => {
      await drop();
      this.state.apply({ remove: { grants: this.state.grantsOfLife('table', table) } });
      this.#onChange();
    });

  #keepAdmin(change: AccessChange): void {
    const { remove, put } = change;
    // A role may bring row filters.
    const takesAway = remove !== undefined || put?.rowFilters !== undefined || put?.memberships !== undefined;
    if (!takesAway) return;
    const nowMs = this.clock.nowMs();
    if (!this.state.hasReachableAdmin(nowMs) || this.state.after(change).hasReachableAdmin(nowMs)) return;
    const message = 'nobody could come in as a global administrator after this; make another administrator first';
    throw new ServiceError('last_admin', message);
  }
}

/** Changes of a data directory that no server holds. */
export function offlineChanges(store: AccessStore, clock: Pick<Clock, 'nowMs'>): AccessChanges {
  return new AccessChanges({ state: AccessState.of(store.rows()), store, clock, onChange: () => undefined });
}

export function grantRecords(subject: string, grants: readonly Grant[]): GrantRecord[] {
  return grants.map((grant) => ({ subject, ...grant }));
}

export function userNotFound(name: string): ServiceError {
  return new ServiceError('user_not_found', `there is no user "${name}"`);
}
