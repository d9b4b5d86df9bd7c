import type { Database } from 'bun:sqlite';
import { assert } from '../../lib/assert.ts';
import { type DocumentFrame, rowKind, rowOrdinalIsNew } from '../../lib/document-frame.ts';
import { partIdOfBody } from '../../lib/parts/part-body.ts';
import { cursorKey, failurePrefix } from '../../lib/parts/part-notes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { schemaVersion } from '../connection.ts';
import { BodyPacking } from '../packing/body-packing.ts';
import type { StoredBodies } from '../packing/stored-bodies.ts';
import type { PurgeReport } from '../storage-calls.ts';
import type { RangeId } from '../write-request.ts';
import { purgeChanges } from './change-purge.ts';
import { ColumnValues } from './column-values.ts';
import { PartRows, type StoredPart } from './part-rows.ts';
import { type RangeCounters, readCounters } from './range-counters.ts';
import { imageNote, type RangeSnapshot } from './range-snapshot.ts';
import { prepareStatements } from './range-statements.ts';
import { RequestAnswers } from './request-answers.ts';
import type { KeyedRow, NewDocument, RowHead, RowPlace, StoredRow } from './stored-rows.ts';

/** Ordinals are u32 in frames and indexes. */
const ordinalMax = 0xffff_ffff;

/** The writer's side of one range's `documents.db`: row operations inside a transaction, and the range's counters. */
export class RangeWriter {
  readonly rangeId: RangeId;
  readonly generation: number;
  readonly firstSequence: number;
  readonly ownSince: number;
  readonly answers: RequestAnswers;
  readonly columns: ColumnValues;
  state: RangeCounters;
  readonly #database: Database;
  readonly #hasPart: (partId: number) => boolean;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #parts: PartRows;
  readonly #packing: BodyPacking;
  #savedSequence: number;
  #savedEntry: number;
  #writtenBytes = 0;
  #stateAtBegin: RangeCounters | undefined;

