import type { Database, Statement } from 'bun:sqlite';
import { assert } from '../lib/assert.ts';
import { type DocumentFrame, rowKind, rowOrdinalIsNew } from '../lib/document-frame.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { purgeChanges } from './change-purge.ts';
import type { RangeId } from './entry-group.ts';
import type { RangeSnapshot } from './range-snapshot.ts';
import type { PurgeReport } from './storage-calls.ts';

/** Ordinals are u32 in frames and indexes. */
const ordinalMax = 0xffff_ffff;

/** Counters of a range; saved on the last row that a transaction adds to `changes`. */
export interface RangeState {
  documents: number;
  bytes: number;
  nextOrdinal: number;
  nextSequence: number;
  entryIndex: number;
  /** Last write over several ranges that was applied here. */
  transactionId: number;
}

/** A stored row without its body. */
export interface RowHead {
  ordinal: number;
  sequence: number;
  ttlBaseMs: number;
  bodyBytes: number;
}

export interface StoredRow extends RowHead {
  crc: number;
  body: Uint8Array;
}

export interface KeyedRow extends StoredRow {
  key: Uint8Array;
}

/** A written row's place. */
export interface RowPlace {
  ordinal: number;
  sequence: number;
  isNew: boolean;
}

const rowColumns = 'ordinal, sequence, coalesce(ttl_base_ms, 0) AS ttlBaseMs, length(body) AS bodyBytes';

/** The writer's side of one range's `documents.db`: row operations inside a transaction, and the range's counters. */
export class RangeFile {
  readonly rangeId: RangeId;
  readonly generation: number;
  readonly firstSequence: number;
  state: RangeState;
  readonly #database: Database;
  readonly #statements: ReturnType<typeof prepare>;
  #savedSequence: number;
  #writtenBytes = 0;
  #stateAtBegin: RangeState | undefined;

  constructor(database: Database) {
    this.#database = database;
    const identity = database.query('SELECT range_id, generation, first_sequence FROM range_identity').get() as {
      range_id: number;
      generation: number;
      first_sequence: number;
    } | null;
    if (!identity) throw new ServiceError('data_corrupted', 'a range file has no identity row; run `sundew check`');
    this.rangeId = identity.range_id;
    this.generation = identity.generation;
    this.firstSequence = identity.first_sequence;
    this.#statements = prepare(database);
    this.state = readState(database, this.firstSequence);
    this.#savedSequence = this.state.nextSequence;
  }

  /** Bytes of bodies written since the last call; for keeping the log. */
  takeWrittenBytes(): number {
    const bytes = this.#writtenBytes;
    this.#writtenBytes = 0;
    return bytes;
  }

  get inTransaction(): boolean {
    return this.#stateAtBegin !== undefined;
  }

  snapshot(): RangeSnapshot {
    const { documents, bytes, nextSequence, entryIndex } = this.state;
    const { rangeId, generation, firstSequence } = this;
    return { rangeId, generation, firstSequence, documents, bytes, head: nextSequence - 1, entryIndex };
  }

  begin(): void {
    this.#statements.begin.run();
    this.#stateAtBegin = { ...this.state };
  }

