import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { must } from '../../src/lib/assert.ts';
import { readFrame } from '../../src/lib/document-frame.ts';
import { withOrdinal } from '../../src/lib/ordinal-bits.ts';
import type { TransformOperation } from '../../src/storage/evaluation/transforms.ts';
import {
  createTable,
  documentOf,
  failure,
  frameOf,
  group,
  openTestStorage,
  rangeId,
  requestTimeMs,
  temporaryDirectory,
  write,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

describe('appending to one range', () => {
  test('puts, deletes and transforms answer with counts and images, and survive a reopen', async () => {
    using directory = temporaryDirectory();
    let storage = await openTestStorage(directory.path);
    const table = await createTable(storage);
    const id = rangeId(table);
    const range = await storage.openRange(id);
    const first = must(table.ranges[0], 'no range').firstSequence;

    const inserted = await write(storage, id, { puts: { b: { n: 1 }, a: { n: 2 } } });
    expect(inserted.counts).toMatchObject({ inserted: 2, updated: 0, deleted: 0 });
    expect(inserted.images).toMatchObject({ firstSequence: first, lastSequence: first + 1 });
    expect(inserted.header).toMatchObject({ format: 1, kind: 'rows', rangeId: id, generation: 1, index: 1 });

    const mixed = await write(storage, id, {
      puts: { a: { n: 3 } },
      deletes: ['missing', 'b'],
      transforms: [
        { key: 'a', operations: [{ op: '$inc', path: 'n', value: 4 }] },
        { key: 'c', operations: [{ op: '$set', path: 'x', value: 1 }], upsert: true },
        { key: 'absent', operations: [{ op: '$set', path: 'x', value: 1 }] },
      ],
    });
    expect(mixed.counts).toMatchObject({ inserted: 0, updated: 1, deleted: 1, transformed: 2 });
    const images = readFrame(must(mixed.images, 'no images').frame);
    expect(
      Array.from({ length: images.rowCount }, (_, row) => [images.key(row), images.sequence(row) - first]),
    ).toEqual([
      ['a', 2],
      ['b', 3],
      ['a', 4],
      ['c', 5],
    ]);
    expect(mixed.totals.documents).toBe(2);
    expect(range.info()).toMatchObject({ head: first + 5, documents: 2, entryIndex: 2 });

    await storage.close();
    storage = await openTestStorage(directory.path);
    const reopened = await storage.openRange(id);
    expect(reopened.info()).toMatchObject({ head: first + 5, documents: 2, entryIndex: 2 });
    expect(documentOf(reopened.documents.get('a')?.body)).toEqual({ n: 7 });
    expect(documentOf(reopened.documents.get('c')?.body)).toEqual({ x: 1 });
    expect(reopened.documents.get('b')).toBeUndefined();
    await storage.close();
  });

  test('a request that changes nothing takes no sequence', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id);
    const before = range.info();
    const applied = await write(storage, id, { deletes: ['missing'] });
    expect(applied.images).toBeUndefined();
    expect(applied.counts.deleted).toBe(0);
    expect(range.info()).toEqual(before);
    await storage.close();
  });

  test('requests that arrive together share transactions, and one failure undoes only itself', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id);
    const counter = { transforms: [{ key: 'n', operations: [{ op: '$inc', path: 'n', value: 1 }], upsert: true }] };
    const bad = group([{ rangeId: id, frame: frameOf({ puts: { stray: {} } }) }], {
      readSet: [{ rangeId: id, key: 'n', version: 12_345, table: 'things' }],
    });
    const conflict = failure(storage.append(bad));
    const answers = await Promise.all(Array.from({ length: 200 }, () => write(storage, id, counter)));
    expect(await conflict).toMatchObject({ code: 'transaction_conflict', details: { table: 'things', key: 'n' } });
    expect(documentOf(range.documents.get('n')?.body)).toEqual({ n: 200 });
    expect(range.documents.get('stray')).toBeUndefined();
    const sequences = answers.map(({ images }) => images?.firstSequence);
    expect(new Set(sequences).size).toBe(200);
    expect(range.info().entryIndex).toBe(200);
    await storage.close();
  });

  test('a read set asserts versions and absence; an expired document counts as absent', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id, { durationMs: 1_000 });
    await write(storage, id, { puts: { old: {} }, ttlBaseMs: requestTimeMs - 1_000 });
    await write(storage, id, { puts: { live: {} }, ttlBaseMs: requestTimeMs - 999 });
    const assertThat = (key: string, version: number) =>
      storage.append(
        group([{ rangeId: id, frame: frameOf({ puts: { [`seen-${key}`]: {} } }) }], {
          readSet: [{ rangeId: id, key, version }],
        }),
      );
    const version = must(range.documents.get('live'), 'no document').sequence;
    await assertThat('live', version);
    await assertThat('old', 0);
    await assertThat('never', 0);
    expect(await failure(assertThat('live', 0))).toMatchObject({ code: 'transaction_conflict' });
    expect(await failure(assertThat('old', version - 1))).toMatchObject({ code: 'transaction_conflict' });
    await range.setTtl({});
    expect(await failure(assertThat('old', 0))).toMatchObject({ code: 'transaction_conflict' });
    await storage.close();
  });

  test('a transform of an expired document starts from nothing', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id, { durationMs: 1_000 });
    await write(storage, id, { puts: { a: { n: 5 } }, ttlBaseMs: requestTimeMs - 5_000 });
    const operations = [{ op: '$inc', path: 'n', value: 1 }];
    expect((await write(storage, id, { transforms: [{ key: 'a', operations }] })).counts.transformed).toBe(0);
    await storage.append(
      group([
        {
          rangeId: id,
          frame: frameOf({ transforms: [{ key: 'a', operations, upsert: true }] }),
          ttlField: '_timestamp',
        },
      ]),
    );
    const document = must(range.documents.get('a'), 'no document');
    expect(documentOf(document.body)).toEqual({ n: 1 });
    expect(document.ttlBaseMs).toBe(requestTimeMs);
    expect(range.info().documents).toBe(1);
    await storage.close();
  });

  test('a transform that would outgrow the bounds of a document fails whole', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id);
    const path = Array.from({ length: 32 }, () => 'a').join('.');
    const deepen = () =>
      write(storage, id, { transforms: [{ key: 'k', operations: [{ op: '$rename', path: 'a', value: path }] }] });
    await write(storage, id, { puts: { k: { a: 1 } } });
    await deepen();
    await deepen();
    const held = range.documents.get('k')?.body;
    expect(await failure(deepen())).toMatchObject({ code: 'json_too_deep' });
    expect(range.documents.get('k')?.body).toEqual(must(held, 'no document'));
    await storage.close();
  });

  test('a transform leaves no document that could not be inserted, and one that has too many members may only shrink', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id);
    const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));
    const transform = (key: string, ...operations: TransformOperation[]) =>
      write(storage, id, { transforms: [{ key, operations }] });
    const set = (path: string, value: unknown = 1) => ({ op: '$set', path, value });
    await write(storage, id, { puts: { full: members(9_999), over: members(10_002) } });
    await transform('full', set('last'));
    expect(await failure(transform('full', set('one.more')))).toMatchObject({ code: 'limit_exceeded' });
    expect(await failure(transform('full', set('m0', { a: [{ b: 1 }] })))).toMatchObject({ code: 'limit_exceeded' });
    await transform('full', { op: '$unset', path: 'm0' }, set('instead'));
    await transform('over', { op: '$unset', path: 'm0' });
    await transform('over', set('m1', 'other'));
    expect(await failure(transform('over', set('more')))).toMatchObject({ code: 'limit_exceeded' });
    expect(Object.keys(documentOf(must(range.documents.get('over'), 'no document').body) as object)).toHaveLength(
      10_001,
    );
    await write(storage, id, { puts: { named: {} } });
    await transform('named', set('n'.repeat(65_535)));
    expect(await failure(transform('named', set('é'.repeat(32_768))))).toMatchObject({ code: 'limit_exceeded' });
    await storage.close();
  });

  test('conditional deletes leave documents that have changed or have not expired', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const range = await storage.openRange(id, { durationMs: 1_000 });
    await write(storage, id, { puts: { a: {}, b: {} }, ttlBaseMs: requestTimeMs - 1_000 });
    await write(storage, id, { puts: { live: {} }, ttlBaseMs: requestTimeMs - 999 });
    const sequence = (key: string) => must(range.documents.get(key), 'no document').sequence;
    const deleteIf = [
      { key: 'a', sequence: sequence('a') },
      { key: 'b', sequence: sequence('b') },
      { key: 'c', sequence: 1 },
      { key: 'live', sequence: sequence('live') },
    ];
    await write(storage, id, { puts: { b: { changed: true } }, ttlBaseMs: requestTimeMs - 1_000 });
    const [applied] = await storage.append(group([{ rangeId: id, deleteIf }]));
    expect(applied?.counts).toMatchObject({ deleted: 1, skipped: 3 });
    expect(range.documents.get('a')).toBeUndefined();
    expect(['b', 'live'].map((key) => range.documents.get(key)?.key)).toEqual(['b', 'live']);
    await storage.close();
  });
});

