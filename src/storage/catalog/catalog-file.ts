import type { Database, Statement } from 'bun:sqlite';
import { must } from '../../lib/assert.ts';
import { failpoint } from '../../lib/failpoint.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { schemaVersion } from '../connection.ts';
import { sequenceAt } from '../sequence-at.ts';
import type {
  DroppedIndex,
  NewEnrichment,
  NewIndex,
  NewTable,
  TableChange,
  TableChangeReport,
  TablePublication,
} from '../storage-calls.ts';
import type { WalMaintenance } from '../wal/wal-maintenance.ts';
import type { RangeId } from '../write-request.ts';
import type { AccessChange } from './access-records.ts';
import { AccessTable } from './access-table.ts';
import { type CatalogQueries, catalogQueries } from './catalog-queries.ts';
import type { JobChange, JobRecord, NewJob, RangeFactsRecord, TableRecord } from './catalog-records.ts';
import { JobTable } from './job-table.ts';

/** Part ids stay below this: the row id of a vector is part id * 2^32 + ordinal. */
const partIdEnd = 2 ** 20;

/** The bytes that one change writes at most, about; redo records are counted by themselves. */
const changeBytes = 32 * 1_024;

export interface RedoRow {
  transactionId: number;
  payload: Uint8Array;
}

/** The writer's side of `catalog.db`. Every change is one durable transaction. */
export class CatalogFile {
  readonly queries: CatalogQueries;
  readonly wal: WalMaintenance;
  /** Told of a transaction that the file did not take; returns what is thrown. */
  onFailed: (error: unknown) => unknown = (error) => error;
  readonly #jobs: JobTable;
  readonly #access: AccessTable;
  readonly path: string;
  readonly #database: Database;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(path: string, database: Database, wal: WalMaintenance) {
    this.path = path;
    this.#database = database;
    this.wal = wal;
    this.queries = catalogQueries(database);
    this.#jobs = new JobTable(database);
    this.#access = new AccessTable(database);
    this.#statements = prepare(database);
  }

  /**
   * Adds a table with its ranges and indexes. `prepareRange` makes the range's durable file before the catalog
   * names it.
   */
  createTable(table: NewTable, prepareRange: (rangeId: RangeId, firstSequence: number) => void): TableRecord {
    return this.#change(() => {
      if (this.queries.table(table.name)) {
        throw new ServiceError('already_exists', `the table "${table.name}" exists already`);
      }
      const tableId = this.#next('table_id');
      const { staged } = table;
      const above = Math.max(this.#counter('sequence'), staged?.aboveSequence ?? 0);
      const firstSequence = Math.max(above + 1, sequenceAt(table.createdMs));
      this.#statements.addTable.run(tableId, table.name, staged ? 'staged' : 'live', table.createdMs, table.record);
      for (const { startKey, endKey } of table.ranges) {
        const rangeId = this.#next('range_id');
        prepareRange(rangeId, firstSequence);
        this.#statements.addRange.run(rangeId, tableId, startKey, endKey, 1, firstSequence);
      }
      for (const index of table.indexes) this.#addIndex(tableId, index);
      if (staged) this.#statements.setLastPart.run(staged.lastPartId, tableId);
      for (const { partId, name, config, state, replacedBy } of staged?.enrichments ?? []) {
        this.#statements.addEnrichment.run(tableId, partId, name, config, state, replacedBy);
      }
      for (const enrichment of table.enrichments ?? []) this.#addEnrichment(tableId, enrichment);
      return this.#table(tableId);
    });
  }

  /** The last one counts: one that a wrong clock has made must not hide the next jump. */
  noteWallClock(nowMs: number): void {
    this.#change(() => this.#statements.set.run('wall_clock_ms', nowMs));
  }

  /** A small write, to learn whether the disk takes any. */
  tryWrite(): void {
    // The page of the version is written although it stays the same; that of a row would not be.
    this.#change(() => this.#database.run(`PRAGMA user_version = ${schemaVersion(this.#database)}`));
  }

  /** Marks only rise. Synced like every change: the log's check relies on at most one transaction that is not. */
  noteHeads(heads: ReadonlyMap<RangeId, number>): void {
    this.#change(() => {
      for (const [rangeId, head] of heads) this.#statements.raiseHead.run(head, rangeId);
    });
  }

  /**
   * With `read` and `write` on it, whoever has them. `sequenceMark` is the greatest sequence that any range of the table has
   * given.
   */
  dropTable(tableId: number, sequenceMark: number): void {
    this.#change(() => {
      this.#statements.dropGrants.run(tableId);
      this.#dropTable(tableId, sequenceMark);
    });
  }

  /** Gives a staged table its name, in place of the table that has it, and notes that in the job of the restore. */
  publishTable({ tableId, name, replaces, job }: TablePublication, sequenceMark: number): TableRecord {
    return this.#change(() => {
      if (replaces !== undefined) this.#dropTable(replaces, sequenceMark);
      if (this.queries.table(name)) throw new ServiceError('already_exists', `there is a table "${name}" already`);
      this.#table(tableId);
      this.#statements.publish.run(name, tableId);
      this.#jobs.change(job);
      return this.#table(tableId);
    });
  }

  #dropTable(tableId: number, sequenceMark: number): void {
    this.#raise('sequence', sequenceMark);
    this.#statements.dropFacts.run(tableId);
    this.#statements.dropHeads.run(tableId);
    this.#statements.dropIndexes.run(tableId);
    this.#statements.dropKeptParts.run(tableId);
    this.#statements.dropEnrichments.run(tableId);
    this.#statements.dropRanges.run(tableId);
    this.#statements.dropTable.run(tableId);
  }

  addJob(job: NewJob): JobRecord {
    return this.#change(() => this.#jobs.add(job));
  }

  changeJob(change: JobChange): boolean {
    return this.#change(() => this.#jobs.change(change));
  }

  removeExpiredJobs(nowMs: number): void {
    this.#change(() => this.#jobs.removeExpired(nowMs));
  }

  changeAccess(change: AccessChange): void {
    this.#change(() => this.wal.wrote(0, this.#access.change(change)));
  }

  saveRangeFacts(facts: readonly RangeFactsRecord[]): void {
    this.#change(() => {
      for (const { rangeId, stamp, facts: text } of facts) {
        this.wal.wrote(text.length, 1);
        this.#statements.setFacts.run(stamp, text, rangeId);
      }
    });
  }

  changeTable(change: TableChange): TableChangeReport {
    return this.#change(() => {
      const { tableId } = change;
      this.#table(tableId);
      if (change.record !== undefined) this.#statements.setRecord.run(change.record, tableId);
      const goneParts = (change.dropIndexes ?? []).flatMap((index) => this.#dropIndex(tableId, index));
      for (const index of change.addIndexes ?? []) this.#addIndex(tableId, index);
      for (const { name, config, state } of change.updateIndexes ?? []) {
        const updated = this.#statements.updateIndex.run(config ?? null, state ?? null, tableId, name);
        if (updated.changes === 0) throw indexNotFound(name);
      }
      for (const name of change.dropEnrichments ?? []) goneParts.push(this.#dropEnrichment(tableId, name));
      for (const enrichment of change.addEnrichments ?? []) this.#addEnrichment(tableId, enrichment);
      for (const { name, config } of change.updateEnrichments ?? []) {
        const { changes } = this.#statements.updateEnrichment.run(config, tableId, name);
        if (changes === 0) throw artifactNotFound(name);
      }
      const { queries } = this;
      return { indexes: queries.indexesOf(tableId), enrichments: queries.enrichmentsOf(tableId), goneParts };
    });
  }

  /** Id for the next write over several ranges; durable together with its redo record. */
  peekTransactionId(): number {
    return this.#counter('transaction_id') + 1;
  }

  /** Commits redo records, and forgets those that have been applied. The commit point of what they describe. */
  writeRedo(records: readonly RedoRow[], applied: Iterable<number>): void {
    this.#change(() => {
      for (const { transactionId, payload } of records) {
        this.wal.wrote(payload.byteLength, 1);
        this.#statements.addRedo.run(transactionId, payload);
        this.#raise('transaction_id', transactionId);
      }
      for (const transactionId of applied) this.#statements.dropRedo.run(transactionId);
    });
  }

  redo(): RedoRow[] {
    return this.#statements.redo.all() as RedoRow[];
  }

  close(): void {
    this.queries.finalize();
    this.#jobs.close();
    this.#access.close();
    for (const statement of Object.values(this.#statements)) statement.finalize();
    this.#database.close();
  }

  #change<Result>(body: () => Result): Result {
    const { begin, commit, rollback } = this.#statements;
    this.wal.checkPlace();
    this.#takes(() => begin.run());
    try {
      const result = body();
      failpoint('catalog.before-commit');
      this.#takes(() => commit.run());
      failpoint('catalog.after-commit');
      this.wal.wrote(changeBytes, 1);
      return result;
    } catch (error) {
      if (this.#database.inTransaction) rollback.run();
      throw error;
    }
  }

  /** The files of ranges may fail as well, while a table is made. */
  #takes(step: () => void): void {
    try {
      step();
    } catch (error) {
      throw this.onFailed(error);
    }
  }

  #table(tableId: number): TableRecord {
    const table = this.queries.tableById(tableId);
    if (table) return table;
    throw new ServiceError('table_not_found', 'the table does not exist any more');
  }

  /** Gives the parts that have become nobody's; an index that is gone already may have left some. */
  #dropIndex(tableId: number, { name, keptShape }: DroppedIndex): number[] {
    const dropped = this.#statements.dropIndex.get(tableId, name) as { partId: number } | null;
    if (dropped && keptShape !== undefined) {
      this.#statements.keepPart.run(tableId, name, keptShape, dropped.partId);
      return [];
    }
    const kept = this.#statements.dropKeptPartsOf.all(tableId, name) as { partId: number }[];
    if (!dropped && kept.length === 0) throw indexNotFound(name);
    return [...kept, ...(dropped ? [dropped] : [])].map(({ partId }) => partId);
  }

  #addIndex(tableId: number, index: NewIndex): void {
    const { incarnation = this.#next('incarnation') } = index;
    this.#raise('incarnation', incarnation);
    const kept =
      index.shape === undefined
        ? null
        : (this.#statements.takeKeptPart.get(tableId, index.name, index.shape) as { partId: number } | null);
    const partId = index.partId ?? kept?.partId ?? this.#nextPart(tableId);
    if (index.shape !== undefined && partId >= partIdEnd) {
      throw partsUsedUp(`index "${index.name}" with vectors`);
    }
    const added = this.#statements.addIndex.run(tableId, index.name, incarnation, partId, index.config, index.state);
    if (added.changes === 0) throw new ServiceError('already_exists', `the index "${index.name}" exists already`);
  }

  #addEnrichment(tableId: number, { name, config }: NewEnrichment): void {
    const partId = this.#nextPart(tableId);
    if (partId >= partIdEnd) throw partsUsedUp(`enrichment "${name}"`);
    if (this.queries.enrichmentsOf(tableId).some((each) => each.name === name)) {
      throw new ServiceError('already_exists', `the enrichment "${name}" exists already`);
    }
    this.#statements.addEnrichment.run(tableId, partId, name, config, '', null);
  }

  /** Gives its part, which has become nobody's. */
  #dropEnrichment(tableId: number, name: string): number {
    const dropped = this.#statements.dropEnrichment.get(tableId, name) as { partId: number } | null;
    if (!dropped) throw artifactNotFound(name);
    return dropped.partId;
  }

  #counter(name: string): number {
    const row = this.#statements.counter.get(name) as { value: number } | null;
    return row?.value ?? 0;
  }

  #next(name: string): number {
    const value = this.#counter(name) + 1;
    this.#raise(name, value);
    return value;
  }

  /** A part id that the table has never had. */
  #nextPart(tableId: number): number {
    const row = this.#statements.nextPart.get(tableId) as { partId: number } | null;
    return must(row, 'a part of a table that is not there').partId;
  }

  #raise(name: string, value: number): void {
    this.#statements.raise.run(name, value);
  }
}

