import type { Database } from 'bun:sqlite';
import type { PurgeReport } from '../storage-calls.ts';

/** The note of the last deletion that the feed has forgotten, a sequence in decimals. */
const deletionsNote = Buffer.from('purged-deletions');

/**
 * Removes tombstones and what later changes superseded, looking at `rowsMax` changes after those of the last purge, in
 * one transaction. Each change names the one before it, so no row is looked at twice.
 */
export function purgeChanges(database: Database, throughSequence: number, rowsMax: number): PurgeReport {
  return database
    .transaction(() => {
      const { purged } = database.query('SELECT purged_through AS purged FROM range_identity').get() as {
        purged: number;
      };
      const rows = database
        .query(
          'SELECT sequence, deleted, previous FROM changes WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?',
        )
        .all(purged, throughSequence, rowsMax) as { sequence: number; deleted: number; previous: number | null }[];
      const { head } = database.query('SELECT max(sequence) AS head FROM changes').get() as { head: number | null };
      const forget = database.prepare('DELETE FROM changes WHERE sequence = ?');
      const noted = deletionsForgottenThrough(database);
      // Of purges before there was a note, any may have been of deletions.
      let deletions = noted ?? purged;
      let removed = 0;
      let through = purged;
      for (const row of rows) {
        // The last row carries the counters; it is looked at again when a later one has taken them over.
        if (row.sequence === head) break;
        if (row.previous !== null) removed += forget.run(row.previous).changes;
        if (row.deleted === 1) {
          removed += forget.run(row.sequence).changes;
          deletions = row.sequence;
        }
        through = row.sequence;
      }
      forget.finalize();
      if (through > purged) database.run('UPDATE range_identity SET purged_through = ?', [through]);
      if (through > purged && deletions !== noted) noteDeletions(database, deletions);
      return { removed, done: rows.length < rowsMax };
    })
    .immediate();
}

/** The sequence up to which the feed has forgotten deletions; undefined where no purge has noted it. */
export function deletionsForgottenThrough(database: Database): number | undefined {
  const row = database.query('SELECT value FROM range_state WHERE key = ?').get(deletionsNote) as {
    value: Uint8Array;
  } | null;
  return row ? Number(Buffer.from(row.value).toString()) : undefined;
}

function noteDeletions(database: Database, through: number): void {
  const value = Buffer.from(String(through));
  database.run('INSERT OR REPLACE INTO range_state (key, value) VALUES (?, ?)', [deletionsNote, value]);
}