  /** Durable when it returns. A failure leaves the transaction undone, unless the disk is at fault. */
  commit(): void {
    const { state } = this;
    if (state.nextSequence > this.#savedSequence) {
      this.#statements.saveState.run(
        state.documents,
        state.bytes,
        state.nextOrdinal,
        state.entryIndex,
        state.transactionId,
        state.nextSequence - 1,
      );
    }
    this.#statements.commit.run();
    this.#savedSequence = state.nextSequence;
    this.#stateAtBegin = undefined;
  }

  rollback(): void {
    if (this.#stateAtBegin) this.state = this.#stateAtBegin;
    this.#stateAtBegin = undefined;
    // SQLite has undone the transaction itself after some failures.
    if (this.#database.inTransaction) this.#statements.rollback.run();
  }

  /** Runs `body` so that its failure undoes only what it did. */
  nested<Result>(body: () => Result): Result {
    const before = { ...this.state };
    this.#statements.savepoint.run();
    try {
      const result = body();
      this.#statements.release.run();
      return result;
    } catch (error) {
      if (this.#database.inTransaction) {
        this.#statements.rollbackToSavepoint.run();
        this.#statements.release.run();
      }
      this.state = before;
      throw error;
    }
  }

  find(key: Uint8Array): RowHead | undefined {
    return (this.#statements.find.get(key) as RowHead | null) ?? undefined;
  }

  load(key: Uint8Array): StoredRow | undefined {
    return (this.#statements.load.get(key) as StoredRow | null) ?? undefined;
  }

  /** Rows with keys in (`after`, `to`], in key order. */
  window(after: Uint8Array, to: Uint8Array, rowsMax: number): KeyedRow[] {
    return this.#statements.window.all(after, to, rowsMax) as KeyedRow[];
  }

  /** Upsert. `previous` saves a lookup when the caller has made it already; null says that there is no such row. */
  put(key: Uint8Array, body: Uint8Array, ttlBaseMs: number, crc: number, previous?: RowHead | null): RowPlace {
    const { state } = this;
    const sequence = state.nextSequence;
    this.#writtenBytes += body.byteLength;
    if (previous === undefined || previous === null) {
      const ordinal = state.nextOrdinal;
      if (ordinal > ordinalMax) throw new ServiceError('limit_exceeded', 'the range has used all its 2^32 ordinals');
      const inserted = this.#statements.insert.run(ordinal, key, sequence, ttlBaseMs || null, crc, body);
      if (inserted.changes > 0) {
        this.#statements.change.run(sequence, ordinal, 0, null);
        state.nextOrdinal += 1;
        state.nextSequence += 1;
        state.documents += 1;
        state.bytes += body.byteLength;
        return { ordinal, sequence, isNew: true };
      }
    }
    const existing = previous ?? this.find(key);
    assert(existing, 'a key is refused as known but cannot be found');
    this.#statements.update.run(sequence, ttlBaseMs || null, crc, body, existing.ordinal);
    this.#statements.change.run(sequence, existing.ordinal, 0, existing.sequence);
    state.nextSequence += 1;
    state.bytes += body.byteLength - existing.bodyBytes;
    return { ordinal: existing.ordinal, sequence, isNew: false };
  }

  /** Deletes a row that exists; returns the tombstone's sequence. */
  remove(row: RowHead): number {
    const { state } = this;
    const sequence = state.nextSequence;
    this.#statements.remove.run(row.ordinal);
    this.#statements.change.run(sequence, row.ordinal, 1, row.sequence);
    state.nextSequence += 1;
    state.documents -= 1;
    state.bytes -= row.bodyBytes;
    return sequence;
  }

  /** Applies row images exactly as another evaluation left them, ordinals and sequences included. */
  applyImages(frame: DocumentFrame): void {
    const { state } = this;
    for (let row = 0; row < frame.rowCount; row += 1) {
      const [ordinal, sequence] = [frame.ordinal(row), frame.sequence(row)];
      fits(sequence >= state.nextSequence, 'are older than the range');
      if (frame.kind(row) === rowKind.put) this.#applyPut(frame, row, ordinal, sequence);
      else {
        const held = this.#statements.findOrdinal.get(ordinal) as RowHead | null;
        fits(held, 'delete a document that is not there');
        this.#statements.remove.run(ordinal);
        this.#statements.change.run(sequence, ordinal, 1, held.sequence);
        state.documents -= 1;
        state.bytes -= held.bodyBytes;
      }
      state.nextSequence = sequence + 1;
    }
  }

  #applyPut(frame: DocumentFrame, row: number, ordinal: number, sequence: number): void {
    const { state } = this;
    const body = frame.body(row);
    const [ttlBaseMs, crc] = [frame.ttlBaseMs(row) || null, frame.crc(row)];
    state.bytes += body.byteLength;
    if ((frame.flags(row) & rowOrdinalIsNew) !== 0) {
      const inserted = this.#statements.insert.run(ordinal, frame.keyBytes(row), sequence, ttlBaseMs, crc, body);
      fits(inserted.changes === 1, 'insert a document that is there');
      this.#statements.change.run(sequence, ordinal, 0, null);
      state.documents += 1;
      state.nextOrdinal = ordinal + 1;
      return;
    }
    const held = this.#statements.findOrdinal.get(ordinal) as RowHead | null;
    fits(held, 'update a document that is not there');
    this.#statements.update.run(sequence, ttlBaseMs, crc, body, ordinal);
    this.#statements.change.run(sequence, ordinal, 0, held.sequence);
    state.bytes -= held.bodyBytes;
  }

  /**
   * Forgets tombstones and superseded changes up to `throughSequence`, which every index of the range must have made
   * durable. Works in its own transactions of bounded size; returns the rows removed.
   */
  purge(throughSequence: number, rowsMax: number): PurgeReport {
    return purgeChanges(this.#database, Math.min(throughSequence, this.state.nextSequence - 1), rowsMax);
  }

  /** The sweeper finds what has expired by this index; ranges whose documents live for ever do without it. */
  indexLifetimes(): void {
    this.#database.run(
      'CREATE INDEX IF NOT EXISTS documents_by_lifetime ON documents (ttl_base_ms) WHERE ttl_base_ms IS NOT NULL',
    );
  }

  close(): void {
    for (const statement of Object.values(this.#statements)) statement.finalize();
    this.#database.close();
  }
}

/** Row images of a committed write do not fit when the range has lost what they build on. */
function fits(condition: unknown, fault: string): asserts condition {
  if (!condition)
    throw new ServiceError('data_corrupted', `the row images of a committed write ${fault}; the range is damaged`);
}

function prepare(database: Database) {
  const statement = (sql: string): Statement => database.prepare(sql);
  return {
    begin: statement('BEGIN IMMEDIATE'),
    commit: statement('COMMIT'),
    rollback: statement('ROLLBACK'),
    savepoint: statement('SAVEPOINT request'),
    release: statement('RELEASE request'),
    rollbackToSavepoint: statement('ROLLBACK TO request'),
    find: statement(`SELECT ${rowColumns} FROM documents WHERE key = ?`),
    findOrdinal: statement(`SELECT ${rowColumns} FROM documents WHERE ordinal = ?`),
    load: statement(`SELECT ${rowColumns}, crc, body FROM documents WHERE key = ?`),
    window: statement(
      `SELECT ${rowColumns}, crc, body, key FROM documents WHERE key > ? AND key <= ? ORDER BY key LIMIT ?`,
    ),
    insert: statement(
      'INSERT INTO documents (ordinal, key, sequence, ttl_base_ms, crc, body) VALUES (?, ?, ?, ?, ?, ?) ' +
        'ON CONFLICT (key) DO NOTHING',
    ),
    update: statement('UPDATE documents SET sequence = ?, ttl_base_ms = ?, crc = ?, body = ? WHERE ordinal = ?'),
    remove: statement('DELETE FROM documents WHERE ordinal = ?'),
    change: statement('INSERT INTO changes (sequence, ordinal, deleted, previous) VALUES (?, ?, ?, ?)'),
    saveState: statement(
      'UPDATE changes SET documents = ?, bytes = ?, next_ordinal = ?, entry_index = ?, transaction_id = ? ' +
        'WHERE sequence = ?',
    ),
  };
}

/** The last row of `changes` always carries the counters: nothing removes it before a later one exists. */
function readState(database: Database, firstSequence: number): RangeState {
  const last = database
    .query(
      'SELECT sequence, documents, bytes, next_ordinal, entry_index, transaction_id FROM changes ' +
        'ORDER BY sequence DESC LIMIT 1',
    )
    .get() as Record<string, number | null> | null;
  if (!last) {
    return { documents: 0, bytes: 0, nextOrdinal: 1, nextSequence: firstSequence, entryIndex: 0, transactionId: 0 };
  }
  const column = (name: string): number => {
    const value = last[name];
    if (typeof value === 'number') return value;
    throw new ServiceError('data_corrupted', `a range file has lost its counters (${name}); run \`sundew check\``);
  };
  return {
    documents: column('documents'),
    bytes: column('bytes'),
    nextOrdinal: column('next_ordinal'),
    nextSequence: column('sequence') + 1,
    entryIndex: column('entry_index'),
    transactionId: column('transaction_id'),
  };
}
