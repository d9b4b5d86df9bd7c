import { Database } from 'bun:sqlite';
import { expect, spyOn, test } from 'bun:test';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../src/lib/assert.ts';
import { WalMaintenance } from '../../src/storage/wal/wal-maintenance.ts';
import { createTable, frameOf, group, openTestStorage, rangeId, temporaryDirectory } from './storage-fixture.ts';

const rowBytes = 512 * 1_024;
const timeoutMs = 120_000;

/** A file with one table of blobs, and its maintenance. */
function keptFile(directory: string) {
  const path = join(directory, 'kept.db');
  const { wal, database } = WalMaintenance.open(path, 'a file', [
    (fresh) => fresh.run('CREATE TABLE blobs (bytes BLOB)'),
  ]);
  const insert = database.prepare('INSERT INTO blobs VALUES (?)');
  const log = () => must(database.query('PRAGMA wal_checkpoint(NOOP)').values()[0], 'no answer')[1] as number;
  const write = (bytes = rowBytes) => {
    insert.run(new Uint8Array(bytes));
    wal.wrote(bytes, 1);
    if (wal.isDue) wal.maintain();
  };
  return { path, wal, database, log, write, [Symbol.dispose]: () => database.close() };
}

test(
  'a log gets space ahead, is handed on when it is long, and restarts after the checkpoint',
  () => {
    using directory = temporaryDirectory();
    using kept = keptFile(directory.path);
    let requests = 0;
    kept.wal.onLong = () => {
      requests += 1;
    };
    kept.write(100);
    expect(statSync(`${kept.path}-wal`).size).toBe(256 * 1_024);
    while (requests === 0) kept.write();
    const long = kept.log();
    expect(long * 4_120).toBeGreaterThan(15 * 1_024 * 1_024);
    expect(long * 4_120).toBeLessThan(18 * 1_024 * 1_024);

    // Another connection copies, and the writer goes on meanwhile.
    const copier = new Database(kept.path, { readwrite: true, create: false });
    copier.run('PRAGMA wal_checkpoint(PASSIVE)');
    copier.close();
    kept.write();
    kept.wal.copied(false);
    kept.write();
    expect(kept.log()).toBeLessThan(200);
    expect(requests).toBe(1);
  },
  timeoutMs,
);

test(
  'a log gives back its space ahead, and all of itself that no reader needs, and goes on',
  () => {
    using directory = temporaryDirectory();
    using kept = keptFile(directory.path);
    const bytes = () => statSync(`${kept.path}-wal`).size;
    const rows = (database: Database) => database.query('SELECT count(*) AS n FROM blobs').get();
    for (let n = 0; n < 8; n += 1) kept.write(100);
    expect(bytes()).toBe(256 * 1_024);
    const held = 32 + kept.log() * 4_120;
    expect(kept.wal.cut()).toBe(256 * 1_024 - held);
    expect([bytes(), kept.wal.cut()]).toEqual([held, 0]);
    kept.write(100);
    const reader = new Database(kept.path, { readonly: true });
    reader.run('BEGIN');
    expect(rows(reader)).toEqual({ n: 9 });
    // Frames that a reader uses stay, although they are copied.
    const used = 32 + kept.log() * 4_120;
    expect(kept.wal.empty(Number.POSITIVE_INFINITY)).toBe(0);
    kept.wal.cut();
    expect(bytes()).toBe(used);
    kept.write(100);
    expect(rows(reader)).toEqual({ n: 9 });
    reader.close();
    expect(kept.wal.empty(Number.POSITIVE_INFINITY)).toBeGreaterThan(0);
    expect(bytes()).toBe(0);
    kept.write(100);
    expect(rows(kept.database)).toEqual({ n: 11 });
    // Where the file would grow by more than the disk has room for, the log stays.
    kept.write();
    const long = bytes();
    expect([kept.wal.empty(rowBytes / 2), bytes()]).toEqual([0, long]);
    expect([kept.wal.empty(2 * rowBytes), bytes()]).toEqual([long, 0]);
    // Where the disk has little to spare, no space is kept ahead until a further look.
    kept.database.run('INSERT INTO blobs VALUES (zeroblob(100))');
    const short = bytes();
    kept.wal.wrote(100, 1);
    kept.wal.maintain(256 * 1_024 - 1);
    expect([bytes(), kept.wal.isDue]).toEqual([short, false]);
    kept.write(64 * 4_096);
    expect(bytes()).toBeGreaterThan(64 * 4_120);
    kept.write(100);
    expect(bytes()).toBe(1_024 * 1_024);
  },
  timeoutMs,
);