function indexNotFound(name: string): ServiceError {
  return new ServiceError('index_not_found', `the index "${name}" does not exist`);
}

function artifactNotFound(name: string): ServiceError {
  return new ServiceError('artifact_not_found', `the enrichment "${name}" does not exist`);
}

function partsUsedUp(what: string): ServiceError {
  const message = `all ${partIdEnd - 1} part ids of this table are used up: no ${what} can be added; load the documents into a new table`;
  return new ServiceError('limit_exceeded', message);
}

function prepare(database: Database) {
  const statement = (sql: string): Statement => database.prepare(sql);
  return {
    begin: statement('BEGIN IMMEDIATE'),
    commit: statement('COMMIT'),
    rollback: statement('ROLLBACK'),
    addTable: statement('INSERT INTO tables (id, name, state, created_ms, record) VALUES (?, ?, ?, ?, ?)'),
    publish: statement("UPDATE tables SET name = ?, state = 'live' WHERE id = ? AND state = 'staged'"),
    setLastPart: statement('UPDATE tables SET last_part_id = max(last_part_id, ?) WHERE id = ?'),
    addEnrichment: statement(
      'INSERT INTO enrichments (table_id, part_id, name, config, state, replaced_by) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    addRange: statement(
      'INSERT INTO ranges (id, table_id, start_key, end_key, generation, first_sequence) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    addIndex: statement(
      'INSERT INTO indexes (table_id, name, incarnation, part_id, config, state) VALUES (?, ?, ?, ?, ?, ?) ' +
        'ON CONFLICT DO NOTHING',
    ),
    updateIndex: statement(
      'UPDATE indexes SET config = coalesce(?, config), state = coalesce(?, state) WHERE table_id = ? AND name = ?',
    ),
    setRecord: statement('UPDATE tables SET record = ? WHERE id = ?'),
    dropIndex: statement('DELETE FROM indexes WHERE table_id = ? AND name = ? RETURNING part_id AS partId'),
    keepPart: statement('INSERT INTO kept_parts (table_id, name, shape, part_id) VALUES (?, ?, ?, ?)'),
    takeKeptPart: statement(
      'DELETE FROM kept_parts WHERE table_id = ? AND name = ? AND shape = ? RETURNING part_id AS partId',
    ),
    dropKeptPartsOf: statement('DELETE FROM kept_parts WHERE table_id = ? AND name = ? RETURNING part_id AS partId'),
    dropKeptParts: statement('DELETE FROM kept_parts WHERE table_id = ?'),
    updateEnrichment: statement('UPDATE enrichments SET config = ? WHERE table_id = ? AND name = ?'),
    dropEnrichment: statement('DELETE FROM enrichments WHERE table_id = ? AND name = ? RETURNING part_id AS partId'),
    dropEnrichments: statement('DELETE FROM enrichments WHERE table_id = ?'),
    // A range that was dropped meanwhile has no row any more, and gets none.
    setFacts: statement(
      'INSERT OR REPLACE INTO range_facts (range_id, stamp, facts) SELECT id, ?, ? FROM ranges WHERE id = ?',
    ),
    dropFacts: statement('DELETE FROM range_facts WHERE range_id IN (SELECT id FROM ranges WHERE table_id = ?)'),
    raiseHead: statement(
      'INSERT INTO range_heads (head, range_id) SELECT ?, id FROM ranges WHERE id = ? ' +
        'ON CONFLICT (range_id) DO UPDATE SET head = max(head, excluded.head)',
    ),
    dropHeads: statement('DELETE FROM range_heads WHERE range_id IN (SELECT id FROM ranges WHERE table_id = ?)'),
    dropIndexes: statement('DELETE FROM indexes WHERE table_id = ?'),
    dropRanges: statement('DELETE FROM ranges WHERE table_id = ?'),
    // An administrator of the name may make it again; row filters only take away.
    dropGrants: statement(`DELETE FROM grants WHERE resource_type = 'table' AND level <> 'admin'
      AND resource = (SELECT name FROM tables WHERE id = ?)`),
    dropTable: statement('DELETE FROM tables WHERE id = ?'),
    nextPart: statement(
      'UPDATE tables SET last_part_id = last_part_id + 1 WHERE id = ? RETURNING last_part_id AS partId',
    ),
    counter: statement('SELECT value FROM counters WHERE name = ?'),
    set: statement(
      'INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    ),
    raise: statement(
      'INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)',
    ),
    addRedo: statement('INSERT INTO redo (transaction_id, payload) VALUES (?, ?)'),
    dropRedo: statement('DELETE FROM redo WHERE transaction_id = ?'),
    redo: statement('SELECT transaction_id AS transactionId, payload FROM redo ORDER BY transaction_id'),
  };
}
