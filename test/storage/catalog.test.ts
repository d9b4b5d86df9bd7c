import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { must } from '../../src/lib/assert.ts';
import {
  createTable,
  failure,
  openTestStorage,
  rangeId,
  requestTimeMs,
  temporaryDirectory,
  write,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

test('tables, ranges and indexes are listed as they were created, also after a reopen', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const table = await createTable(storage, 'b', 3);
  await createTable(storage, 'a');
  expect(table.ranges.map(({ startKey, endKey }) => [startKey, endKey])).toEqual([
    ['', 'r1'],
    ['r1', 'r2'],
    ['r2', null],
  ]);
  expect(await failure(createTable(storage, 'b'))).toMatchObject({ code: 'already_exists' });
  const { tableId } = table;
  const { indexes } = await storage.catalog.changeTable({
    tableId,
    record: '{"v":2}',
    addIndexes: [{ name: 'text', config: '{}', state: 'building' }],
    updateIndexes: [{ name: 'text', state: 'ready' }],
  });
  expect(indexes).toMatchObject([{ name: 'text', config: '{}', state: 'ready' }]);
  await storage.close();
  storage = await openTestStorage(directory.path);
  expect(storage.catalog.tables().map(({ name }) => name)).toEqual(['a', 'b']);
  expect(storage.catalog.table('b')).toEqual({ ...table, record: '{"v":2}', indexes });
  expect(storage.catalog.table('c')).toBeUndefined();
  await storage.close();
});

test('a failed change leaves the table as it was; a new index never takes an old incarnation', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const { tableId } = await createTable(storage);
  const index = { name: 'text', config: '{}', state: 'ready' };
  const {
    indexes: [first],
  } = await storage.catalog.changeTable({ tableId, addIndexes: [index] });
  const broken = storage.catalog.changeTable({
    tableId,
    record: '{"v":2}',
    dropIndexes: [{ name: 'text' }, { name: 'missing' }],
  });
  expect(await failure(broken)).toMatchObject({ code: 'index_not_found' });
  expect(storage.catalog.tableById(tableId)).toMatchObject({ record: '{}', indexes: [{ name: 'text' }] });
  const {
    indexes: [second],
  } = await storage.catalog.changeTable({ tableId, dropIndexes: [{ name: 'text' }], addIndexes: [index] });
  expect(must(second, 'no index').incarnation).toBeGreaterThan(must(first, 'no index').incarnation);
  await storage.close();
});

test('an index with vectors takes one of the ids that row ids have room for; when they are used up, others go on', async () => {
  using directory = temporaryDirectory();
  const before = await openTestStorage(directory.path);
  const { tableId } = await createTable(before);
  await before.close();
  const catalog = new Database(join(directory.path, 'catalog.db'));
  catalog.run(`UPDATE tables SET last_part_id = ${2 ** 20 - 2}`);
  catalog.close();
  const storage = await openTestStorage(directory.path);
  const add = async (name: string, shape?: string) =>
    (await storage.catalog.changeTable({ tableId, addIndexes: [{ name, config: '{}', state: 'extra', shape }] }))
      .indexes;
  expect((await add('last', 'dense 3')).map(({ partId }) => partId)).toEqual([2 ** 20 - 1]);
  expect(await failure(add('none', 'dense 3'))).toMatchObject({ code: 'limit_exceeded' });
  expect((await add('text')).map(({ name }) => name)).toEqual(['last', 'text']);
  await storage.close();
});

test('a table created after a drop starts beyond every version of the old one', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const old = await createTable(storage);
  const range = await storage.openRange(rangeId(old));
  await write(storage, rangeId(old), { puts: { a: {}, b: {}, c: {} } });
  const { head } = range.info();
  const place = storage.directory.generationDirectory(rangeId(old), 1);
  await range.close();
  // The clock of the drop stands before the creation: the high-water mark decides.
  await storage.catalog.dropTable(old.tableId, requestTimeMs - 10, new Map());
  expect(existsSync(place)).toBe(false);
  expect(storage.catalog.table('things')).toBeUndefined();
  const next = await createTable(storage);
  expect(must(next.ranges[0], 'no range').firstSequence).toBeGreaterThan(head);
  expect(rangeId(next)).not.toBe(rangeId(old));
  expect(await failure(write(storage, rangeId(old), { puts: { a: {} } }))).toMatchObject({ code: 'table_not_found' });
  await storage.close();
});

test('tables are made, written and dropped under a clock that is centuries ahead, and when it is put right again', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const farMs = Date.UTC(2500, 0, 1);
  for (const createdMs of [farMs, farMs, requestTimeMs]) {
    const ranges = [{ startKey: '', endKey: null }];
    const table = await storage.catalog.createTable({ name: 'things', createdMs, record: '{}', ranges, indexes: [] });
    const range = await storage.openRange(rangeId(table));
    await write(storage, rangeId(table), { puts: { a: {} } });
    // A restore refuses tables whose versions are above.
    expect(range.info().head).toBeLessThan(2 ** 52);
    await range.close();
    await storage.catalog.dropTable(table.tableId, createdMs, new Map());
  }
  await storage.close();
});

test('start-up removes what no catalog row names, and empties tmp', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  await storage.close();
  const stray = [join(directory.path, 'ranges', '77', '1'), join(directory.path, 'ranges', String(id), '9')];
  for (const path of stray) mkdirSync(path, { recursive: true });
  // A crash while a range was made may leave any part of its file.
  for (const [at, content] of ['', 'half a page'].entries()) {
    const made = join(directory.path, 'ranges', String(78 + at), '1');
    mkdirSync(made, { recursive: true });
    writeFileSync(join(made, 'documents.db'), content);
  }
  writeFileSync(join(directory.path, 'tmp', 'half'), 'x');
  storage = await openTestStorage(directory.path);
  expect(storage.start.removed.length).toBe(4);
  for (const path of [...stray, join(directory.path, 'tmp', 'half')]) expect(existsSync(path)).toBe(false);
  await storage.openRange(id);
  await storage.close();
});

test('a range whose file is gone is damage, not an empty range', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const file = storage.directory.documentsFile(id, 1);
  await storage.close();
  await Bun.file(file).delete();
  storage = await openTestStorage(directory.path);
  expect(await failure(storage.openRange(id))).toMatchObject({ code: 'data_corrupted' });
  await storage.close();
});
