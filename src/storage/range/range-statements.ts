import type { Database, Statement } from 'bun:sqlite';

const rowColumns =
  'ordinal, sequence, coalesce(ttl_base_ms, 0) AS ttlBaseMs, coalesce(raw_bytes, length(body)) AS bodyBytes';

const storedColumns = `${rowColumns}, coalesce(written_ms, 0) AS writtenMs, crc, raw_bytes AS rawBytes, body`;

/** The statements of `RangeWriter` on a range's `documents.db`; whoever prepares the statements finalizes them. */
export function prepareStatements(database: Database) {
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
    load: statement(`SELECT ${storedColumns} FROM documents WHERE key = ?`),
    window: statement(`SELECT ${storedColumns}, key FROM documents WHERE key > ? AND key <= ? ORDER BY key LIMIT ?`),
    insert: statement(
      'INSERT INTO documents (ordinal, key, sequence, ttl_base_ms, written_ms, crc, raw_bytes, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ' +
        'ON CONFLICT (key) DO NOTHING',
    ),
    update: statement(
      'UPDATE documents SET sequence = ?, ttl_base_ms = ?, written_ms = ?, crc = ?, raw_bytes = ?, body = ? WHERE ordinal = ?',
    ),
    remove: statement('DELETE FROM documents WHERE ordinal = ?'),
    change: statement('INSERT INTO changes (sequence, ordinal, deleted, previous, part_id) VALUES (?, ?, ?, ?, ?)'),
    forget: statement(
      'DELETE FROM changes WHERE sequence = ? AND sequence <= (SELECT purged_through FROM range_identity)',
    ),
    bury: statement('UPDATE changes SET deleted = 1 WHERE sequence = ?'),
    setNote: statement('INSERT OR REPLACE INTO range_state (key, value) VALUES (?, ?)'),
    removeNote: statement('DELETE FROM range_state WHERE key = ?'),
    removeNotes: statement(
      'DELETE FROM range_state WHERE key = CAST(?1 AS BLOB) OR key BETWEEN CAST(?2 AS BLOB) AND CAST(?3 AS BLOB)',
    ),
    saveState: statement(
      'UPDATE changes SET documents = ?, bytes = ?, next_ordinal = ?, entry_index = ?, transaction_id = ? ' +
        'WHERE sequence = ?',
    ),
  };
}
