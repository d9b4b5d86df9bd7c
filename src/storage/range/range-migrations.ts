import type { Migration } from '../connection.ts';

/**
 * Schema of a range's `documents.db`. A durable write of one document is mostly the pages that it dirties, so the
 * schema keeps them few: an insert touches one leaf each of `documents`, of its key index and of `changes`; an update
 * touches two, because the superseded row of `changes` stays until a purge. Counters need no page of their own: they
 * ride on the last row of `changes` of each transaction, which by its nature is the row of greatest sequence.
 */
export const rangeMigrations: readonly Migration[] = [
  (database) => {
    // Keys and bodies are UTF-8 bytes, and BLOBs compare bytewise: the order of keys that the interface promises.
    database.run(`CREATE TABLE documents (
      ordinal INTEGER PRIMARY KEY,
      key BLOB NOT NULL UNIQUE,
      sequence INTEGER NOT NULL,
      ttl_base_ms INTEGER,
      crc INTEGER NOT NULL,
      body BLOB NOT NULL
    ) STRICT`);
    // The change feed. deleted: 1 for a tombstone. previous: the sequence that this change superseded, if any.
    // The columns after it are set on the last row of each transaction only.
    database.run(`CREATE TABLE changes (
      sequence INTEGER PRIMARY KEY,
      ordinal INTEGER NOT NULL,
      deleted INTEGER NOT NULL,
      previous INTEGER,
      documents INTEGER,
      bytes INTEGER,
      next_ordinal INTEGER,
      entry_index INTEGER,
      transaction_id INTEGER
    ) STRICT`);
    database.run(`CREATE TABLE range_identity (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      range_id INTEGER NOT NULL,
      generation INTEGER NOT NULL,
      first_sequence INTEGER NOT NULL,
      purged_through INTEGER NOT NULL
    ) STRICT`);
  },
  (database) => {
    // Vectors as given. id: index id times 2^32 plus the document's ordinal, so that those of one index lie together.
    database.run(`CREATE TABLE vectors (
      id INTEGER PRIMARY KEY,
      sequence INTEGER NOT NULL,
      crc INTEGER NOT NULL,
      body BLOB NOT NULL
    ) STRICT`);
    // Of a change to a vector; null where it is the document's.
    database.run('ALTER TABLE changes ADD COLUMN index_id INTEGER');
  },
  (database) => {
    // The answers of keyed requests, so that a repetition is answered and not applied again.
    database.run(`CREATE TABLE request_answers (
      id INTEGER PRIMARY KEY,
      client TEXT NOT NULL,
      request_id TEXT NOT NULL,
      body_hash BLOB NOT NULL,
      created_ms INTEGER NOT NULL,
      answer TEXT NOT NULL,
      UNIQUE (client, request_id)
    ) STRICT`);
  },
  (database) => {
    // Whatever belongs to a document beside it, a vector for one, is a part of it, by part id.
    database.run('ALTER TABLE vectors RENAME TO parts');
    database.run('ALTER TABLE changes RENAME COLUMN index_id TO part_id');
    // The server's notes about its own work on the range: not in the change feed, of no document.
    database.run('CREATE TABLE range_state (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID');
  },
  (database) => {
    // When the document was written; null where its body says so itself, in the member `_timestamp`.
    database.run('ALTER TABLE documents ADD COLUMN written_ms INTEGER');
  },
  (database) => {
    // Of the body that is packed in the column; null where it is not packed. The checksum is that of the body as it was written.
    database.run('ALTER TABLE documents ADD COLUMN raw_bytes INTEGER');
    // Packed bodies are read with these, in the form of packing/token-dictionary.ts.
    database.run(
      'CREATE TABLE dictionaries (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, tokens BLOB NOT NULL) STRICT',
    );
  },
];
