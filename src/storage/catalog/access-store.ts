import type { WorkerChannel } from '../../runtime/worker-channel.ts';
import { openReader } from '../connection.ts';
import type { StorageCalls } from '../storage-calls.ts';
import { reading } from '../storage-error.ts';
import type { AccessChange, AccessRows } from './access-records.ts';
import { readAccessRows } from './access-table.ts';

/** Where users, grants, keys and row filters are kept. */
export interface AccessStore {
  /** All of them, in the order of their names. */
  rows(): AccessRows;
  /** One durable transaction. */
  change(change: AccessChange): Promise<void>;
}

/** Runs the drop of a table from the catalog, with which the grants on it go. */
type AroundDrop = (table: string, drop: () => Promise<void>) => Promise<void>;

/** Those of this node's catalog: read on the calling thread, changed through the writer. */
export class CatalogAccessStore implements AccessStore {
  readonly #path: string;
  readonly #channel: WorkerChannel<StorageCalls>;
  #aroundDrop: AroundDrop = (_, drop) => drop();

  constructor(path: string, channel: WorkerChannel<StorageCalls>) {
    this.#path = path;
    this.#channel = channel;
  }

  rows(): AccessRows {
    const database = openReader(this.#path);
    try {
      return reading({ name: 'the catalog' }, () => readAccessRows(database));
    } finally {
      database.close();
    }
  }

  /** The owner of the grants says how a drop runs between their changes. */
  onDrop(around: AroundDrop): void {
    this.#aroundDrop = around;
  }

  dropping(table: string, drop: () => Promise<void>): Promise<void> {
    return this.#aroundDrop(table, drop);
  }

  change(change: AccessChange): Promise<void> {
    return this.#channel.call('changeAccess', change);
  }
}
