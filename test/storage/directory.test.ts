import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../src/lib/clock.ts';
import { Health } from '../../src/observability/health.ts';
import { catalogMigrations } from '../../src/storage/catalog/catalog-migrations.ts';
import { withOfflineAccess } from '../../src/storage/catalog/offline-access.ts';
import { DataDirectory } from '../../src/storage/directory/data-directory.ts';
import { DataLock } from '../../src/storage/directory/data-lock.ts';
import { FileLock } from '../../src/storage/directory/file-lock.ts';
import { openStorage } from '../../src/storage/open-storage.ts';
import { rangeMigrations } from '../../src/storage/range/range-migrations.ts';
import { createTable, failure, openTestStorage, rangeId, temporaryDirectory } from './storage-fixture.ts';

setDefaultTimeout(120_000);

const holder = Bun.fileURLToPath(new URL('./lock-holder.ts', import.meta.url));
const reader = Bun.fileURLToPath(new URL('./lock-reader.ts', import.meta.url));

test('a directory belongs to one process, and the kernel gives it back when that dies', async () => {
  using directory = temporaryDirectory();
  const child = Bun.spawn([process.execPath, holder, directory.path], { stdout: 'pipe', stderr: 'inherit' });
  await child.stdout.getReader().read();
  expect(await failure(openTestStorage(directory.path))).toMatchObject({
    problem: 'locked',
    message: `${directory.path} is in use by process ${child.pid}`,
  });
  child.kill('SIGKILL');
  await child.exited;
  // The pid file is stale now; it decides nothing.
  expect(readFileSync(join(directory.path, 'LOCK.pid'), 'utf8').trim()).toBe(String(child.pid));
  const lock = DataLock.acquire(new DataDirectory(directory.path));
  lock.release();
});

test('of processes that begin to take a directory at one moment, one has it when the others have gone back', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'LOCK');
  const child = Bun.spawn([process.execPath, reader, path], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' });
  await child.stdout.getReader().read();
  child.stdin.write('go back\n');
  await child.stdin.flush();
  using lock = FileLock.acquire(path) as FileLock;
  expect(lock).toBeInstanceOf(FileLock);
  child.kill();
});

test('a directory that cannot be written is refused with what to do', () => {
  // Nobody makes a file there, whatever the user.
  const acquire = () => DataLock.acquire(new DataDirectory('/proc'));
  expect(acquire).toThrow(
    expect.objectContaining({ problem: 'not_writable', message: '/proc cannot be written', hint: expect.any(String) }),
  );
});

test.each(['a file', 'a place below a file', 'a place where nobody makes anything'])(
  '%s is refused as a data directory, with what to do',
  async (place) => {
    using directory = temporaryDirectory();
    const file = join(directory.path, 'file');
    writeFileSync(file, 'text');
    const path = place === 'a file' ? file : place === 'a place below a file' ? join(file, 'data') : '/proc/data';
    await expect(openStorage({ directory: path, clock: systemClock, onFatal: () => undefined })).rejects.toThrow(
      expect.objectContaining({
        problem: 'not_writable',
        message: expect.stringContaining(`${path} cannot be made: `),
        hint: expect.any(String),
      }),
    );
    expect(readFileSync(file, 'utf8')).toBe('text');
  },
);

test('a catalog that this user may not write is refused by the start, with what to do', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'data');
  await (await openTestStorage(path)).close();
  const catalog = join(path, 'catalog.db');
  rmSync(catalog);
  // Nobody opens a directory for writing, whatever the user.
  mkdirSync(catalog);
  expect(await failure(openTestStorage(path))).toMatchObject({
    problem: 'not_writable',
    message: expect.stringContaining(`${catalog} cannot be written: `),
    hint: expect.stringContaining('give this user the right'),
  });
});

test.if(process.geteuid?.() === 0)(
  'root leaves what it makes in a directory of another user to that user',
  async () => {
    using directory = temporaryDirectory();
    using elsewhere = temporaryDirectory();
    const { path } = directory;
    await (await openTestStorage(path)).close();
    const other = 65_534;
    for (const name of ['', ...readdirSync(path)]) chownSync(join(path, name), other, other);
    const system = join(elsewhere.path, 'system');
    for (const name of ['system', 'linked']) writeFileSync(join(elsewhere.path, name), 'of root');
    const storage = await openTestStorage(path);
    await createTable(storage, 'made');
    linkSync(system, join(path, 'tmp/hard'));
    symlinkSync(join(elsewhere.path, 'linked'), join(path, 'tmp/soft'));
    await storage.close();
    const owners = readdirSync(path, { recursive: true, withFileTypes: true }).map((entry) => ({
      name: entry.name,
      uid: lstatSync(join(entry.parentPath, entry.name)).uid,
    }));
    expect(
      owners
        .filter(({ uid }) => uid !== other)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['hard', 'soft']);
    expect(owners.map(({ name }) => name)).toContain('documents.db');
    expect(['system', 'linked'].map((name) => statSync(join(elsewhere.path, name)).uid)).toEqual([0, 0]);
  },
);

