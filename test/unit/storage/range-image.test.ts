import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { writeNewRangeFile } from '../../../src/storage/range/new-range-file.ts';
import { adoptImage } from '../../../src/storage/range/range-image.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const owner = { rangeId: 9, generation: 1, aboveSequence: 5_000 };

function rangeFile(folder: TemporaryDirectory, ...statements: string[]): string {
  const path = join(folder.path, 'documents.db');
  writeNewRangeFile(path, 3, 1, 1_000);
  const database = new Database(path, { strict: true });
  for (const statement of statements) database.run(statement);
  database.close();
  return path;
}

const insert =
  "INSERT INTO documents (ordinal, key, sequence, crc, body) VALUES (1, x'61', 1000, 0, x'7b7d');" +
  'INSERT INTO changes VALUES (1000, 1, 0, NULL, 1, 2, 2, 7, 42, NULL)';

test('a copied range keeps its documents, goes on above the mark, and forgets requests and transactions', () => {
  using folder = new TemporaryDirectory();
  const answer = "INSERT INTO request_answers VALUES (1, 'c', 'r', x'00', 0, '{}')";
  const column = 'CREATE INDEX "column_n" ON documents (length(body))';
  const path = rangeFile(folder, ...insert.split(';'), answer, column);
  adoptImage(path, owner);
  using database = new Database(path, { readonly: true, strict: true });
  const all = (sql: string) => database.query(sql).values();
  expect(all('SELECT range_id, generation, first_sequence FROM range_identity')).toEqual([[9, 1, 1_000]]);
  expect(all('SELECT ordinal, sequence FROM documents')).toEqual([[1, 5_001]]);
  expect(
    all('SELECT sequence, previous, documents, next_ordinal, transaction_id FROM changes ORDER BY sequence'),
  ).toEqual([
    [1_000, null, 1, 2, 42],
    [5_001, 1_000, 1, 2, 0],
  ]);
  expect(all('SELECT * FROM request_answers')).toEqual([]);
  expect(all("SELECT name FROM sqlite_schema WHERE name = 'column_n'")).toEqual([]);
});

test.each([
  ['a trigger', 'CREATE TRIGGER t AFTER UPDATE ON documents BEGIN DELETE FROM documents; END'],
  ['a view', 'CREATE VIEW v AS SELECT * FROM documents'],
  ['a table of its own', 'CREATE TABLE more (n)'],
  ['a lost table', 'DROP TABLE parts'],
  ['another column', 'ALTER TABLE documents ADD COLUMN more TEXT'],
  ['versions above the mark', 'INSERT INTO changes VALUES (9000, 1, 1, NULL, 0, 0, 2, 7, 42, NULL)'],
  ['a later format', 'PRAGMA user_version = 99'],
])('a copied range with %s is refused', (_, statement) => {
  using folder = new TemporaryDirectory();
  expect(() => adoptImage(rangeFile(folder, statement), owner)).toThrow(
    expect.objectContaining({ code: 'backup_corrupted' }),
  );
});