test('a write by an earlier TTL field has its bases read by the field of the range', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const range = await storage.openRange(id, { durationMs: 1_000, field: 'late' });
  const content = { puts: { k: { early: 1e9, late: 5e9 } }, ttlBaseMs: 1_000 };
  const base = () => range.documents.get('k')?.ttlBaseMs;
  const write = (more: object) => group([{ rangeId: id, frame: frameOf(content), ttlField: 'early', ...more }]);
  await storage.append(write({}));
  expect(base()).toBe(5_000);
  await storage.append(write({ ttlField: 'late' }));
  expect(base()).toBe(1_000);
  await storage.append(write({ merge: { afterKey: '', toKey: null, dryRun: false } }));
  expect(base()).toBe(5_000);
  const operations = [{ op: '$set', path: 'late', value: 7e9 }];
  const transform = frameOf({ transforms: [{ key: 'k', operations, upsert: true }] });
  await storage.append(group([{ rangeId: id, frame: transform, ttlField: 'early' }]));
  expect(base()).toBe(7_000);
  await storage.close();
});

test('a transform finds the TTL field where an insert does: in objects, by its names alone', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  for (const [field, base] of [
    ['a.b', 2_000],
    ['$.a.b', requestTimeMs],
    ['c.0', requestTimeMs],
  ] as const) {
    const range = await storage.openRange(id, { durationMs: 1_000, field });
    await write(storage, id, { puts: { k: { a: { b: 2e9 }, c: [3e9] } }, ttlBaseMs: requestTimeMs });
    await write(storage, id, { transforms: [{ key: 'k', operations: [{ op: '$set', path: 'n', value: 1 }] }] });
    expect([field, range.documents.get('k')?.ttlBaseMs]).toEqual([field, base]);
  }
  await storage.close();
});

