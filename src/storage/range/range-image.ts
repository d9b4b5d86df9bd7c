import { Database } from 'bun:sqlite';
import { arrivedEdges, leavingEdges } from '../../lib/parts/edges-part.ts';
import { formOfBody, partForm, sourceHashOf } from '../../lib/parts/part-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { openWriter } from '../connection.ts';
import { DataDirectoryError } from '../directory/data-directory-error.ts';
import { translateStorageError } from '../storage-error.ts';
import type { RangeId } from '../write-request.ts';
import { PartRows } from './part-rows.ts';
import { rangeMigrations } from './range-migrations.ts';
import { imageNote } from './range-snapshot.ts';

/** The range that takes over what a copied file holds. */
interface ImageOwner {
  rangeId: RangeId;
  generation: number;
  /** Later changes are above it. */
  aboveSequence: number;
}

/**
 * Makes the copied file of another range the file of this one: documents, parts and changes keep their sequences, so that
 * copied indexes go on with it; one change is repeated above `aboveSequence`. Answers of requests go, and so does the mark
 * of transactions that another catalog has counted. Not durable before it is synced. Throws `backup_corrupted`.
 */
export function adoptImage(path: string, owner: ImageOwner): void {
  let database: Database | undefined;
  try {
    database = openImage(path);
    database.transaction(() => takeOver(database as Database, owner)).immediate();
    database.run('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw isNewer(error) ? newer(error) : (ofTheDisk(error, path) ?? corrupted(error));
  } finally {
    database?.close();
  }
}

/** Nothing of the file runs: a schema with anything but the tables of a range is refused before a row is touched. */
function openImage(path: string): Database {
  const database = openWriter(path, rangeMigrations);
  try {
    database.run('PRAGMA trusted_schema = OFF');
    // It is synced whole before it is put in its place.
    database.run('PRAGMA synchronous = OFF');
    const expected = new Set(schemaOfRanges());
    const found = schemaOf(database);
    const others = found.filter((row) => !expected.has(textOf(row)));
    const hasAll = found.length - others.length === expected.size;
    if (!hasAll || others.some(({ type }) => type !== 'index')) throw corrupted();
    // Those that a table's settings ask for are made again by its first use.
    for (const { name } of others) database.run(`DROP INDEX "${name.replaceAll('"', '""')}"`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

const diskCodes: ReadonlySet<string> = new Set(['insufficient_storage', 'read_only', 'unavailable']);

interface SchemaRow {
  type: string;
  name: string;
  sql: string | null;
}

function schemaOf(database: Database): SchemaRow[] {
  return database.query('SELECT type, name, sql FROM sqlite_schema').all() as SchemaRow[];
}

function textOf({ type, name, sql }: SchemaRow): string {
  return `${type} ${name} ${sql}`;
}

function schemaOfRanges(): string[] {
  const database = new Database(':memory:', { strict: true });
  try {
    for (const migration of rangeMigrations) migration(database);
    return schemaOf(database).map(textOf);
  } finally {
    database.close();
  }
}

interface LastChange {
  sequence: number;
  ordinal: number;
  documents: number;
  bytes: number;
  nextOrdinal: number;
  entryIndex: number;
}

function takeOver(database: Database, { rangeId, generation, aboveSequence }: ImageOwner): void {
  database.run('UPDATE range_identity SET range_id = ?, generation = ?', [rangeId, generation]);
  database.run('DELETE FROM request_answers');
  const sequence = aboveSequence + 1;
  const own = new TextEncoder().encode(String(sequence));
  database.run('INSERT OR REPLACE INTO range_state (key, value) VALUES (?, ?)', [
    new TextEncoder().encode(imageNote),
    own,
  ]);
  const last = database
    .query(
      'SELECT sequence, ordinal, documents, bytes, next_ordinal AS nextOrdinal, entry_index AS entryIndex ' +
        'FROM changes ORDER BY sequence DESC LIMIT 1',
    )
    .get() as LastChange | null;
  if (!last) {
    database.run('UPDATE range_identity SET first_sequence = ?', [sequence]);
    return;
  }
  if (last.sequence >= sequence) throw corrupted();
  const { documents, bytes, nextOrdinal, entryIndex } = last;
  const held = database.query('SELECT ordinal, sequence FROM documents ORDER BY ordinal DESC LIMIT 1').get() as {
    ordinal: number;
    sequence: number;
  } | null;
  // As if the document had been written again; without any, as if the last change had been repeated.
  const place = held ?? { ordinal: last.ordinal, sequence: last.sequence };
  if (held) {
    database.run('UPDATE documents SET sequence = ? WHERE ordinal = ?', [sequence, held.ordinal]);
    moveEdges(database, held, sequence);
  }
  database.run(
    'INSERT INTO changes (sequence, ordinal, deleted, previous, documents, bytes, next_ordinal, entry_index, transaction_id) ' +
      'VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)',
    [sequence, place.ordinal, held ? 0 : 1, place.sequence, documents, bytes, nextOrdinal, entryIndex],
  );
}

/** Edges that were made of a document are those of its new sequence. */
function moveEdges(database: Database, held: { ordinal: number; sequence: number }, sequence: number): void {
  const parts = new PartRows(database);
  for (const partId of parts.partIds()) {
    const part = parts.load(partId, held.ordinal);
    if (!part || formOfBody(part.body) !== partForm.edges || !sourceHashOf(part.body)) continue;
    const leaving = leavingEdges(part.body, { list: part.sequence, document: held.sequence });
    const body = arrivedEdges(leaving, { list: part.sequence, document: sequence });
    parts.put(partId, held.ordinal, part.sequence, Bun.hash.crc32(body), body);
  }
}

/** The error of a disk that takes nothing more, which says nothing of the file. */
function ofTheDisk(error: unknown, path: string): ServiceError | undefined {
  const meant = translateStorageError(error, path);
  const isOfDisk = meant instanceof ServiceError && diskCodes.has(meant.code);
  return isOfDisk ? meant : undefined;
}

function isNewer(error: unknown): error is DataDirectoryError {
  return error instanceof DataDirectoryError && error.problem === 'newer_format';
}

function newer(cause: DataDirectoryError): ServiceError {
  const message = 'the backup has range files of a later release: restore it with that release, or a later one';
  return new ServiceError('backup_corrupted', message, { cause });
}

function corrupted(cause?: unknown): ServiceError {
  return new ServiceError(
    'backup_corrupted',
    'a range file of the backup is not one',
    cause === undefined ? {} : { cause },
  );
}
