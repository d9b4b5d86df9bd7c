import type { WorkerChannel } from '../../runtime/worker-channel.ts';
import { openReader } from '../connection.ts';
import type { Removals } from '../directory/removals.ts';
import type { NewTable, StorageCalls, TableChange, TableChangeReport, TablePublication } from '../storage-calls.ts';
import { reading } from '../storage-error.ts';
import type { RangeId } from '../write-request.ts';
import { type CatalogQueries, catalogQueries } from './catalog-queries.ts';
import type { IndexRecord, RangeFactsRecord, RangeRecord, TableDefinition, TableRecord } from './catalog-records.ts';

const catalogSource = { name: 'the catalog' };

/** The catalog of this node: reads on the calling thread, changes through the writer, each one durable transaction. */
export class CatalogStore {
  readonly #channel: WorkerChannel<StorageCalls>;
  readonly #reading: CatalogQueries;
  readonly #removals: Removals;
  readonly #close: () => void;

  constructor(path: string, channel: WorkerChannel<StorageCalls>, removals: Removals) {
    const database = openReader(path);
    this.#channel = channel;
    this.#removals = removals;
    this.#reading = catalogQueries(database);
    this.#close = () => {
      this.#reading.finalize();
      database.close();
    };
  }

  /** All tables, by name. */
  tables(): TableRecord[] {
    return reading(catalogSource, () => this.#reading.tables());
  }

  table(name: string): TableRecord | undefined {
    return reading(catalogSource, () => this.#reading.table(name));
  }

  tableById(tableId: number): TableRecord | undefined {
    return reading(catalogSource, () => this.#reading.tableById(tableId));
  }

  ranges(): RangeRecord[] {
    return reading(catalogSource, () => this.#reading.ranges());
  }

  range(rangeId: RangeId): RangeRecord | undefined {
    return reading(catalogSource, () => this.#reading.range(rangeId));
  }

  /** Of the indexes of all tables. */
  incarnations(): Pick<IndexRecord, 'tableId' | 'incarnation'>[] {
    return reading(catalogSource, () => this.#reading.incarnations());
  }

  /** Fails with `already_exists`. The files of its ranges exist durably when this resolves. */
  createTable(table: NewTable): Promise<TableRecord> {
    return this.#channel.call('createTable', table);
  }

  /**
   * Removes the table, its ranges and their files. Close its ranges first. `nowMs` is the wall time, `heads` the last
   * sequences of the ranges where they are known: the others are opened to find theirs.
   */
  async dropTable(tableId: number, nowMs: number, heads: ReadonlyMap<RangeId, number>): Promise<void> {
    const { removed } = await this.#channel.call('dropTable', { tableId, nowMs, heads });
    this.#removals.add(removed);
  }

  /**
   * Publishes a staged table, as `TablePublication` says; the files of the one that it replaces are removed. Close the ranges of
   * both first. Fails with `already_exists` where the name is taken.
   */
  async publishTable(publication: TablePublication): Promise<TableRecord> {
    const { table, removed } = await this.#channel.call('publishTable', publication);
    this.#removals.add(removed);
    return table;
  }

  /** All that the catalog says of a table. */
  definition(tableId: number): TableDefinition | undefined {
    return reading(catalogSource, () => this.#reading.definition(tableId));
  }

  /** The facts of each range that were saved last, whether they are still true or not. */
  rangeFacts(): RangeFactsRecord[] {
    return reading(catalogSource, () => this.#reading.rangeFacts());
  }

  /** Keeps what is known of ranges; those that are gone by now are left out. */
  saveRangeFacts(facts: readonly RangeFactsRecord[]): Promise<void> {
    return this.#channel.call('saveRangeFacts', { facts });
  }

  /**
   * Changes the record and the indexes in one transaction: drops, then additions, then updates. An index that is added
   * takes the vectors that one of its name and shape has left. Fails with `table_not_found`, `index_not_found` or
   * `already_exists`.
   */
  changeTable(change: TableChange): Promise<TableChangeReport> {
    return this.#channel.call('changeTable', change);
  }

  /** The wall time that was noted last, milliseconds since 1970; 0 before the first. */
  notedWallClock(): number {
    return this.#reading.counter('wall_clock_ms');
  }

  /** Notes the wall time, so that a jump is seen also over a restart. */
  noteWallClock(nowMs: number): Promise<void> {
    return this.#channel.call('noteWallClock', { nowMs });
  }

  close(): void {
    this.#close();
  }
}
