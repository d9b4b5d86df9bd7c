import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { must } from '../../src/lib/assert.ts';
import { readFrame, rowKind } from '../../src/lib/document-frame.ts';
import { checkRangeFile } from '../../src/storage/check/range-check.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import type { RangeReader } from '../../src/storage/reader/range-reader.ts';
import { openBehind } from '../support/behind-the-server.ts';
import { readVector } from '../support/vectors/vector-part.ts';
import {
  createTable,
  frameOf,
  group,
  openTestStorage,
  rangeId,
  requestTimeMs,
  temporaryDirectory,
  write,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

type Vectors = Map<number, number[]>;
/** Key -> value and vectors. */
type Model = Map<string, { n: number; vectors: Vectors }>;
type Given = Record<string, { n: number; vectors: Record<number, number[] | null> }>;

type Operation =
  | { kind: 'batch' | 'merge'; documents: Given; deletes: string[]; increments: string[] }
  | { kind: 'drop-index'; which: number }
  | { kind: 'purge' | 'reopen' | 'crash' };

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e');
const vector = fc.option(fc.array(fc.integer({ min: -2, max: 2 }), { minLength: 1, maxLength: 2 }), { nil: null });
/** Of the three indexes "v0", "v1", "v2"; the fixture gives them the incarnations 1, 2 and 3. */
const vectors = fc.dictionary(fc.constantFrom('1', '2', '3'), vector, { maxKeys: 3, noNullPrototype: true });
const documents = fc.dictionary(key, fc.record({ n: fc.integer({ min: 0, max: 2 }), vectors }), {
  minKeys: 1,
  maxKeys: 4,
  noNullPrototype: true,
});
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('batch' as const, 'merge' as const),
      documents,
      deletes: fc.array(key, { maxLength: 2 }),
      increments: fc.array(key, { maxLength: 2 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('drop-index' as const), which: fc.integer({ min: 0, max: 2 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('purge' as const, 'reopen' as const, 'crash' as const) }) },
);

/** A range under test, and what a follower of each index's feed holds: ordinal -> vector. */
class Subject {
  readonly root: string;
  storage: Storage;
  range: RangeReader;
  /** Index ids that are still there. */
  readonly indexes = new Set([1, 2, 3]);
  readonly followers = new Map([1, 2, 3].map((id) => [id, { through: 0, vectors: new Map<number, number[]>() }]));
  #crashes = 0;

  constructor(root: string, storage: Storage, range: RangeReader) {
    this.root = root;
    this.storage = storage;
    this.range = range;
  }

  static async open(root: string): Promise<Subject> {
    const storage = await openTestStorage(join(root, '0'));
    const table = await createTable(storage, 'things', 1, ['v0', 'v1', 'v2']);
    expect(table.indexes.map(({ incarnation }) => incarnation)).toEqual([1, 2, 3]);
    return new Subject(root, storage, await storage.openRange(rangeId(table)));
  }

  /** Goes on from the files as they lie there, without a clean end, or after one. */
  async reopen(crash: boolean): Promise<void> {
    const from = join(this.root, String(this.#crashes));
    if (crash) {
      this.#crashes += 1;
      cpSync(from, join(this.root, String(this.#crashes)), { recursive: true });
    }
    const info = this.range.info();
    await this.storage.close();
    this.storage = await openTestStorage(join(this.root, String(this.#crashes)));
    this.range = await this.storage.openRange(info.rangeId);
    expect({ ...this.range.info(), bytes: 0 }).toEqual({ ...info, bytes: 0 });
  }

  /** Reads the feeds from where they stopped, as indexes do. */
  follow(): void {
    for (const id of this.indexes) {
      const follower = must(this.followers.get(id), 'a follower');
      for (let page = this.range.feed.read(follower.through, { parts: [id] }); page; ) {
        const frame = readFrame(page.frame);
        for (let row = 0; row < frame.rowCount; row += 1) {
          const stored = frame.kind(row) === rowKind.partPut ? readVector(frame.body(row)) : undefined;
          if (stored && 'dense' in stored) follower.vectors.set(frame.ordinal(row), [...stored.dense]);
          else follower.vectors.delete(frame.ordinal(row));
        }
        expect(page.damaged).toEqual([]);
        follower.through = page.lastSequence;
        page = this.range.feed.read(follower.through, { parts: [id] });
      }
    }
  }

  /** Key -> value and vectors, as they are stored. */
  stored(): Model {
    const bounds = { fromKey: '', fromInclusive: true, toKey: null, toInclusive: true };
    const page = this.range.documents.page(bounds).documents;
    const { found } = this.range.parts.read(
      page.map(({ ordinal }) => ordinal),
      [...this.indexes],
    );
    return new Map(
      page.map(({ ordinal, key: name, body }) => {
        const own = [...(found.get(ordinal) ?? [])].map(([id, bytes]): [number, number[]] => {
          const read = readVector(bytes);
          return [id, read && 'dense' in read ? [...read.dense] : []];
        });
        return [name, { n: JSON.parse(new TextDecoder().decode(body)).n as number, vectors: new Map(own) }];
      }),
    );
  }

  /** Rows of the change feed that stand for nothing any more; the last one may, with what it superseded: it has the counters. */
  superseded(): number {
    using database = new Database(this.storage.directory.documentsFile(this.range.rangeId, 1), { readonly: true });
    const count = (table: string) => (database.query(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;
    return count('changes') - count('documents') - count('parts');
  }

  /** Index id -> key -> vector, as the followers know it. */
  followed(): Map<number, Map<string, number[]>> {
    const bounds = { fromKey: '', fromInclusive: true, toKey: null, toInclusive: true };
    const keys = new Map(this.range.documents.page(bounds).documents.map((each) => [each.ordinal, each.key]));
    return new Map(
      [...this.indexes].map((id) => {
        const held = must(this.followers.get(id), 'a follower').vectors;
        return [id, new Map([...held].map(([ordinal, values]) => [must(keys.get(ordinal), 'a stray vector'), values]))];
      }),
    );
  }
}

function put(model: Model, given: Given, live: ReadonlySet<number>): void {
  for (const [name, { n, vectors: changes }] of Object.entries(given)) {
    const own: Vectors = new Map(model.get(name)?.vectors);
    for (const [id, values] of Object.entries(changes)) {
      if (values === null) own.delete(Number(id));
      else if (live.has(Number(id))) own.set(Number(id), values);
    }
    model.set(name, { n, vectors: own });
  }
}

/** The indexes that a request may name: only indexes that are there. */
function givenOf(documents: Given, live: ReadonlySet<number>): Given {
  const only = (all: Record<number, number[] | null>) =>
    Object.fromEntries(Object.entries(all).filter(([id]) => live.has(Number(id))));
  return Object.fromEntries(
    Object.entries(documents).map(([name, { n, vectors: all }]) => [name, { n, vectors: only(all) }]),
  );
}

async function applyWrite(
  operation: Extract<Operation, { kind: 'batch' | 'merge' }>,
  subject: Subject,
  model: Model,
): Promise<void> {
  const { storage, range, indexes } = subject;
  const given = givenOf(operation.documents, indexes);
  const puts = Object.fromEntries(Object.entries(given).map(([name, { n }]) => [name, { n }]));
  const rows = Object.fromEntries(Object.entries(given).map(([name, each]) => [name, each.vectors]));
  if (operation.kind === 'merge') {
    const toKey = must(Object.keys(given).sort().at(-1), 'no records');
    const merge = { afterKey: '', toKey, dryRun: false };
    const before = new Map(model);
    for (const name of [...model.keys()]) if (name <= toKey && !(name in given)) model.delete(name);
    put(model, given, indexes);
    const [applied] = await storage.append(
      group([{ rangeId: range.rangeId, frame: frameOf({ puts, vectors: rows }), merge }]),
    );
    const differs = Object.keys(given).filter((name) => !Bun.deepEquals(before.get(name), model.get(name)));
    expect(applied?.counts).toMatchObject({
      upserted: differs.length,
      skipped: Object.keys(given).length - differs.length,
    });
    return;
  }
  const deletes = operation.deletes.filter((name) => !(name in given));
  const increment = { op: '$inc', path: 'n', value: 1 };
  const transforms = operation.increments.map((name) => ({ key: name, operations: [increment] }));
  await write(storage, range.rangeId, { puts, vectors: rows, deletes, transforms });
  put(model, given, indexes);
  for (const name of deletes) model.delete(name);
  for (const name of operation.increments) {
    const held = model.get(name);
    if (held) model.set(name, { ...held, n: held.n + 1 });
  }
}

async function apply(operation: Operation, subject: Subject, model: Model): Promise<void> {
  switch (operation.kind) {
    case 'batch':
    case 'merge':
      return applyWrite(operation, subject, model);
    case 'drop-index': {
      const id = operation.which + 1;
      if (!subject.indexes.delete(id)) return;
      const tableId = must(subject.storage.catalog.table('things'), 'no table').tableId;
      await subject.storage.catalog.changeTable({ tableId, dropIndexes: [{ name: `v${operation.which}` }] });
      for (const each of model.values()) each.vectors.delete(id);
      // On even places at once, on odd ones when the range is next opened.
      if (operation.which % 2 === 0) await subject.range.dropPart(id);
      return;
    }
    case 'purge':
      subject.follow();
      await subject.range.purgeTombstones(subject.range.info().head);
      expect(subject.superseded()).toBeLessThanOrEqual(2);
      return;
    default:
      await subject.reopen(operation.kind === 'crash');
  }
}

test('vectors stay with their documents, through merges, drops of indexes, purges, reopens and crashes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (operations) => {
      using directory = temporaryDirectory();
      const subject = await Subject.open(directory.path);
      const model: Model = new Map();
      for (const each of operations) {
        await apply(each, subject, model);
        expect(subject.stored()).toEqual(new Map([...model].sort()));
      }
      subject.follow();
      const expected = new Map(
        [...subject.indexes].map((id) => {
          const own = [...model].flatMap(([name, each]): [string, number[]][] => {
            const values = each.vectors.get(id);
            return values ? [[name, values]] : [];
          });
          return [id, new Map(own)];
        }),
      );
      expect(subject.followed()).toEqual(expected);
      const file = subject.storage.directory.documentsFile(subject.range.rangeId, 1);
      await subject.storage.close();
      expect(checkRangeFile(file).findings).toEqual([]);
    }),
    { numRuns: 25 },
  );
});

test('post-images carry vectors with the ordinals and sequences of their own', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage, 'things', 1, ['v0', 'v1']));
  await storage.openRange(id);
  const rowsOf = (frame: Uint8Array<ArrayBuffer> | undefined) => {
    const read = readFrame(must(frame, 'no images'));
    return Array.from({ length: read.rowCount }, (_, row) => [read.kind(row), read.key(row), read.ordinal(row)]);
  };
  const first = await write(storage, id, {
    puts: { a: {}, b: {} },
    vectors: { a: { 1: [1], 2: [2] }, b: { 1: null } },
  });
  expect(rowsOf(first.images?.frame)).toEqual([
    [rowKind.put, 'a', 1],
    [rowKind.partPut, 'a', 1],
    [rowKind.partPut, 'a', 1],
    [rowKind.put, 'b', 2],
  ]);
  expect(first.images).toMatchObject({ lastSequence: must(first.images, 'no images').firstSequence + 3 });
  const second = await write(storage, id, { puts: { a: { n: 1 } }, vectors: { a: { 2: null } }, deletes: ['b'] });
  expect(rowsOf(second.images?.frame)).toEqual([
    [rowKind.put, 'a', 1],
    [rowKind.partDelete, 'a', 1],
    [rowKind.delete, 'b', 2],
  ]);
  await storage.close();
});

test('a document written where an expired one lies does not inherit its vectors', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage, 'things', 1, ['v0']));
  const range = await storage.openRange(id, { durationMs: 1_000 });
  const expired = requestTimeMs - 2_000;
  const vectors = { a: { 1: [1] }, b: { 1: [1] }, c: { 1: [1] } };
  await write(storage, id, { puts: { a: {}, b: {}, c: {} }, ttlBaseMs: expired, vectors });
  await write(storage, id, { puts: { a: { n: 1 } }, ttlBaseMs: requestTimeMs });
  const operations = [{ op: '$set', path: 'n', value: 1 }];
  await write(storage, id, { transforms: [{ key: 'b', operations, upsert: true }] });
  const merge = { afterKey: 'b', toKey: 'c', dryRun: false };
  const frame = frameOf({ puts: { c: {} }, ttlBaseMs: requestTimeMs });
  await storage.append(group([{ rangeId: id, frame, merge }]));
  const ordinals = ['a', 'b', 'c'].map((name) => must(range.documents.get(name), name).ordinal);
  expect(range.parts.read(ordinals, [1]).found.size).toBe(0);
  expect(range.info().documents).toBe(3);
  const file = storage.directory.documentsFile(id, 1);
  await storage.close();
  expect(checkRangeFile(file).findings).toEqual([]);
});

test('a damaged vector is named by every reader, and leaves its index', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage, 'things', 1, ['v0']));
  const range = await storage.openRange(id);
  await write(storage, id, { puts: { a: {}, b: {} }, vectors: { a: { 1: [1, 2] }, b: { 1: [3, 4] } } });
  const file = storage.directory.documentsFile(id, 1);
  using database = openBehind(file);
  database.run("UPDATE parts SET body = x'01000000010000000000803f00000040' WHERE id = 4294967298");
  expect([...range.parts.read([1, 2], [1]).damaged]).toEqual([2]);
  expect(range.parts.read([1], [1]).found.size).toBe(1);
  expect(range.parts.scrubPage(-1)).toEqual({ rows: 2, lastRow: 4294967298, damagedKeys: ['b'] });
  const page = must(range.feed.read(0, { parts: [1] }), 'a page');
  const frame = readFrame(page.frame);
  expect([frame.kind(0), frame.kind(1)]).toEqual([rowKind.partPut, rowKind.partDelete]);
  expect(page.damaged).toEqual([
    { key: 'b', ordinal: 2, reason: 'a stored part, such as a vector, does not match its checksum' },
  ]);
  database.close();
  await storage.close();
  expect(checkRangeFile(file).findings).toMatchObject([{ problem: 'part', key: 'b' }]);
});