test('a linear merge neither counts nor names what has expired', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  await storage.openRange(id, { durationMs: 1_000 });
  await write(storage, id, { puts: { old: {}, again: {} }, ttlBaseMs: requestTimeMs - 1_000 });
  await write(storage, id, { puts: { live: {} }, ttlBaseMs: requestTimeMs });
  const merged = async (dryRun: boolean) => {
    const frame = frameOf({ puts: { again: {} }, ttlBaseMs: requestTimeMs });
    const merge = { afterKey: '', toKey: null, dryRun };
    const [applied] = await storage.append(group([{ rangeId: id, frame, merge }]));
    return applied?.counts;
  };
  expect(await merged(true)).toMatchObject({ deleted: 1, deletedIds: ['live'], keysScanned: 1 });
  expect(await merged(false)).toMatchObject({ deleted: 1, upserted: 1, keysScanned: 1 });
  await storage.close();
});

test('a linear merge makes its window equal to the records', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const range = await storage.openRange(id);
  await write(storage, id, { puts: { a: { n: 1 }, b: { n: 1, _timestamp: 'old' }, c: { n: 1 }, d: { n: 1 }, z: {} } });
  const puts = { b: { _timestamp: 'new', n: 1 }, c: { n: 2 }, e: { n: 1 } };
  const merge = (dryRun: boolean) =>
    storage.append(group([{ rangeId: id, frame: frameOf({ puts }), merge: { afterKey: 'a', toKey: 'e', dryRun } }]));
  const before = range.info();
  const [dry] = await merge(true);
  expect(dry?.counts).toMatchObject({ upserted: 0, skipped: 1, deleted: 1, keysScanned: 3, deletedIds: ['d'] });
  expect(range.info()).toEqual(before);
  const [done] = await merge(false);
  expect(done?.counts).toMatchObject({ upserted: 2, skipped: 1, deleted: 1, keysScanned: 3, deletedIds: [] });
  const bounds = { fromKey: '', fromInclusive: false, toKey: null, toInclusive: false };
  const keys = range.documents.page(bounds).documents.map(({ key, body }) => [key, documentOf(body)]);
  expect(keys).toEqual([
    ['a', { n: 1 }],
    ['b', { n: 1, _timestamp: 'old' }],
    ['c', { n: 2 }],
    ['e', { n: 1 }],
    ['z', {}],
  ]);
  await storage.close();
});

