import { Database } from 'bun:sqlite';
import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { must } from '../../src/lib/assert.ts';
import { FrameBuilder, readFrame, rowKind } from '../../src/lib/document-frame.ts';
import { checkRangeFile } from '../../src/storage/check/range-check.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import { packedBytesMax } from '../../src/storage/packing/stored-bodies.ts';
import { scanDocuments } from '../../src/storage/reader/document-scan.ts';
import type { RangeReader } from '../../src/storage/reader/range-reader.ts';
import { RangeStores } from '../../src/storage/reader/range-stores.ts';
import { openBehind } from '../support/behind-the-server.ts';
import {
  createTable,
  documentOf,
  failure,
  frameOf,
  group,
  openTestStorage,
  rangeId,
  temporaryDirectory,
  write,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

const words = ['amber', 'birch', 'cedar', 'hölzern', '🌲', 'thread'];
const documentAt = (n: number) => ({
  n,
  text: Array.from({ length: 20 }, (_, at) => words[(n * 7 + at * at * 3 + (n >> 3)) % words.length]).join(' '),
});
const rows = (from: number, count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`k${String(from + at).padStart(5, '0')}`, documentAt(from + at)]),
  );
/** More than a range has when its first dictionary is made. */
const many = 2_500;

/** A range of 2,500 plain documents and 100 packed ones, open. */
class Place implements AsyncDisposable {
  readonly #directory: ReturnType<typeof temporaryDirectory>;
  readonly id: number;
  storage: Storage;
  range: RangeReader;

  private constructor(directory: ReturnType<typeof temporaryDirectory>, storage: Storage, range: RangeReader) {
    this.#directory = directory;
    this.storage = storage;
    this.range = range;
    this.id = range.rangeId;
  }

  static async open(): Promise<Place> {
    const directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const id = rangeId(await createTable(storage));
    const place = new Place(directory, storage, await storage.openRange(id, undefined, true));
    await write(storage, id, { puts: rows(0, many) });
    await write(storage, id, { puts: rows(many, 100) });
    return place;
  }

  get file(): string {
    return this.storage.directory.documentsFile(this.id, 1);
  }

