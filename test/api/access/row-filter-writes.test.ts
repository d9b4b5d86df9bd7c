import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { Caller } from '../../../src/access/principal.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { RangeLog } from '../../../src/replication/range-log.ts';
import type { Database } from '../../../src/server/database/open-database.ts';
import type { WriteRequest } from '../../../src/storage/write-request.ts';
import { BatchWriter } from '../../../src/tables/writes/batch-writer.ts';
import { openBehind } from '../../support/behind-the-server.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

/** Writes of a caller that sees only some documents: those that are its own, before and after, and no others. */

type Documents = Record<string, Record<string, unknown>>;

const directory = new TemporaryDirectory();
const owner = testCaller();
const seeing = (...filters: object[]) => testCaller({ rowFilter: { notes: filters } });
const red = seeing({ term: { team: 'red' } });
const refusal = (code: string) => expect.objectContaining({ code });
const forbidden = refusal('forbidden');
/** The error that a request fails with. */
const failureOf = (request: Promise<unknown>) =>
  request.then(
    () => undefined,
    (error: unknown) => error,
  );

let database: Database;

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  const schema = { ttl: { duration: '1h', field: 'since' } };
  await database.services.tables.create(
    'notes',
    { num_shards: 3, schema, indexes: { near: { type: 'graph' } } },
    owner,
  );
  await database.services.tables.create('open', {}, owner);
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

const long = () => new Date(systemClock.nowMs() - 7_200_000).toISOString();
const start = {
  a: { team: 'red', n: 1 },
  // In another range than `a`.
  '5': { team: 'red', n: 2 },
  b: { team: 'blue', n: 3 },
  z: { team: 'blue', n: 4 },
};

beforeEach(async () => {
  const { writes } = database.services;
  const deletes = [...(await stored()).keys()].filter((key) => !Object.hasOwn(start, key));
  await writes.batch('notes', bodyOf({ inserts: start, deletes }), owner);
});

const batch = (body: object, caller: Caller = red) => database.services.writes.batch('notes', bodyOf(body), caller);
const set = (key: string, path: string, value: unknown, more: object = {}) => ({
  key,
  operations: [{ op: '$set', path, value }],
  ...more,
});

/** All documents of the table. */
async function stored(table = 'notes'): Promise<Map<string, unknown>> {
  const documents = new Map<string, unknown>();
  for await (const page of await database.services.documents.scan(table, { fields: ['*'] }, owner)) {
    for (const line of page) {
      const { _id, key: _, ...document } = JSON.parse(line) as { _id: string; key: string };
      documents.set(_id, document);
    }
  }
  return documents;
}

const asStored = (documents: Documents) => new Map(Object.entries(documents).sort(([a], [b]) => (a < b ? -1 : 1)));
const versionOf = async (key: string) =>
  String((await database.services.documents.lookup('notes', key, undefined, owner)).version);