test('a linear merge of some documents leaves the others alone, and fails where one is newer than what was looked at', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const range = await storage.openRange(id);
  await write(storage, id, { puts: { a: { n: 1 }, b: { n: 1 }, c: { n: 1 }, z: { n: 1 } } });
  const bits = (...keys: string[]) =>
    keys.reduce((all, key) => withOrdinal(all, must(range.documents.get(key), key).ordinal), new Uint8Array());
  const merge = (puts: object, more: { throughSequence?: number; withParts?: boolean } = {}) => {
    const permitted = { throughSequence: range.info().head, ordinals: bits('a', 'z'), withParts: false, ...more };
    const window = { afterKey: '', toKey: 'c', dryRun: false, permitted };
    return storage.append(group([{ rangeId: id, frame: frameOf({ puts: { ...puts } }), merge: window }]));
  };
  const conflict = { code: 'transaction_conflict' };
  const before = range.info().head;
  await write(storage, id, { puts: { z: { n: 2 } } });
  expect(await failure(merge({ c: {} }))).toMatchObject(conflict);
  expect(await failure(merge({ aa: {} }, { throughSequence: before, withParts: true }))).toMatchObject(conflict);
  expect(await failure(merge({ aa: {} }, { throughSequence: before - 2 }))).toMatchObject(conflict);
  const [done] = await merge({ aa: { n: 3 } }, { throughSequence: before });
  expect(done?.counts).toMatchObject({ upserted: 1, deleted: 1, keysScanned: 1 });
  const bounds = { fromKey: '', fromInclusive: false, toKey: null, toInclusive: false };
  expect(range.documents.page(bounds).documents.map(({ key }) => key)).toEqual(['aa', 'b', 'c', 'z']);
  await storage.close();
});

test('pages honour their bounds and say whether more follows', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const range = await storage.openRange(id);
  await write(storage, id, { puts: { a: {}, b: {}, c: {}, d: {} } });
  const keys = (fromKey: string, fromInclusive: boolean, toKey: string | null, toInclusive: boolean, rows?: number) => {
    const page = range.documents.page({ fromKey, fromInclusive, toKey, toInclusive }, rows);
    return [page.documents.map(({ key }) => key).join(''), page.more];
  };
  expect(keys('a', false, 'd', false)).toEqual(['bc', false]);
  expect(keys('a', true, 'd', true)).toEqual(['abcd', false]);
  expect(keys('', true, null, false, 2)).toEqual(['ab', true]);
  expect(keys('b', false, null, false, 2)).toEqual(['cd', false]);
  expect(range.documents.byOrdinals([1, 3, 99]).documents.map(({ key }) => key)).toEqual(['a', 'c']);
  expect(range.documents.byOrdinals([2]).documents.map(({ key }) => key)).toEqual(['b']);
  await storage.close();
});

