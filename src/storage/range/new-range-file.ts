import { Database } from 'bun:sqlite';
import { migrate, pageBytes } from '../connection.ts';
import { writeSynced } from '../directory/synced-file.ts';
import type { RangeId } from '../write-request.ts';
import { rangeMigrations } from './range-migrations.ts';

/** Where the header of a database file says which journal it is read and written with, and the number that means WAL. */
const [readVersionByte, writeVersionByte, walVersion] = [18, 19, 2];

/**
 * Writes the file of a new, empty range durably. It is made in memory and written with one sync, where SQLite itself takes
 * nine for a new file, its switch to WAL and two transactions.
 */
export function writeNewRangeFile(path: string, rangeId: RangeId, generation: number, firstSequence: number): void {
  writeSynced(path, 'wx', emptyRange(rangeId, generation, firstSequence));
}

export function newRangeFileBytes(): number {
  return emptyRange(1, 1, 1).byteLength;
}

function emptyRange(rangeId: RangeId, generation: number, firstSequence: number): Uint8Array {
  const database = new Database(':memory:', { strict: true });
  try {
    database.run(`PRAGMA page_size = ${pageBytes}`);
    migrate(database, rangeMigrations);
    database.run(
      'INSERT INTO range_identity (id, range_id, generation, first_sequence, purged_through) VALUES (1, ?, ?, ?, 0)',
      [rangeId, generation, firstSequence],
    );
    const bytes = database.serialize();
    bytes[readVersionByte] = walVersion;
    bytes[writeVersionByte] = walVersion;
    return bytes;
  } finally {
    database.close();
  }
}
