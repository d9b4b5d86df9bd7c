import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Table, TableLease } from '../table.ts';

/**
 * The ranges of a table for a reader that waits for its client between pages. They are let go when the table is to be dropped or
 * replaced meanwhile: a client that does not read its answer holds up nobody.
 */
export class ReaderLease implements Disposable {
  readonly #table: string;
  readonly #closing: AbortSignal;
  #lease: TableLease | undefined;
  #waits = false;

  private constructor(table: Table, lease: TableLease) {
    this.#table = table.name;
    this.#closing = table.closing;
    this.#lease = lease;
    this.#closing.addEventListener('abort', this.#onClosing);
  }

  /** Fails as `Table.lease`. */
  static async of(table: Table): Promise<ReaderLease> {
    return new ReaderLease(table, await table.lease());
  }

  get ranges(): readonly IndexedRange[] {
    return this.#lease?.ranges ?? [];
  }

  /** The ranges are not used until `resume`. */
  wait(): void {
    this.#waits = true;
    if (this.#closing.aborted) this[Symbol.dispose]();
  }

  /** Throws `unavailable` where the ranges were let go. */
  resume(): void {
    this.#waits = false;
    if (this.#lease !== undefined) return;
    const message = `table ${JSON.stringify(this.#table)} was dropped or replaced while its documents were sent`;
    throw new ServiceError('unavailable', message);
  }

  [Symbol.dispose](): void {
    this.#closing.removeEventListener('abort', this.#onClosing);
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
  }

  readonly #onClosing = (): void => {
    if (this.#waits) this[Symbol.dispose]();
  };
}