test('a log into which another connection writes while its end is looked for is not cut', () => {
  using directory = temporaryDirectory();
  using kept = keptFile(directory.path);
  for (let n = 0; n < 8; n += 1) kept.write(100);
  const other = new Database(kept.path, { readwrite: true, create: false });
  const begins = spyOn(kept.database, 'transaction');
  const begin = kept.database.transaction.bind(kept.database);
  begins.mockImplementationOnce(((work: () => unknown) => {
    other.run('INSERT INTO blobs VALUES (zeroblob(5000))');
    return begin(work);
  }) as typeof kept.database.transaction);
  const { size } = statSync(`${kept.path}-wal`);
  expect(kept.wal.cut()).toBe(0);
  expect([begins.mock.calls.length > 0, statSync(`${kept.path}-wal`).size]).toEqual([true, size]);
  expect(kept.wal.cut()).toBe(size - (32 + kept.log() * 4_120));
  other.close();
  const fresh = new Database(kept.path, { readonly: true });
  expect(fresh.query('SELECT count(*) AS n FROM blobs').get()).toEqual({ n: 9 });
  fresh.close();
});

test(
  'after a failed copy the writer asks again when the log has grown, and copies itself when it is overlong',
  () => {
    using directory = temporaryDirectory();
    using kept = keptFile(directory.path);
    const requestsAt: number[] = [];
    kept.wal.onLong = () => requestsAt.push(kept.log());
    while (requestsAt.length === 0) kept.write();
    kept.wal.copied(true);
    while (requestsAt.length === 1) kept.write();
    expect(must(requestsAt[1], 'no second request')).toBeGreaterThan(1.3 * must(requestsAt[0], 'no request'));
    let longest = 0;
    let before = kept.log();
    for (let now = before; now >= before; now = kept.log()) {
      before = now;
      longest = Math.max(longest, now);
      kept.write();
    }
    expect(longest * 4_120).toBeLessThan(67 * 1_024 * 1_024);
  },
  timeoutMs,
);

test(
  'a reader that pins a long log does not hold up writes; when it is gone the log is copied',
  () => {
    using directory = temporaryDirectory();
    using kept = keptFile(directory.path);
    // Nobody copies but the writer itself.
    kept.wal.onLong = () => kept.wal.copied(true);
    kept.write();
    const reader = new Database(kept.path, { readonly: true });
    reader.run('BEGIN');
    const rows = () => (reader.query('SELECT count(*) AS n FROM blobs').get() as { n: number }).n;
    expect(rows()).toBe(1);
    const sleeps = spyOn(Bun, 'sleepSync');
    try {
      while (kept.log() * 4_120 < 100 * 1_024 * 1_024) kept.write();
      expect(sleeps).not.toHaveBeenCalled();
    } finally {
      sleeps.mockRestore();
    }
    expect(rows()).toBe(1);
    reader.run('COMMIT');
    reader.close();
    kept.wal.checkpoint();
    kept.write(100);
    expect(kept.log()).toBeLessThan(200);
  },
  timeoutMs,
);

test(
  'the log of a storage under load stays bounded, and reads see everything',
  async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id);
    const text = 'x'.repeat(200_000);
    const puts = (round: number) =>
      Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`${round}-${n}`, { text }]));
    for (let round = 0; round < 48; round += 2) {
      await Promise.all(
        [round, round + 1].map((each) =>
          storage.append(group([{ rangeId: id, frame: frameOf({ puts: puts(each) }) }])),
        ),
      );
    }
    const file = storage.directory.documentsFile(id, 1);
    expect(statSync(`${file}-wal`).size).toBeLessThan(80 * 1_024 * 1_024);
    expect(range.documents.get('47-9')?.body.byteLength).toBeGreaterThan(text.length);
    await storage.close();
    expect(statSync(file).size).toBeGreaterThan(480 * text.length);
  },
  timeoutMs,
);