describe('a caller with a row filter', () => {
  test('inserts, overwrites, transforms and deletes documents that are its own', async () => {
    expect(await batch({ inserts: { c: { team: 'red' }, a: { team: 'red', n: 9 } }, deletes: ['5', 'none'] })).toEqual({
      status: 'committed',
      counts: { inserted: 2, deleted: 1, transformed: 0 },
    });
    const transforms = [
      set('a', 'n', 10),
      set('new', 'team', 'red', { upsert: true }),
      set('nobody', 'team', 'blue'),
      // In between it is of another team.
      set('c', 'team', 'blue'),
      set('c', 'team', 'red'),
    ];
    expect(await batch({ transforms })).toMatchObject({ counts: { transformed: 4 } });
    const { b, z } = start;
    expect(await stored()).toEqual(
      asStored({ a: { team: 'red', n: 10 }, b, c: { team: 'red' }, new: { team: 'red' }, z }),
    );
  });

  const own = { '5': { team: 'red', n: 7 } };
  test.each([
    ['overwrites a hidden document', { inserts: { ...own, b: { team: 'red' } } }],
    ['deletes a hidden document', { inserts: own, deletes: ['b'] }],
    ['transforms a hidden document', { inserts: own, transforms: [set('b', 'n', 1)] }],
    ['makes a hidden document its own', { inserts: own, transforms: [set('b', 'team', 'red')] }],
    ['changes nothing of a hidden document', { inserts: own, transforms: [{ key: 'b', operations: [] }] }],
    ['inserts a document of another team', { inserts: { ...own, c: { team: 'blue' } } }],
    ['inserts a document of no team', { inserts: { ...own, c: {} } }],
    ['gives its own away', { inserts: { ...own, a: { team: 'blue' } } }],
    ['gives its own away by a transform', { inserts: own, transforms: [set('a', 'team', 'blue')] }],
    [
      'makes one of another team by a transform',
      { inserts: own, transforms: [set('c', 'team', 'blue', { upsert: true })] },
    ],
    [
      'makes one of its own, then another',
      { inserts: { ...own, c: { team: 'red' } }, transforms: [set('c', 'team', 'x')] },
    ],
  ])('is refused, with the whole write, where it %s', async (_, body) => {
    expect(await failureOf(batch(body))).toEqual(forbidden);
    const tables = { open: { inserts: { q: { n: 1 } } }, notes: body };
    expect(await failureOf(database.services.writes.multiBatch(bodyOf({ tables }), red))).toEqual(forbidden);
    const commit = { read_set: [], tables };
    expect(await failureOf(database.services.writes.commit(bodyOf(commit), red))).toEqual(forbidden);
    expect(await stored()).toEqual(asStored(start));
    expect(await stored('open')).toEqual(new Map());
  });

  test('is judged by every filter, whatever its form, and by none that cannot be read', async () => {
    const both = testCaller({ rowFilter: { notes: { query: 'team:red' }, '*': { range: { n: { lt: 5 } } } } });
    expect(await batch({ inserts: { c: { team: 'red', n: 4 } } }, both)).toMatchObject({ counts: { inserted: 1 } });
    expect(await failureOf(batch({ inserts: { c: { team: 'red', n: 5 } } }, both))).toEqual(forbidden);
    expect(await failureOf(batch({ inserts: { c: { team: 'red' } } }, seeing()))).toEqual(forbidden);
    expect(await failureOf(batch({ inserts: { c: {} } }, seeing({ trem: {} })))).toEqual(refusal('invalid_query'));
    const recent = seeing({ range: { _timestamp: { gte: new Date(systemClock.nowMs() - 60_000).toISOString() } } });
    expect(await batch({ inserts: { d: {} }, transforms: [set('d', 'n', 1)] }, recent)).toMatchObject({
      counts: { inserted: 1, transformed: 1 },
    });
    const old = { _timestamp: '2001-01-01T00:00:00Z' };
    expect(await failureOf(batch({ inserts: { d: old } }, recent))).toEqual(forbidden);
    expect(await failureOf(batch({ transforms: [set('d', '_timestamp', old._timestamp)] }, recent))).toEqual(forbidden);
  });

  test('finds a document that has expired absent, hidden or not', async () => {
    await batch({ inserts: { c: { team: 'blue', since: long() }, d: { team: 'blue', since: long() } } }, owner);
    expect(await batch({ inserts: { c: { team: 'red' } }, deletes: ['d'] })).toMatchObject({
      counts: { inserted: 1, deleted: 0 },
    });
    await batch({ inserts: { e: { team: 'blue', since: long() } } }, owner);
    const transforms = [set('e', 'n', 1), set('e', 'team', 'red', { upsert: true })];
    expect(await batch({ transforms })).toMatchObject({ counts: { transformed: 1 } });
    expect((await stored()).get('e')).toEqual({ team: 'red' });
    // A transform does not find what the same batch has put before and has expired: it makes a document of its own.
    const put = (team: string, path: string, value: unknown) =>
      batch({ inserts: { f: { team, since: long() } }, transforms: [set('f', path, value, { upsert: true })] });
    expect(await failureOf(put('red', 'n', 1))).toEqual(forbidden);
    expect(await put('blue', 'team', 'red')).toMatchObject({ counts: { inserted: 1, transformed: 1 } });
    expect((await stored()).get('f')).toEqual({ team: 'red' });
  });

  test('changes the edges of its own documents alone', async () => {
    const _edges = { near: { to: [{ target: 'b' }] } };
    expect(await batch({ inserts: { a: { team: 'red', _edges } } })).toMatchObject({ counts: { inserted: 1 } });
    expect(await failureOf(batch({ inserts: { b: { team: 'red', _edges } } }))).toEqual(forbidden);
    const { graphs } = database.services;
    const edges = async (key: string) =>
      (JSON.parse(await graphs.edges('notes', 'near', { key, direction: 'out' }, owner)) as { edges: unknown[] }).edges;
    expect([(await edges('a')).length, (await edges('b')).length]).toEqual([1, 0]);
  });

  test('asserts versions as it sees them: a hidden document is not there', async () => {
    const { writes } = database.services;
    const commit = (key: string, version: string, caller = red) =>
      writes.commit(bodyOf({ read_set: [{ table: 'notes', key, version }], tables: {} }), caller);
    expect(await commit('a', await versionOf('a'))).toMatchObject({ status: 'committed' });
    expect(await commit('b', '0')).toMatchObject({ status: 'committed' });
    expect(await commit('none', '0')).toMatchObject({ status: 'committed' });
    for (const [key, version, current] of [
      ['a', '0', await versionOf('a')],
      ['b', await versionOf('b'), '0'],
    ] as const) {
      const conflict = expect.objectContaining({ expected_version: version, current_version: current });
      expect(await failureOf(commit(key, version))).toMatchObject({ code: 'transaction_conflict', details: conflict });
    }
    const tables = { open: { inserts: { q: { n: 1 } } } };
    const reads = [{ table: 'notes', key: 'a', version: await versionOf('a') }];
    expect(await writes.commit(bodyOf({ read_set: reads, tables }), red)).toMatchObject({ status: 'committed' });
    await writes.batch('open', bodyOf({ deletes: ['q'] }), owner);
  });

  test('puts transactions together, which are judged when they are committed', async () => {
    const { transactions } = database.services;
    const begin = () => transactions.begin(undefined, red).id;
    const stage = (id: string, notes: object, caller = red) =>
      transactions.stage(id, bodyOf({ tables: { notes } }), caller);
    const first = begin();
    expect(await transactions.read(first, { table: 'notes', key: 'a' }, red)).toMatchObject({
      version: await versionOf('a'),
    });
    expect(await transactions.read(first, { table: 'notes', key: 'b' }, red)).toMatchObject({
      version: '0',
      json: undefined,
    });
    await stage(first, { inserts: { a: { team: 'red', n: 5 } }, deletes: ['5'] });
    expect(await transactions.commit(first, red)).toMatchObject({
      tables: { notes: { inserted: 1, deleted: 1, transformed: 0 } },
    });
    const second = begin();
    await stage(second, { inserts: { b: { team: 'red' } } });
    expect(await failureOf(transactions.commit(second, red))).toEqual(forbidden);
    const third = begin();
    await stage(third, { inserts: { a: { team: 'red', n: 6 } } });
    expect(await failureOf(transactions.commit(third, seeing({ term: { team: 'blue' } })))).toEqual(forbidden);
    await transactions.commit(third, red);
    expect((await stored()).get('a')).toEqual({ team: 'red', n: 6 });
  });

  test('gets no answer that was given under other filters for the same key of a request', async () => {
    const { writes } = database.services;
    const body = bodyOf({ deletes: ['b', 'z'] });
    const answer = { counts: { deleted: 2 } };
    expect(await writes.batch('notes', body, owner, 'once')).toMatchObject(answer);
    expect(await writes.batch('notes', body, owner, 'once')).toMatchObject(answer);
    expect(await failureOf(writes.batch('notes', body, red, 'once'))).toEqual(refusal('idempotency_conflict'));
    const own = bodyOf({ transforms: [{ key: 'a', operations: [{ op: '$inc', path: 'n', value: 1 }] }] });
    for (let count = 0; count < 2; count += 1) {
      expect(await writes.batch('notes', own, red, 'twice')).toMatchObject({ counts: { transformed: 1 } });
    }
    expect((await stored()).get('a')).toEqual({ team: 'red', n: 2 });
  });
});