  /** `hasPart`: whether the catalog has something for the range whose parts are stored under this id. */
  constructor(database: Database, hasPart: (partId: number) => boolean) {
    this.#database = database;
    this.answers = new RequestAnswers(database);
    this.columns = new ColumnValues(database);
    this.#hasPart = hasPart;
    const identity = database.query('SELECT range_id, generation, first_sequence FROM range_identity').get() as {
      range_id: number;
      generation: number;
      first_sequence: number;
    } | null;
    if (!identity) throw new ServiceError('data_corrupted', 'a range file has no identity row; run "sundew check"');
    this.rangeId = identity.range_id;
    this.generation = identity.generation;
    this.firstSequence = identity.first_sequence;
    this.ownSince = readOwnSince(database) ?? identity.first_sequence;
    this.#statements = prepareStatements(database);
    this.#parts = new PartRows(database);
    this.#packing = new BodyPacking(database);
    this.state = { ...readCounters(database, this.firstSequence), partIds: this.#parts.partIds() };
    this.#savedSequence = this.state.nextSequence;
    this.#savedEntry = this.state.entryIndex;
  }

  /** Bytes of bodies written since the last call; for keeping the log. */
  takeWrittenBytes(): number {
    const bytes = this.#writtenBytes;
    this.#writtenBytes = 0;
    return bytes;
  }

  /** Frees the memory of pages that are in the file or its log. */
  dropPages(): void {
    this.#database.run('PRAGMA shrink_memory');
  }

  /** Whether bodies are packed from now on; those that are stored stay as they are. */
  set packsBodies(isOn: boolean) {
    this.#packing.isOn = isOn;
  }

  get inTransaction(): boolean {
    return this.#stateAtBegin !== undefined;
  }

  snapshot(): RangeSnapshot {
    const { documents, bytes, nextSequence, entryIndex } = this.state;
    const { rangeId, generation, firstSequence, ownSince } = this;
    return { rangeId, generation, firstSequence, ownSince, documents, bytes, head: nextSequence - 1, entryIndex };
  }

  begin(): void {
    this.#statements.begin.run();
    this.#stateAtBegin = { ...this.state };
    try {
      this.#packing.begun(this.state.bytes, this.state.nextOrdinal);
    } catch (error) {
      this.rollback();
      throw error;
    }
  }

  /** Durable when it returns. A failure leaves the transaction undone, unless the disk is at fault. */
  commit(): void {
    const { state } = this;
    if (state.nextSequence > this.#savedSequence || state.entryIndex > this.#savedEntry) this.#saveState();
    this.#statements.commit.run();
    this.#savedSequence = state.nextSequence;
    this.#savedEntry = state.entryIndex;
    this.#stateAtBegin = undefined;
    this.#packing.committed();
  }

  #saveState(): void {
    const { documents, bytes, nextOrdinal, entryIndex, transactionId, nextSequence } = this.state;
    this.#statements.saveState.run(documents, bytes, nextOrdinal, entryIndex, transactionId, nextSequence - 1);
  }

  /** A small write, to learn whether the file takes any. */
  tryWrite(): void {
    // The page of the version is written although it stays the same.
    this.#database.run(`PRAGMA user_version = ${schemaVersion(this.#database)}`);
  }

  rollback(): void {
    if (this.#stateAtBegin) this.state = this.#stateAtBegin;
    this.#stateAtBegin = undefined;
    this.#packing.rolledBack();
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
    const row = this.#statements.load.get(key) as FoundRow<StoredRow> | null;
    return row ? this.#withBody(row) : undefined;
  }

  /** Rows with keys in (`after`, `to`], in key order. */
  window(after: Uint8Array, to: Uint8Array, rowsMax: number): KeyedRow[] {
    const rows = this.#statements.window.all(after, to, rowsMax) as FoundRow<KeyedRow>[];
    return rows.map((row) => this.#withBody(row));
  }

  #withBody<Row extends StoredRow>(row: FoundRow<Row>): Row {
    return Object.assign(row, { body: this.#packing.bodies.unpacked(row) });
  }

  /** Upsert. `previous` saves a lookup when the caller has made it already; null says that there is no such row. */
  put({ key, body, ttlBaseMs, writtenMs, crc }: NewDocument, previous?: RowHead | null): RowPlace {
    const { state } = this;
    const sequence = state.nextSequence;
    const { stored, rawBytes } = this.#packing.pack(body);
    this.#writtenBytes += stored.byteLength;
    if (previous === undefined || previous === null) {
      const ordinal = state.nextOrdinal;
      if (ordinal > ordinalMax) throw new ServiceError('limit_exceeded', 'the range has used all its 2^32 ordinals');
      const times = [ttlBaseMs || null, writtenMs || null] as const;
      const inserted = this.#statements.insert.run(ordinal, key, sequence, ...times, crc, rawBytes, stored);
      if (inserted.changes > 0) {
        this.#statements.change.run(sequence, ordinal, 0, null, null);
        state.nextOrdinal += 1;
        state.nextSequence += 1;
        state.documents += 1;
        state.bytes += body.byteLength;
        return { ordinal, sequence, isNew: true };
      }
    }
    const existing = previous ?? this.find(key);
    assert(existing, 'a key is refused as known but cannot be found');
    const times = [ttlBaseMs || null, writtenMs || null] as const;
    this.#statements.update.run(sequence, ...times, crc, rawBytes, stored, existing.ordinal);
    this.#statements.change.run(sequence, existing.ordinal, 0, existing.sequence, null);
    state.nextSequence += 1;
    state.bytes += body.byteLength - existing.bodyBytes;
    return { ordinal: existing.ordinal, sequence, isNew: false };
  }

  /**
   * Puts a document under the ordinal that it had in a backup. Fails with `backup_corrupted` when that is another document's
   * here, or the key has another.
   */
  putAt(ordinal: number, document: NewDocument): RowPlace {
    const { key, body, ttlBaseMs, writtenMs, crc } = document;
    const { state } = this;
    const sequence = state.nextSequence;
    const times = [ttlBaseMs || null, writtenMs || null] as const;
    // Nearly all are new, in the order of their ordinals: neither that nor the key is looked for then.
    const isTaken = ordinal === 0 || (this.mayHold(ordinal) && this.findOrdinal(ordinal) !== undefined);
    const { stored, rawBytes } = this.#packing.pack(body);
    const insert = () => this.#statements.insert.run(ordinal, key, sequence, ...times, crc, rawBytes, stored);
    const isNew = !isTaken && insert().changes > 0;
    if (!isNew) {
      const held = this.find(key);
      if (held?.ordinal === ordinal) return this.put(document, held);
      throw new ServiceError(
        'backup_corrupted',
        'the backup has one key under two numbers, or one number for two keys',
      );
    }
    this.#statements.change.run(sequence, ordinal, 0, null, null);
    state.nextOrdinal = Math.max(state.nextOrdinal, ordinal + 1);
    state.nextSequence += 1;
    state.documents += 1;
    state.bytes += body.byteLength;
    this.#writtenBytes += stored.byteLength;
    return { ordinal, sequence, isNew: true };
  }

  /** False: no document has ever had this ordinal here. */
  mayHold(ordinal: number): boolean {
    return ordinal < this.state.nextOrdinal;
  }

  findOrdinal(ordinal: number): RowHead | undefined {
    return (this.#statements.findOrdinal.get(ordinal) as RowHead | null) ?? undefined;
  }

  /** Deletes a row that exists, and its parts; returns the tombstone's sequence. */
  remove(row: RowHead): number {
    const sequence = this.state.nextSequence;
    this.#remove(row, sequence);
    this.state.nextSequence += 1;
    return sequence;
  }

  #remove(row: RowHead, sequence: number): void {
    const { state } = this;
    this.#statements.remove.run(row.ordinal);
    this.#statements.change.run(sequence, row.ordinal, 1, row.sequence, null);
    state.documents -= 1;
    state.bytes -= row.bodyBytes;
    for (const partId of state.partIds) {
      const held = this.#parts.remove(partId, row.ordinal);
      if (held) this.#forgetChange(held.sequence);
      state.bytes -= held?.bodyBytes ?? 0;
    }
  }

  /**
   * A change that no later one will name as superseded. Where a purge has passed already, nothing else removes it; where
   * it has yet to pass, it removes the change as a tombstone, together with what that had superseded itself.
   */
  #forgetChange(sequence: number): void {
    if (this.#statements.forget.run(sequence).changes === 0) this.#statements.bury.run(sequence);
  }

  /**
   * Stores a document's part, given as the body of its row; returns its sequence. Undefined: its definition was dropped
   * while the request was on its way, and nobody would ever remove the part.
   */
  putPart(document: Pick<RowPlace, 'ordinal' | 'isNew'>, body: Uint8Array, crc: number): number | undefined {
    const { nextSequence: sequence, partIds } = this.state;
    const partId = partIdOfBody(body);
    if (!partIds.includes(partId) && !this.#hasPart(partId)) return undefined;
    this.#putPart(document, sequence, body, crc);
    this.state.nextSequence += 1;
    return sequence;
  }

  #putPart({ ordinal, isNew }: Pick<RowPlace, 'ordinal' | 'isNew'>, sequence: number, body: Uint8Array, crc: number) {
    const { state } = this;
    const partId = partIdOfBody(body);
    const isFirst = !state.partIds.includes(partId);
    const held = isFirst || isNew ? undefined : this.#parts.find(partId, ordinal);
    this.#parts.put(partId, ordinal, sequence, crc, body);
    this.#statements.change.run(sequence, ordinal, 0, held?.sequence ?? null, partId);
    if (isFirst) state.partIds = [...state.partIds, partId];
    state.bytes += body.byteLength - (held?.bodyBytes ?? 0);
    this.#writtenBytes += body.byteLength;
  }

  /** Deletes a part; returns the sequence of its deletion, undefined when there is none. */
  removePart(ordinal: number, partId: number): number | undefined {
    const sequence = this.state.nextSequence;
    if (!this.#removePart(ordinal, partId, sequence)) return undefined;
    this.state.nextSequence += 1;
    return sequence;
  }

  #removePart(ordinal: number, partId: number, sequence: number): boolean {
    const { state } = this;
    const held = state.partIds.includes(partId) ? this.#parts.remove(partId, ordinal) : undefined;
    if (!held) return false;
    this.#statements.change.run(sequence, ordinal, 1, held.sequence, partId);
    state.bytes -= held.bodyBytes;
    return true;
  }

  loadPart(ordinal: number, partId: number): StoredPart | undefined {
    return this.state.partIds.includes(partId) ? this.#parts.load(partId, ordinal) : undefined;
  }

  /** Notes something about the server's own work on the range; an empty value removes the note. */
  setNote(key: Uint8Array, value: Uint8Array): void {
    if (value.byteLength === 0) this.#statements.removeNote.run(key);
    else this.#statements.setNote.run(key, value);
    this.#writtenBytes += key.byteLength + value.byteLength;
  }

  /** Forgets some rows of a part whose definition is gone, and the notes on it, in a transaction of its own. */
  dropPart(partId: number, rowsMax: number): { removed: number; done: boolean } {
    this.begin();
    try {
      this.#statements.removeNotes.run(cursorKey(partId), failurePrefix(partId), `${failurePrefix(partId)}\u{10ffff}`);
      const { state } = this;
      const gone = this.#parts.removeSome(partId, rowsMax);
      for (const { sequence, bodyBytes } of gone) {
        state.bytes -= bodyBytes;
        this.#forgetChange(sequence);
      }
      const done = gone.length < rowsMax;
      if (done) state.partIds = state.partIds.filter((id) => id !== partId);
      this.#saveState();
      this.commit();
      return { removed: gone.length, done };
    } catch (error) {
      this.rollback();
      throw error;
    }
  }

  /** Applies row images exactly as another evaluation left them, ordinals and sequences included. */
  applyImages(frame: DocumentFrame): void {
    const { state } = this;
    for (let row = 0; row < frame.rowCount; row += 1) {
      const kind = frame.kind(row);
      if (kind === rowKind.state) {
        this.setNote(frame.keyBytes(row), frame.body(row));
        continue;
      }
      const [ordinal, sequence] = [frame.ordinal(row), frame.sequence(row)];
      fits(sequence >= state.nextSequence, 'are older than the range');
      if (kind === rowKind.put) this.#applyPut(frame, row, ordinal, sequence);
      else if (kind === rowKind.partPut) {
        this.#putPart({ ordinal, isNew: false }, sequence, frame.body(row), frame.crc(row));
      } else if (kind === rowKind.partDelete) {
        // The part may have gone meanwhile, with its definition.
        this.#removePart(ordinal, partIdOfBody(frame.body(row)), sequence);
      } else {
        const held = this.#statements.findOrdinal.get(ordinal) as RowHead | null;
        fits(held, 'delete a document that is not there');
        this.#remove(held, sequence);
      }
      state.nextSequence = sequence + 1;
    }
  }

  #applyPut(frame: DocumentFrame, row: number, ordinal: number, sequence: number): void {
    const { state } = this;
    const body = frame.body(row);
    const times = [frame.ttlBaseMs(row) || null, frame.writtenMs(row) || null] as const;
    const crc = frame.crc(row);
    const { stored, rawBytes } = this.#packing.pack(body);
    state.bytes += body.byteLength;
    if ((frame.flags(row) & rowOrdinalIsNew) !== 0) {
      const inserted = this.#statements.insert.run(
        ordinal,
        frame.keyBytes(row),
        sequence,
        ...times,
        crc,
        rawBytes,
        stored,
      );
      fits(inserted.changes === 1, 'insert a document that is there');
      this.#statements.change.run(sequence, ordinal, 0, null, null);
      state.documents += 1;
      state.nextOrdinal = ordinal + 1;
      return;
    }
    const held = this.#statements.findOrdinal.get(ordinal) as RowHead | null;
    fits(held, 'update a document that is not there');
    this.#statements.update.run(sequence, ...times, crc, rawBytes, stored, ordinal);
    this.#statements.change.run(sequence, ordinal, 0, held.sequence, null);
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
  indexTtlBases(): void {
    this.#database.run(
      'CREATE INDEX IF NOT EXISTS documents_by_lifetime ON documents (ttl_base_ms) WHERE ttl_base_ms IS NOT NULL',
    );
  }

  /** Closes a file that is about to be removed: what it holds need not reach the disk. */
  discard(): void {
    this.#database.run('PRAGMA synchronous = OFF');
    this.close();
  }

  close(): void {
    for (const statement of Object.values(this.#statements)) statement.finalize();
    this.#parts.close();
    this.#packing.close();
    this.#database.close();
  }
}

/** A row as it is in the file. */
type FoundRow<Row extends StoredRow> = Row & Parameters<StoredBodies['unpacked']>[0];

/** Row images of a committed write do not fit when the range has lost what they build on. */
function fits(condition: unknown, fault: string): asserts condition {
  if (!condition)
    throw new ServiceError('data_corrupted', `the row images of a committed write ${fault}; the range is damaged`);
}

function readOwnSince(database: Database): number | undefined {
  const statement = database.prepare('SELECT value FROM range_state WHERE key = ?');
  const note = statement.get(new TextEncoder().encode(imageNote)) as { value: Uint8Array } | null;
  statement.finalize();
  return note ? Number(Buffer.from(note.value).toString()) : undefined;
}
