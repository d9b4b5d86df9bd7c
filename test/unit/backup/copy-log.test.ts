import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { copyLog } from '../../../src/backup/image/copy-log.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const rows = 2_000;

test('a copy of a database and its log is one instant, also where the log begins again under the copy', async () => {
  using folder = new TemporaryDirectory();
  const [path, copied] = [join(folder.path, 'documents.db'), join(folder.path, 'copy.db')];
  using database = new Database(path);
  database.run('PRAGMA journal_mode = WAL');
  database.run('PRAGMA wal_autocheckpoint = 0');
  database.run('CREATE TABLE t (n INTEGER PRIMARY KEY, generation INTEGER, text TEXT)');
  const fill = database.query(
    `WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ${rows})
      INSERT OR REPLACE INTO t SELECT n, ?1, hex(zeroblob(100)) FROM count`,
  );
  const write = (...generations: number[]) => {
    for (const generation of generations) fill.run(generation);
  };
  write(1, 2);
  database.run('PRAGMA wal_checkpoint(PASSIVE)');
  using reader = new Database(path, { readonly: true });
  reader.run('BEGIN');
  // All of the log is in the file: this reader does not keep it from beginning again.
  reader.query('SELECT count(*) FROM t').get();
  await copyFile(path, copied);
  let copies = 0;
  await copyLog(`${path}-wal`, `${copied}-wal`, async (from, to) => {
    copies += 1;
    if (copies > 1) return copyFile(from, to);
    const early = readFileSync(from);
    write(3, 4);
    const late = readFileSync(from);
    // Generation 1 was copied in time, and the beginning of 2.
    const cut = Math.floor(early.byteLength * 0.75);
    writeFileSync(to, Buffer.concat([early.subarray(0, cut), late.subarray(cut)]));
  });
  using copy = new Database(copied);
  expect(copy.query('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  expect(copy.query('SELECT generation, count(*) AS count FROM t GROUP BY generation').all()).toEqual([
    { generation: 4, count: rows },
  ]);
  expect(copies).toBe(2);
});