test('an artifact that hides a document keeps it from being written; one that is yet to be made does not', async () => {
  const { tables, artifacts, writes } = database.services;
  await tables.create('told', {}, owner);
  await artifacts.put('told', 'note', { kind: 'asset', field: 'text', full_text_index: true }, owner);
  const words = (match: string) => ({ match, field: '_artifacts.note' });
  const without = { bool: { must: [{ match_all: {} }], must_not: [words('secret')] } };
  const caller = (filter: object) => testCaller({ rowFilter: { told: filter } });
  const write = (inserts: object, by: Caller) =>
    writes.batch('told', bodyOf({ inserts, sync_level: 'enrichments' }), by);
  await write({ a: { text: 'a plan' }, b: { text: 'a secret' } }, owner);
  expect(await write({ a: { text: 'another plan' } }, caller(without))).toMatchObject({ counts: { inserted: 1 } });
  expect(await failureOf(write({ b: { text: 'mine' } }, caller(without)))).toEqual(forbidden);
  expect(await write({ c: { text: 'a secret' } }, caller(without))).toMatchObject({ counts: { inserted: 1 } });
  expect(await failureOf(write({ c: { text: 'mine' } }, caller(without)))).toEqual(forbidden);
  // A document that is written has no artifacts at first.
  expect(await failureOf(write({ a: { text: 'plan' } }, caller(words('plan'))))).toEqual(forbidden);
  await writes.batch('told', bodyOf({ deletes: ['a'] }), caller(words('plan')));
  const records = { a: { text: 'a plan' } };
  const merge = (dry_run: boolean) => writes.merge('told', bodyOf({ records, dry_run }), caller(without));
  await write({ a0: { text: 'a plan' } }, owner);
  for (const dry_run of [true, false]) expect(await merge(dry_run)).toMatchObject({ deleted: 0, keys_scanned: 0 });
  const last = { records: {}, last_merged_id: 'a' };
  expect(await writes.merge('told', bodyOf(last), caller(without))).toMatchObject({ deleted: 1, keys_scanned: 1 });
});