test('the change feed tells what is still true, also after a purge', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const table = await createTable(storage);
  const id = rangeId(table);
  const first = must(table.ranges[0], 'no range').firstSequence;
  const range = await storage.openRange(id);
  await write(storage, id, { puts: { a: {}, b: {}, c: {} } });
  await write(storage, id, { puts: { a: { n: 2 } }, deletes: ['b'] });
  const rows = (after: number) => {
    const page = range.feed.read(after);
    if (!page) return undefined;
    const frame = readFrame(page.frame);
    return Array.from({ length: frame.rowCount }, (_, row) => [
      frame.kind(row),
      frame.ordinal(row),
      frame.sequence(row) - first,
    ]);
  };
  expect(rows(0)).toEqual([
    [1, 3, 2],
    [1, 1, 3],
    [2, 2, 4],
  ]);
  expect(rows(first + 2)).toEqual([
    [1, 1, 3],
    [2, 2, 4],
  ]);
  expect(rows(first + 4)).toBeUndefined();

  await write(storage, id, { puts: { d: {} } });
  // The superseded put of "a", and the put and the tombstone of "b".
  expect(await range.purgeTombstones(first + 5)).toBe(3);
  expect(await range.purgeTombstones(first + 5)).toBe(0);
  expect(rows(0)).toEqual([
    [1, 3, 2],
    [1, 1, 3],
    [1, 4, 5],
  ]);
  await storage.close();
});

test('a purge notes the last deletion that it forgets, and no change that only superseded another', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  let range = await storage.openRange(id);
  const forgotten = () => range.feed.deletionsForgottenThrough();
  const purge = () => range.purgeTombstones(range.info().head);
  await write(storage, id, { puts: { a: {}, b: {} } });
  await write(storage, id, { puts: { a: { n: 2 } } });
  await write(storage, id, { puts: { a: { n: 3 } } });
  await purge();
  expect([forgotten(), range.feed.purgedThrough() > 0]).toEqual([0, true]);
  await write(storage, id, { deletes: ['b'] });
  const deletion = range.info().head;
  await write(storage, id, { puts: { b: {} } });
  await write(storage, id, { puts: { a: { n: 4 } } });
  await purge();
  expect(forgotten()).toBe(deletion);
  await write(storage, id, { puts: { a: { n: 5 } } });
  await purge();
  await storage.close();
  storage = await openTestStorage(directory.path);
  range = await storage.openRange(id);
  expect([forgotten(), range.feed.purgedThrough() > deletion]).toEqual([deletion, true]);
  await storage.close();
});

test('a range that was purged before deletions were noted may have forgotten any of then', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  let range = await storage.openRange(id);
  await write(storage, id, { puts: { a: {}, b: {} } });
  await write(storage, id, { deletes: ['b'] });
  await write(storage, id, { puts: { a: { n: 2 } } });
  await range.purgeTombstones(range.info().head);
  const purged = range.feed.purgedThrough();
  const { path } = range;
  await storage.close();
  const database = new Database(path);
  database.run("DELETE FROM range_state WHERE key = CAST('purged-deletions' AS BLOB)");
  database.close();
  storage = await openTestStorage(directory.path);
  range = await storage.openRange(id);
  expect(range.feed.deletionsForgottenThrough()).toBe(purged);
  await write(storage, id, { puts: { a: { n: 3 } } });
  await write(storage, id, { puts: { a: { n: 4 } } });
  await range.purgeTombstones(range.info().head);
  expect(range.feed.purgedThrough()).toBeGreaterThan(purged);
  expect(range.feed.deletionsForgottenThrough()).toBe(purged);
  await storage.close();
});

test('a purge keeps the counters that ride on the last change', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  let range = await storage.openRange(id);
  await write(storage, id, { puts: { a: {} } });
  await write(storage, id, { deletes: ['a'] });
  const { head } = range.info();
  await range.purgeTombstones(head);
  await storage.close();
  storage = await openTestStorage(directory.path);
  range = await storage.openRange(id);
  expect(range.info()).toMatchObject({ head, documents: 0, entryIndex: 2 });
  const again = await write(storage, id, { puts: { a: {} } });
  expect(readFrame(must(again.images, 'no images').frame).ordinal(0)).toBe(2);
  await storage.close();
});