test('a path that is too long for the files inside is refused before anything is made, also behind a link', async () => {
  using directory = temporaryDirectory();
  const below = (bytes: number) => join(directory.path, ...Array.from({ length: 5 }, () => 'd'.repeat(bytes)));
  const [long, link] = [below(100), join(directory.path, 'link')];
  const refused = { problem: 'too_long', hint: 'give a directory with a shorter path, with --data-dir' };
  expect(await failure(openTestStorage(long))).toMatchObject(refused);
  expect(existsSync(join(long, '..', '..', '..', '..'))).toBe(false);
  mkdirSync(long, { recursive: true });
  symlinkSync(long, link);
  expect(await failure(openTestStorage(link))).toMatchObject(refused);
  const longest = below(60);
  const storage = await openTestStorage(longest);
  await createTable(storage);
  await storage.close();
});

test("a directory that is made is its owner's alone, and one that was there keeps its mode", async () => {
  using directory = temporaryDirectory();
  const [made, given] = ['made', 'given'].map((name) => join(directory.path, name)) as [string, string];
  mkdirSync(given);
  chmodSync(given, 0o750);
  for (const [path, mode] of [
    [made, 0o700],
    [given, 0o750],
  ] as const) {
    await (await openTestStorage(path)).close();
    expect(statSync(path).mode & 0o777).toBe(mode);
  }
});

test('a directory of a later release is refused, and nothing in it is touched', async () => {
  using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'format.json'), '{"format":1000}\n');
  expect(await failure(openTestStorage(directory.path))).toMatchObject({ problem: 'newer_format' });
  expect(readdirSync(directory.path)).toEqual(['format.json']);
});

test.each([
  ['a start', async (path: string) => (await openTestStorage(path)).close()],
  ['an offline command', (path: string) => withOfflineAccess(path, () => Promise.resolve())],
])(
  '%s raises the format of an older directory, so that older releases refuse it, before it looks at a file',
  async (_, open) => {
    using directory = temporaryDirectory();
    const format = join(directory.path, 'format.json');
    await (await openTestStorage(directory.path)).close();
    const current = readFileSync(format, 'utf8');
    // The steps of the catalog and of ranges, each of which an older release may not know.
    expect(JSON.parse(current)).toEqual({ format: catalogMigrations.length + rangeMigrations.length });
    writeFileSync(format, '{"format":1}\n');
    const catalog = new Database(join(directory.path, 'catalog.db'));
    const stepOf = () => catalog.query('PRAGMA user_version').get();
    catalog.run('PRAGMA user_version = 1000');
    expect(await failure(open(directory.path))).toMatchObject({
      problem: 'newer_format',
      hint: 'start the release that wrote this directory, or a later one',
    });
    expect([readFileSync(format, 'utf8'), stepOf()]).toEqual([current, { user_version: 1000 }]);
    catalog.run(`PRAGMA user_version = ${catalogMigrations.length}`);
    catalog.close();
    await open(directory.path);
    expect(readFileSync(format, 'utf8')).toBe(current);
  },
);

test('a range of a later release is told as one by its reads, not served, and left as it is', async () => {
  using directory = temporaryDirectory();
  const before = await openTestStorage(directory.path);
  const id = rangeId(await createTable(before));
  const path = before.directory.documentsFile(id, 1);
  await before.close();
  const range = new Database(path);
  range.run('PRAGMA user_version = 1000');
  range.close();
  const health = new Health();
  const storage = await openStorage({ directory: directory.path, clock: systemClock, onFatal() {}, health });
  expect(await failure(storage.openRange(id))).toMatchObject({
    code: 'data_corrupted',
    message: 'a data file was written by a later release: start that release, or a later one',
    details: { range_id: id },
  });
  expect(health.faults()).toMatchObject([
    {
      rangeId: id,
      message: 'the file of its documents was written by a later release: start that release, or a later one',
    },
  ]);
  await storage.close();
});

test('an unreadable format is refused', async () => {
  using directory = temporaryDirectory();
  for (const text of ['', '{', '{}', 'null', '{"format":"1"}']) {
    writeFileSync(join(directory.path, 'format.json'), text);
    expect(await failure(openTestStorage(directory.path))).toMatchObject({ problem: 'damaged' });
  }
});

test('a directory without its catalog is refused, and its ranges stay', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const file = storage.directory.documentsFile(id, 1);
  await storage.close();
  rmSync(join(directory.path, 'catalog.db'));
  expect(await failure(openTestStorage(directory.path))).toMatchObject({ problem: 'damaged' });
  expect(existsSync(file)).toBe(true);
});

test('where no directory may be made, one that is missing or empty is refused and left as it is', async () => {
  using place = temporaryDirectory();
  const path = join(place.path, 'data');
  const open = () => openStorage({ directory: path, creates: false, clock: systemClock, onFatal() {} });
  expect(await failure(open())).toMatchObject({ problem: 'missing', message: expect.stringContaining(path) });
  expect(existsSync(path)).toBe(false);
  mkdirSync(path);
  expect(await failure(open())).toMatchObject({ problem: 'missing' });
  expect(readdirSync(path)).toEqual([]);
  await (await openTestStorage(path)).close();
  await (await open()).close();
});