describe('a merge by a caller with a row filter', () => {
  const merge = (body: object, caller: Caller = red) => database.services.writes.merge('notes', bodyOf(body), caller);
  const { b, z } = start;

  test('makes the documents that it sees equal to the records, and leaves the others alone', async () => {
    const records = { a: { team: 'red', n: 9 }, c: { team: 'red' } };
    const page = { deleted: 1, skipped: 0, keys_scanned: 2 };
    expect(await merge({ records, dry_run: true })).toMatchObject({ ...page, upserted: 0, deleted_ids: ['5'] });
    expect(await stored()).toEqual(asStored(start));
    expect(await merge({ records })).toMatchObject({ ...page, upserted: 2 });
    expect(await stored()).toEqual(asStored({ ...records, b, z }));
    const again = { upserted: 0, skipped: 2, deleted: 0, keys_scanned: 2 };
    expect(await merge({ records })).toMatchObject(again);
    const last = { records: {}, last_merged_id: 'a' };
    expect(await merge(last)).toMatchObject({ deleted: 1, keys_scanned: 1 });
    expect(await merge(last)).toMatchObject({ deleted: 0, keys_scanned: 0 });
    expect(await stored()).toEqual(asStored({ a: records.a, b, z }));
  });

  test.each([
    ['has a record for a hidden document', { b: { team: 'red' } }],
    ['has a record of another team', { a: { team: 'red' }, c: { team: 'blue' } }],
  ])('is refused where it %s', async (_, records) => {
    for (const dry_run of [false, true]) expect(await failureOf(merge({ records, dry_run }))).toEqual(forbidden);
    expect(await stored()).toEqual(asStored(start));
  });

  test('finds a document that has expired absent', async () => {
    const gone = { team: 'blue', since: long() };
    await batch({ inserts: { c: gone, d: gone, e: { team: 'red', since: long() } } }, owner);
    const records = { a: { team: 'red' }, d: { team: 'red' }, f: { team: 'red' } };
    expect(await merge({ records })).toMatchObject({ upserted: 3, deleted: 1, keys_scanned: 2 });
    expect(await stored()).toEqual(asStored({ ...records, b, z }));
  });

  test('goes by the documents as they are when it is committed', async () => {
    const records = { a: { team: 'red' }, f: { team: 'red' } };
    const inserts = { '5': { team: 'blue', secret: 1 }, b: { team: 'red' }, c: { team: 'red' }, d: { team: 'blue' } };
    const writer = writerBehind(() => batch({ inserts }, owner));
    expect(await writer.merge('notes', bodyOf({ records }), red)).toMatchObject({ deleted: 2, keys_scanned: 3 });
    expect(await stored()).toEqual(asStored({ ...records, '5': inserts['5'], d: inserts.d, z }));
    const late = writerBehind(() => batch({ inserts: { f: { team: 'blue' } } }, owner));
    expect(await failureOf(late.merge('notes', bodyOf({ records }), red))).toEqual(forbidden);
  });
});