  async reopen(packsBodies: boolean): Promise<void> {
    await this.storage.close();
    this.storage = await openTestStorage(this.#directory.path);
    this.range = await this.storage.openRange(this.id, undefined, packsBodies);
  }

  /** Values that a statement of SQL finds in the file. */
  ask(sql: string): unknown[] {
    using database = openBehind(this.file);
    return database.query(sql).values().flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.storage.close();
    this.#directory[Symbol.dispose]();
  }
}

const isPacked = 'raw_bytes IS NOT NULL';

test('bodies are packed from the first dictionary on, and every way of reading gives them as they were written', async () => {
  await using place = await Place.open();
  const { range } = place;
  expect(place.ask('SELECT id FROM dictionaries')).toEqual([1]);
  expect(place.ask(`SELECT count(*) FROM documents WHERE ${isPacked}`)).toEqual([100]);
  const [packed, raw] = place.ask(`SELECT sum(length(body)), sum(raw_bytes) FROM documents WHERE ${isPacked}`);
  expect(Number(packed)).toBeLessThan(Number(raw) / 3);
  const all = rows(0, many + 100);
  const read = (documents: Iterable<{ key: string; body: Uint8Array }>) =>
    Object.fromEntries(Array.from(documents, ({ key, body }) => [key, documentOf(body)]));

  const [one, other] = [`k0${many}`, `k0${many + 99}`] as const;
  expect(documentOf(range.documents.get(one)?.body)).toEqual(documentAt(many));
  const ordinals = [one, 'k00001', other].map((key) => must(range.documents.get(key), 'a document').ordinal);
  const texts = range.documents.byOrdinals(ordinals).documents.map(({ text }) => JSON.parse(text));
  expect(texts.map(({ n }) => n).sort((a, b) => a - b)).toEqual([1, many, many + 99]);
  const [alone] = range.documents.byOrdinals([must(ordinals[0], 'an ordinal')]).documents;
  expect(JSON.parse(must(alone, 'a document').text)).toEqual(documentAt(many));
  const bounds = { fromKey: '', fromInclusive: true, toKey: null, toInclusive: false };
  expect(read(range.documents.page(bounds, 10_000, 2 ** 30).documents)).toEqual(all);
  const stores = new RangeStores(place.file, { name: 'the range' });
  expect(read(scanDocuments(stores.documents, { name: 'the range' }, 0, []))).toEqual(all);
  stores.close();
  const fed: Record<string, unknown> = {};
  for (let page = range.feed.read(0); page; page = range.feed.read(page.lastSequence)) {
    const frame = readFrame(page.frame);
    expect(page.damaged).toEqual([]);
    for (let row = 0; row < frame.rowCount; row += 1) {
      fed[frame.key(row)] = documentOf(frame.body(row));
      expect(frame.crc(row)).toBe(Bun.hash.crc32(frame.body(row)));
    }
  }
  expect(fed).toEqual(all);
  for (let page = range.documents.scrubPage(0); page; page = range.documents.scrubPage(page.lastRow)) {
    expect(page.damagedKeys).toEqual([]);
  }
});

test('transforms, merges and deletes work on packed rows, and the bytes of a range are those of its bodies', async () => {
  await using place = await Place.open();
  const { storage, id } = place;
  const key = `k0${many + 1}`;
  const before = place.range.info().bytes;
  await write(storage, id, { transforms: [{ key, operations: [{ op: '$set', path: 'n', value: 9 }] }] });
  expect(documentOf(place.range.documents.get(key)?.body)).toEqual({ ...documentAt(many + 1), n: 9 });
  expect(before - place.range.info().bytes).toBe(String(many + 1).length - 1);
  const merge = { afterKey: `k0${many + 9}`, toKey: `k0${many + 11}`, dryRun: false };
  const records = new FrameBuilder();
  const body = new TextEncoder().encode(JSON.stringify(documentAt(many + 10)));
  records.append(rowKind.put, `k0${many + 10}`, body);
  const [merged] = await storage.append(group([{ rangeId: id, frame: records.finish(), merge }]));
  expect(must(merged, 'an answer').counts).toMatchObject({ keysScanned: 2, skipped: 1, deleted: 1, upserted: 0 });
  await write(storage, id, { deletes: [`k0${many + 20}`] });
  const { bytes } = place.range.info();
  await place.reopen(true);
  expect(place.range.info().bytes).toBe(bytes);
  await storage.walCheckpoint().catch(() => undefined);
  expect(checkRangeFile(place.file).findings).toEqual([]);
});

test('packing is switched off and on at any time: what is stored stays as it is', async () => {
  await using place = await Place.open();
  const packed = () => place.ask(`SELECT count(*) FROM documents WHERE ${isPacked}`);
  await place.reopen(false);
  await write(place.storage, place.id, { puts: rows(many + 100, 100) });
  expect(packed()).toEqual([100]);
  await place.reopen(true);
  await write(place.storage, place.id, { puts: rows(many + 200, 100) });
  expect(packed()).toEqual([200]);
  expect(place.ask('SELECT count(*) FROM dictionaries')).toEqual([1]);
  await place.reopen(false);
  for (const n of [0, many, many + 150, many + 250]) {
    const document = place.range.documents.get(`k${String(n).padStart(5, '0')}`);
    expect(documentOf(document?.body)).toEqual(documentAt(n));
  }
  const { file } = place;
  expect(checkRangeFile(file).findings).toEqual([]);
});

test('small bodies, large ones and those that no code makes smaller are stored as they are', async () => {
  await using place = await Place.open();
  const random = Array.from({ length: 400 }, (_, at) => String.fromCodePoint(0x4e00 + ((at * 7_919) % 20_000)));
  const puts = { a: { n: 1 }, b: { text: 'amber '.repeat(packedBytesMax / 6) }, c: { text: random.join('') } };
  await write(place.storage, place.id, { puts });
  expect(place.ask(`SELECT count(*) FROM documents WHERE key < CAST('d' AS BLOB) AND ${isPacked}`)).toEqual([0]);
  for (const [key, value] of Object.entries(puts)) {
    expect(documentOf(place.range.documents.get(key)?.body)).toEqual(value);
  }
});

test('a range that has grown gets a dictionary of what it holds by then', async () => {
  await using place = await Place.open();
  const put = (from: number) => {
    const puts = Array.from({ length: 500 }, (_, at): [string, unknown] => [
      `m${from + at}`,
      { text: `${`other words ${from + at} of another kind `.repeat(40)}` },
    ]);
    return write(place.storage, place.id, { puts: Object.fromEntries(puts) });
  };
  for (let from = 0; from < 3_500; from += 500) await put(from);
  expect(place.ask('SELECT id FROM dictionaries')).toEqual([1, 2]);
  await put(10_000);
  expect(documentOf(place.range.documents.get('m10')?.body)).toBeDefined();
  expect(documentOf(place.range.documents.get('m10001')?.body)).toBeDefined();
  expect(checkRangeFile(place.file).findings).toEqual([]);
});

test('a request that fails leaves no dictionary, and the next one writes it', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const range = await storage.openRange(id, undefined, true);
  await write(storage, id, { puts: rows(0, many) });
  const stale = { readSet: [{ rangeId: id, key: 'k00001', version: 1 }] };
  const refused = storage.append(group([{ rangeId: id, frame: frameOf({ puts: rows(many, 3) }) }], stale));
  expect(await failure(refused)).toMatchObject({ code: 'transaction_conflict' });
  const file = storage.directory.documentsFile(id, 1);
  const dictionaries = () => {
    using database = openBehind(file);
    return database.query('SELECT id FROM dictionaries').values().flat();
  };
  expect(dictionaries()).toEqual([]);
  await write(storage, id, { puts: rows(many, 5) });
  expect(documentOf(range.documents.get(`k0${many + 2}`)?.body)).toEqual(documentAt(many + 2));
  expect(dictionaries()).toEqual([1]);
  await storage.close();
  expect(checkRangeFile(file).findings).toEqual([]);
});