test('a write that was on its way while its index was dropped leaves no vector of it behind', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const table = await createTable(storage, 'things', 1, ['v0', 'v1']);
  const id = rangeId(table);
  const range = await storage.openRange(id);
  await write(storage, id, { puts: { a: {} }, vectors: { a: { 1: [1], 2: [2] } } });
  await storage.catalog.changeTable({ tableId: table.tableId, dropIndexes: [{ name: 'v0' }] });
  await range.dropPart(1);
  await write(storage, id, { puts: { a: {}, b: {} }, vectors: { a: { 1: [3], 2: [4] }, b: { 1: [5], 2: [6] } } });
  const { found } = range.parts.read([1, 2], [1, 2]);
  expect([...found].map(([ordinal, bodies]) => [ordinal, [...bodies.keys()]])).toEqual([
    [1, [2]],
    [2, [2]],
  ]);
  expect(range.info().bytes).toBe(2 * ('{}'.length + 12));
  const file = storage.directory.documentsFile(id, 1);
  await storage.close();
  expect(checkRangeFile(file).findings).toEqual([]);
});

test('a drop of an index that was interrupted is finished when the range is opened', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const table = await createTable(storage, 'things', 1, ['v0', 'v1']);
  const id = rangeId(table);
  let range = await storage.openRange(id);
  const keys = Array.from({ length: 700 }, (_, n) => `k${n}`);
  const puts = Object.fromEntries(keys.map((name) => [name, {}]));
  const own = Object.fromEntries(keys.map((name) => [name, { 1: [1], 2: [2] }]));
  await write(storage, id, { puts, vectors: own });
  const { bytes } = range.info();
  await storage.catalog.changeTable({ tableId: table.tableId, dropIndexes: [{ name: 'v0' }] });
  // One slice at most is gone when the storage stops.
  void range.dropPart(1).catch(() => undefined);
  await storage.close();
  storage = await openTestStorage(directory.path);
  range = await storage.openRange(id);
  await range.dropPart(1);
  expect(range.parts.read([1, 300, 700], [1]).found.size).toBe(0);
  expect(range.parts.read([1, 300, 700], [2]).found.size).toBe(3);
  await range.close();
  range = await storage.openRange(id);
  expect(bytes - range.info().bytes).toBe(700 * 12);
  const file = storage.directory.documentsFile(id, 1);
  await storage.close();
  expect(checkRangeFile(file).findings).toEqual([]);
});