test('a damaged document is one of its own where the last good version was, and cannot be judged then', async () => {
  const { tables, writes } = database.services;
  const { ranges } = await tables.create('torn', {}, owner);
  const inserts = { a: { team: 'red' }, b: { team: 'blue' }, c: { team: 'red' } };
  await writes.batch('torn', bodyOf({ inserts, sync_level: 'full_index' }), owner);
  {
    using file = openBehind(database.storage.rangeFile(ranges[0]?.rangeId ?? 0));
    file.run(
      `UPDATE documents SET body = CAST('{"team":"red" }' AS BLOB) WHERE key IN (CAST('a' AS BLOB), CAST('b' AS BLOB))`,
    );
  }
  const caller = testCaller({ rowFilter: { torn: { term: { team: 'red' } } } });
  const write = (body: object) => failureOf(writes.batch('torn', bodyOf(body), caller));
  const merge = (records: object, last_merged_id = '') =>
    writes.merge('torn', bodyOf({ records, last_merged_id }), caller);
  const own = { team: 'red' };
  expect(await write({ deletes: ['a'] })).toEqual(refusal('data_corrupted'));
  expect(await write({ inserts: { b: own } })).toEqual(forbidden);
  expect(await failureOf(merge({ c: own }))).toEqual(refusal('data_corrupted'));
  expect(await failureOf(merge({ b: own }, 'a'))).toEqual(forbidden);
  expect(await merge({ d: own }, 'a')).toMatchObject({ upserted: 1, deleted: 1, keys_scanned: 1 });
  await writes.batch('torn', bodyOf({ inserts: { a: inserts.a, b: inserts.b } }), owner);
  expect(await stored('torn')).toEqual(asStored({ a: inserts.a, b: inserts.b, d: own }));
});

describe('rows of a relational table', () => {
  const text = { type: 'string', 'x-service-types': ['keyword'] };
  const columns = (properties: object) => ({
    storage_mode: 'relational',
    document_schemas: { row: { schema: { type: 'object', properties } } },
  });
  const naming = (on_delete: string) => ({ ...text, references: { table: 'authors', on_delete } });

  beforeAll(async () => {
    const { tables } = database.services;
    await tables.create(
      'authors',
      { num_shards: 2, schema: columns({ team: text, email: { ...text, unique: true } }) },
      owner,
    );
    const books = { team: text, author: naming('cascade'), editor: naming('set_null') };
    await tables.create('books', { num_shards: 2, schema: columns(books) }, owner);
  });

  test('that follow a deletion are none that a row filter may hide', async () => {
    const { writes } = database.services;
    const write = (table: string, body: object, caller: Caller) => writes.batch(table, bodyOf(body), caller);
    const filter = { term: { team: 'red' } };
    const caller = testCaller({ rowFilter: { authors: filter, books: filter } });
    const authors = { a: { team: 'red', email: 'a@x' }, b: { team: 'red' }, c: { team: 'red' }, d: { team: 'blue' } };
    await write('authors', { inserts: authors }, caller).catch(() => undefined);
    await write('authors', { inserts: authors }, owner);
    await write(
      'books',
      { inserts: { '1': { team: 'blue', author: 'a' }, '2': { team: 'blue', editor: 'b' } } },
      owner,
    );
    for (const key of ['a', 'b']) {
      expect(await failureOf(write('authors', { deletes: [key] }, caller))).toEqual(forbidden);
    }
    expect(await write('authors', { deletes: ['c'] }, caller)).toMatchObject({ counts: { deleted: 1 } });
    expect(await failureOf(write('authors', { inserts: { d: { team: 'red' } } }, caller))).toEqual(forbidden);
    const books = await stored('books');
    expect([books.get('1'), books.get('2')]).toEqual([
      { team: 'blue', author: 'a' },
      { team: 'blue', editor: 'b' },
    ]);
    expect(await write('authors', { deletes: ['a', 'b'] }, owner)).toMatchObject({ counts: { deleted: 2 } });
  });

  test('are transformed while others write them, each as it is then', async () => {
    const caller = testCaller({ rowFilter: { authors: { term: { team: 'red' } } } });
    const write = (body: object, by: Caller) => database.services.writes.batch('authors', bodyOf(body), by);
    await write({ inserts: { t: { team: 'red' } } }, owner);
    const transforms = [{ key: 't', operations: [{ op: '$set', path: 'team', value: 'red' }] }];
    for (const by of [owner, caller]) {
      const writer = writerBehind(() => write({ inserts: { t: { team: 'red', email: 'new@x' } } }, owner));
      expect(await writer.batch('authors', bodyOf({ transforms }), by)).toMatchObject({ counts: { transformed: 1 } });
      expect((await stored('authors')).get('t')).toEqual({ team: 'red', email: 'new@x' });
    }
  });
});

