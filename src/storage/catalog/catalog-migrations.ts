import type { Migration } from '../connection.ts';

/** Schema of the node's `catalog.db`. Tables of later parts come with their own steps. */
export const catalogMigrations: readonly Migration[] = [
  (database) => {
    database.run(`CREATE TABLE tables (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      created_ms INTEGER NOT NULL,
      record TEXT NOT NULL
    ) STRICT`);
    database.run(`CREATE TABLE ranges (
      id INTEGER PRIMARY KEY,
      table_id INTEGER NOT NULL REFERENCES tables (id),
      start_key TEXT NOT NULL,
      end_key TEXT,
      generation INTEGER NOT NULL,
      first_sequence INTEGER NOT NULL
    ) STRICT`);
    database.run('CREATE INDEX ranges_of_table ON ranges (table_id)');
    database.run(`CREATE TABLE indexes (
      table_id INTEGER NOT NULL REFERENCES tables (id),
      name TEXT NOT NULL,
      incarnation INTEGER NOT NULL,
      config TEXT NOT NULL,
      state TEXT NOT NULL,
      PRIMARY KEY (table_id, name)
    ) STRICT, WITHOUT ROWID`);
    // table_id, range_id, incarnation, transaction_id: the last one given. sequence: high-water mark of dropped ranges.
    database.run('CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID');
    database.run(`CREATE TABLE redo (
      transaction_id INTEGER PRIMARY KEY,
      payload BLOB NOT NULL
    ) STRICT`);
  },
  (database) => {
    // The facts of a range at its last closing; they count while the range's file has the same stamp.
    database.run(`CREATE TABLE range_facts (
      range_id INTEGER PRIMARY KEY,
      stamp TEXT NOT NULL,
      facts TEXT NOT NULL
    ) STRICT`);
  },
  (database) => {
    // How far each range has acknowledged writes, as far as it is known here: a range that ends before has lost some.
    database.run(`CREATE TABLE range_heads (
      range_id INTEGER PRIMARY KEY,
      head INTEGER NOT NULL
    ) STRICT`);
  },
  (database) => {
    // The id that the vectors of an index are stored under: its incarnation, or that of an earlier index whose vectors it found.
    database.run('ALTER TABLE indexes ADD COLUMN part_id INTEGER NOT NULL DEFAULT 0');
    database.run('UPDATE indexes SET part_id = incarnation');
    // Vectors that were kept when their index was dropped, for the next one of this name and shape.
    database.run(`CREATE TABLE kept_parts (
      table_id INTEGER NOT NULL REFERENCES tables (id),
      name TEXT NOT NULL,
      shape TEXT NOT NULL,
      part_id INTEGER NOT NULL,
      PRIMARY KEY (table_id, name, shape)
    ) STRICT, WITHOUT ROWID`);
  },
  (database) => {
    // `staged`: made by a restore, and not to be seen yet.
    database.run("ALTER TABLE tables ADD COLUMN state TEXT NOT NULL DEFAULT 'live'");
    // Work that outlives its request and the process. state: JSON of its kind. expires_ms: set when it has ended.
    database.run(`CREATE TABLE jobs (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      principal TEXT NOT NULL,
      idempotency_key TEXT,
      request_hash TEXT NOT NULL,
      attempt INTEGER NOT NULL,
      phase TEXT NOT NULL,
      state TEXT NOT NULL,
      created_ms INTEGER NOT NULL,
      updated_ms INTEGER NOT NULL,
      expires_ms INTEGER,
      UNIQUE (principal, kind, idempotency_key)
    ) STRICT`);
  },
  (database) => {
    // Grants. A subject is a user's name, `role:NAME` or `group:NAME`. Secrets of keys are kept as digests only.
    database.run(`CREATE TABLE principals (
      name TEXT PRIMARY KEY,
      password_hash TEXT,
      metadata TEXT NOT NULL,
      created_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID`);
    database.run(`CREATE TABLE grants (
      subject TEXT NOT NULL,
      resource_type TEXT NOT NULL,
      resource TEXT NOT NULL,
      level TEXT NOT NULL,
      PRIMARY KEY (subject, resource_type, resource, level)
    ) STRICT, WITHOUT ROWID`);
    database.run(`CREATE TABLE memberships (
      user_name TEXT NOT NULL,
      subject TEXT NOT NULL,
      PRIMARY KEY (user_name, subject)
    ) STRICT, WITHOUT ROWID`);
    // permissions: JSON, null for all that the user has. row_filter: JSON by table. expires_ms: null for never.
    database.run(`CREATE TABLE api_keys (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      user_name TEXT NOT NULL,
      secret_sha256 BLOB NOT NULL,
      permissions TEXT,
      row_filter TEXT,
      created_ms INTEGER NOT NULL,
      expires_ms INTEGER
    ) STRICT, WITHOUT ROWID`);
    database.run(`CREATE TABLE row_filters (
      subject TEXT NOT NULL,
      table_name TEXT NOT NULL,
      filter TEXT NOT NULL,
      PRIMARY KEY (subject, table_name)
    ) STRICT, WITHOUT ROWID`);
  },
  (database) => {
    // Part ids are given by each table. One of an earlier format goes on after all that its directory has given.
    database.run('ALTER TABLE tables ADD COLUMN last_part_id INTEGER NOT NULL DEFAULT 0');
    database.run(
      "UPDATE tables SET last_part_id = coalesce((SELECT value FROM counters WHERE name = 'incarnation'), 0)",
    );
    // The enrichments of a table. config: JSON. replaced_by: the part of the enrichment that takes the
    // place of this one as soon as it is complete.
    database.run(`CREATE TABLE enrichments (
      table_id INTEGER NOT NULL REFERENCES tables (id),
      part_id INTEGER NOT NULL,
      name TEXT NOT NULL,
      config TEXT NOT NULL,
      state TEXT NOT NULL,
      replaced_by INTEGER,
      PRIMARY KEY (table_id, part_id)
    ) STRICT, WITHOUT ROWID`);
    database.run('CREATE UNIQUE INDEX enrichments_by_name ON enrichments (table_id, name) WHERE replaced_by IS NULL');
  },
];
