import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkRangeFile } from '../../src/storage/check/range-check.ts';
import { inspectWal } from '../../src/storage/wal/wal-inspection.ts';
import { createTable, documentOf, failure, openTestStorage, rangeId, temporaryDirectory } from './storage-fixture.ts';

setDefaultTimeout(120_000);

const header = 32;
const frame = 24 + 4_096;

/** A log of `transactions` transactions of two or more frames each, and where each one ends. */
function writtenLog(directory: string, transactions: number): { path: string; ends: number[]; bytes: Buffer } {
  const source = join(directory, 'source.db');
  const database = new Database(source, { create: true });
  database.run('PRAGMA journal_mode = WAL');
  database.run('PRAGMA wal_autocheckpoint = 0');
  database.run('CREATE TABLE a (x)');
  database.run('CREATE TABLE b (x)');
  database.run('PRAGMA wal_checkpoint(TRUNCATE)');
  const ends: number[] = [];
  for (let round = 0; round < transactions; round += 1) {
    database.transaction(() => {
      database.run('INSERT INTO a VALUES (?)', [round]);
      database.run('INSERT INTO b VALUES (?)', [round]);
    })();
    ends.push(readFileSync(`${source}-wal`).byteLength);
  }
  const path = join(directory, 'log');
  copyFileSync(`${source}-wal`, path);
  database.close();
  return { path, ends, bytes: readFileSync(path) };
}

function flip(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(at) ^ 0x10, at);
  return copy;
}

describe('the walk over a write-ahead log', () => {
  test('finds nothing in no file, an empty one, and space of zeros', () => {
    using directory = temporaryDirectory();
    const path = join(directory.path, 'log');
    expect(inspectWal(path)).toEqual({ state: 'empty' });
    for (const bytes of [0, 31, header, 10 * frame]) {
      writeFileSync(path, Buffer.alloc(bytes));
      expect(inspectWal(path)).toEqual({ state: 'empty' });
    }
  });

  test('counts whole transactions, with zeros or an older log behind them', () => {
    using directory = temporaryDirectory();
    const { path, bytes } = writtenLog(directory.path, 3);
    expect(inspectWal(path)).toEqual({ state: 'whole', transactions: 3 });
    writeFileSync(path, Buffer.concat([bytes, Buffer.alloc(5 * frame)]));
    expect(inspectWal(path)).toEqual({ state: 'whole', transactions: 3 });
    using other = temporaryDirectory();
    const older = writtenLog(other.path, 3).bytes.subarray(header);
    writeFileSync(path, Buffer.concat([bytes, older]));
    expect(inspectWal(path)).toEqual({ state: 'whole', transactions: 3 });
  });

  test('takes a log cut anywhere as torn, or as whole where a transaction ends', () => {
    using directory = temporaryDirectory();
    const { path, ends, bytes } = writtenLog(directory.path, 3);
    for (let cut = header; cut <= bytes.byteLength; cut += 1_030) {
      writeFileSync(path, bytes.subarray(0, cut));
      const whole = ends.filter((end) => end <= cut).length;
      // A piece of a frame counts, too: SQLite does not look at it, but something was cut off.
      if (cut > (ends[whole - 1] ?? header)) expect(inspectWal(path)).toEqual({ state: 'torn', transactions: whole });
      else expect(inspectWal(path)).toEqual(whole === 0 ? { state: 'empty' } : { state: 'whole', transactions: whole });
    }
  });

  test('knows damage in front of a whole transaction, wherever in a frame it is', () => {
    using directory = temporaryDirectory();
    const { path, ends, bytes } = writtenLog(directory.path, 4);
    const second = ends[0] ?? 0;
    // Page number, commit mark, salt, stored checksum, page.
    for (const offset of [1, 5, 9, 17, 24, 2_000, frame - 1]) {
      for (const place of [second, second + frame]) {
        writeFileSync(path, flip(bytes, place + offset));
        expect(inspectWal(path)).toEqual({ state: 'damaged', damagedAtByte: place });
      }
    }
  });

  test('takes damage in the last transaction as a torn write', () => {
    using directory = temporaryDirectory();
    const { path, ends, bytes } = writtenLog(directory.path, 3);
    writeFileSync(path, flip(bytes, (ends[1] ?? 0) + 100));
    expect(inspectWal(path)).toEqual({ state: 'torn', transactions: 2 });
  });

  test('knows a damaged header in front of transactions', () => {
    using directory = temporaryDirectory();
    const { path, bytes } = writtenLog(directory.path, 3);
    for (const at of [4, 14, 17, 25]) {
      writeFileSync(path, flip(bytes, at));
      expect(inspectWal(path)).toEqual({ state: 'damaged', damagedAtByte: 0 });
    }
  });
});

const child = Bun.fileURLToPath(new URL('./crash-child.ts', import.meta.url));

/** A data directory whose writer was killed, with everything in the log of its one range. */
async function killedDirectory(directory: string): Promise<{ id: number; file: string }> {
  const storage = await openTestStorage(directory);
  const id = rangeId(await createTable(storage, 'things', 1, ['v0']));
  const file = storage.directory.documentsFile(id, 1);
  await storage.close();
  const running = Bun.spawn([process.execPath, child, directory, 'storage.wal-checkpoint:1'], { stdout: 'ignore' });
  await running.exited;
  expect(running.signalCode).toBe('SIGKILL');
  return { id, file };
}

describe('a range whose writer was killed', () => {
  test('loses the torn transaction only, and says so', async () => {
    using directory = temporaryDirectory();
    const { id, file } = await killedDirectory(directory.path);
    const log = readFileSync(`${file}-wal`);
    const found = inspectWal(`${file}-wal`);
    expect(found.state).toBe('whole');
    // The last frame that is not zeros belongs to the last transaction.
    let end = log.byteLength;
    while (log.readUInt8(end - 1) === 0) end -= 1;
    const lastFrame = header + Math.floor((end - header - 1) / frame) * frame;
    truncateSync(`${file}-wal`, lastFrame + 100);
    const storage = await openTestStorage(directory.path);
    const range = await storage.openRange(id);
    expect(range.warnings.length + storage.start.warnings.length).toBe(1);
    expect(documentOf(range.documents.get('-5')?.body)).toEqual({ round: 5 });
    await storage.close();
    expect(checkRangeFile(file).findings).toEqual([]);
  });

  test('with damage in the middle of its log is refused, and its log is left alone', async () => {
    using directory = temporaryDirectory();
    const { id, file } = await killedDirectory(directory.path);
    const log = flip(readFileSync(`${file}-wal`), header + frame + 500);
    writeFileSync(`${file}-wal`, log);
    const storage = await openTestStorage(directory.path);
    expect(await failure(storage.openRange(id))).toMatchObject({ code: 'data_corrupted' });
    const other = await createTable(storage, 'other');
    await storage.openRange(rangeId(other));
    await storage.close();
    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    expect(checkRangeFile(file).findings).toMatchObject([{ problem: 'log' }]);
  });
});