/** A writer that does something else before each of its first commits. */
function writerBehind(meanwhile: () => Promise<unknown>, times = 1): BatchWriter {
  let left = times;
  const { log } = database;
  const delayed: RangeLog = {
    async append(request: WriteRequest) {
      left -= 1;
      if (left >= 0) await meanwhile();
      return log.append(request);
    },
    subscribe: (...given) => log.subscribe(...given),
    subscribeAll: (...given) => log.subscribeAll(...given),
  };
  const { tables } = database.services;
  const enrichment = { precompute: (frame: Uint8Array<ArrayBuffer>) => Promise.resolve(frame) };
  const deps = { tables, log: delayed, clock: systemClock, enrichment, columns: tables.columns };
  const ignore = () => undefined;
  return new BatchWriter(
    { ...deps, limits: { backlogWaitMs: 1_000 } },
    { wrote: ignore, paced: ignore, refused: ignore },
  );
}

describe('between the check of a write and its commit', () => {
  test.each([
    ['an overwrite', { inserts: { a: { team: 'red' } } }],
    ['a delete', { deletes: ['a'] }],
    ['a transform', { transforms: [set('a', 'team', 'red')] }],
  ])('%s does not reach a document that is hidden meanwhile', async (_, body) => {
    const hidden = { team: 'blue', secret: 1 };
    const writer = writerBehind(() => batch({ inserts: { a: hidden } }, owner));
    expect(await failureOf(writer.batch('notes', bodyOf(body), red))).toEqual(forbidden);
    expect(await stored()).toEqual(asStored({ ...start, a: hidden }));
  });

  test('an insert does not reach a hidden document that comes meanwhile', async () => {
    const writer = writerBehind(() => batch({ inserts: { c: { team: 'blue' } } }, owner));
    expect(await failureOf(writer.batch('notes', bodyOf({ inserts: { c: { team: 'red' } } }), red))).toEqual(forbidden);
  });

  test('a document that becomes its own meanwhile, or another one, is written as it is then', async () => {
    const transforms = [{ key: 'a', operations: [{ op: '$inc', path: 'n', value: 1 }] }];
    const writer = writerBehind(() => batch({ inserts: { a: { team: 'red', n: 5 } } }, owner));
    const tables = { notes: { inserts: { c: { team: 'red' } }, transforms }, open: { deletes: ['none'] } };
    expect(await writer.multiBatch(bodyOf({ tables }), red)).toMatchObject({ status: 'committed' });
    expect((await stored()).get('a')).toEqual({ team: 'red', n: 6 });
  });

  test('a read set does not hold for a document that is hidden, or comes to be seen, meanwhile', async () => {
    const commit = async (key: string, version: string, team: string) => {
      const read_set = [{ table: 'notes', key, version }];
      const writer = writerBehind(() => batch({ inserts: { [key]: { team } } }, owner));
      return writer.commit(bodyOf({ read_set, tables: {} }), red);
    };
    const gone = { code: 'transaction_conflict', details: expect.objectContaining({ current_version: '0' }) };
    expect(await failureOf(commit('a', await versionOf('a'), 'blue'))).toMatchObject(gone);
    expect(await failureOf(commit('b', '0', 'red'))).toEqual(refusal('transaction_conflict'));
    // Hidden it stays, whatever becomes of it.
    expect(await commit('z', '0', 'green')).toMatchObject({ status: 'committed' });
  });

  test('documents that keep changing are a conflict that says nothing of them', async () => {
    let n = 0;
    const change = () => {
      n += 1;
      return batch({ inserts: { a: { team: 'red', n } } }, owner);
    };
    const writer = writerBehind(change, 100);
    const thrown = await failureOf(writer.batch('notes', bodyOf({ deletes: ['a'] }), red));
    expect(thrown).toMatchObject({ code: 'transaction_conflict' });
    expect(JSON.stringify((thrown as { details?: object }).details ?? {})).not.toContain('version');
    expect((await stored()).get('a')).toEqual({ team: 'red', n });
  });
});