describe('damage', () => {
  const key = `k0${many + 5}`;
  const damages: [what: string, statement: string][] = [
    ['a changed code', `UPDATE documents SET body = unhex(substr(hex(body), 1, 20) || '00' || substr(hex(body), 23))`],
    ['a body that has lost its end', 'UPDATE documents SET body = substr(body, 1, length(body) - 2)'],
    ['another number of bytes', 'UPDATE documents SET raw_bytes = raw_bytes + 1'],
    ['more bytes than there is memory for', 'UPDATE documents SET raw_bytes = 1 << 50'],
    ['less than no bytes', 'UPDATE documents SET raw_bytes = -1'],
    ['a dictionary that is not there', `UPDATE documents SET body = CAST(x'07' || substr(body, 2) AS BLOB)`],
  ];
  test.each(damages)('%s is found by a read, the scrubber and the check', async (_, statement) => {
    await using place = await Place.open();
    place.ask(`${statement} WHERE key = CAST('${key}' AS BLOB)`);
    expect(() => place.range.documents.get(key)).toThrow(`the stored document "${key}" does not match its checksum`);
    const scrubbed: string[] = [];
    for (let page = place.range.documents.scrubPage(0); page; page = place.range.documents.scrubPage(page.lastRow)) {
      scrubbed.push(...page.damagedKeys);
    }
    expect(scrubbed).toEqual([key]);
    const transforms = [{ key, operations: [{ op: '$inc', path: 'n', value: 1 }] }];
    expect(await failure(write(place.storage, place.id, { transforms }))).toMatchObject({ code: 'data_corrupted' });
    expect(documentOf(place.range.documents.get(`k0${many + 6}`)?.body)).toEqual(documentAt(many + 6));
    await place.storage.walCheckpoint();
    const { findings } = checkRangeFile(place.file);
    expect(findings).toContainEqual(expect.objectContaining({ problem: 'document', key }));
  });

  test('a damaged dictionary is named by the check, and its documents are damaged, no others', async () => {
    await using place = await Place.open();
    place.ask("UPDATE dictionaries SET tokens = unhex(substr(hex(tokens), 1, 2 * length(tokens) - 2) || '00')");
    await place.reopen(true);
    expect(() => place.range.documents.get(key)).toThrow('does not match its checksum');
    expect(documentOf(place.range.documents.get('k00001')?.body)).toEqual(documentAt(1));
    // Without a dictionary to trust nothing is packed.
    await write(place.storage, place.id, { puts: { [key]: documentAt(1) } });
    expect(documentOf(place.range.documents.get(key)?.body)).toEqual(documentAt(1));
    const { findings } = checkRangeFile(place.file);
    expect(findings[0]).toMatchObject({ problem: 'dictionary' });
    expect(findings).toHaveLength(1 + 99);
  });
});

describe('a writer that is killed', () => {
  const child = Bun.fileURLToPath(new URL('./crash-child.ts', import.meta.url));
  const failpoints = ['storage.before-commit', 'storage.after-commit', 'redo.after-record', 'redo.between-ranges'];
  test.each(failpoints)('at %s leaves no body without its dictionary', async (failpoint) => {
    using directory = temporaryDirectory();
    let storage = await openTestStorage(directory.path);
    const table = await createTable(storage, 'things', 3, ['v0']);
    for (const { rangeId, startKey } of table.ranges) {
      const puts = Object.entries(rows(0, many)).map(([key, value]) => [`${startKey}-${key}`, value]);
      await write(storage, rangeId, { puts: Object.fromEntries(puts) });
    }
    await storage.close();
    const running = Bun.spawn([process.execPath, child, directory.path, failpoint, 'packs'], { stdout: 'ignore' });
    await running.exited;
    expect(running.signalCode).toBe('SIGKILL');
    storage = await openTestStorage(directory.path);
    for (const { rangeId, startKey } of table.ranges) {
      const range = await storage.openRange(rangeId, undefined, true);
      const key = `${startKey}-more`;
      await write(storage, rangeId, { puts: { [key]: documentAt(1), [`${key}2`]: documentAt(2) } });
      expect(documentOf(range.documents.get(`${key}2`)?.body)).toEqual(documentAt(2));
      expect(documentOf(range.documents.get(`${startKey}-k00001`)?.body)).toEqual(documentAt(1));
    }
    await storage.close();
    for (const { rangeId } of table.ranges) {
      const file = storage.directory.documentsFile(rangeId, 1);
      expect(checkRangeFile(file).findings).toEqual([]);
      using database = new Database(file);
      expect(database.query(`SELECT count(*) > 1 FROM documents WHERE ${isPacked}`).values()).toEqual([[1]]);
      expect(database.query('SELECT count(*) FROM dictionaries').values()).toEqual([[1]]);
    }
  });
});
