import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { must } from '../../src/lib/assert.ts';
import { readFrame } from '../../src/lib/document-frame.ts';
import { checkRangeFile } from '../../src/storage/check/range-check.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import type { RangeReader } from '../../src/storage/reader/range-reader.ts';
import {
  createTable,
  documentOf,
  failure,
  frameOf,
  group,
  openTestStorage,
  rangeId,
  temporaryDirectory,
} from '../storage/storage-fixture.ts';

type Model = Map<string, Record<string, unknown>>;

/** The text is long enough to be packed. */
type Document = Record<string, unknown> & { n: number; text?: string };

type Operation =
  | { kind: 'batch'; puts: Record<string, Document>; deletes: string[]; increments: string[]; upsert: boolean }
  | { kind: 'merge'; records: Record<string, Document> }
  | { kind: 'compare-and-set'; key: string; stale: boolean; n: number }
  | { kind: 'purge' }
  | { kind: 'checkpoint' }
  | { kind: 'reopen'; packsBodies: boolean };

const key = fc.constantFrom('a', 'b', 'c', 'd', 'é', 'f', '😀', '\uffff');
const words = ['amber', 'birch', 'cedar', 'h\u00f6lzern', '\u{1f332}'];
const document: fc.Arbitrary<Document> = fc.record(
  {
    n: fc.integer({ min: -5, max: 5 }),
    text: fc.array(fc.constantFrom(...words), { minLength: 8, maxLength: 12 }).map((some) => some.join(' ')),
  },
  { requiredKeys: ['n'], noNullPrototype: true },
);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('batch' as const),
      puts: fc.dictionary(key, document, { maxKeys: 4, noNullPrototype: true }),
      deletes: fc.array(key, { maxLength: 3 }),
      increments: fc.array(key, { maxLength: 3 }),
      upsert: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('merge' as const),
      records: fc.dictionary(key, document, { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('compare-and-set' as const),
      key,
      stale: fc.boolean(),
      n: fc.integer({ min: 10, max: 20 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'purge' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'checkpoint' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const), packsBodies: fc.boolean() }) },
);

/** The range under test, and what a follower of its change feed holds. */
class Subject {
  readonly directory: string;
  storage: Storage;
  range: RangeReader;
  readonly #follower = new Map<number, { key: string; body: unknown }>();
  #followed = 0;

  private constructor(directory: string, storage: Storage, range: RangeReader) {
    this.directory = directory;
    this.storage = storage;
    this.range = range;
  }

  static async open(directory: string): Promise<Subject> {
    const storage = await openTestStorage(directory);
    const table = await createTable(storage);
    const subject = new Subject(directory, storage, await storage.openRange(rangeId(table), undefined, true));
    await subject.#makeDictionary();
    return subject;
  }

  /** Documents of which a dictionary is made; they go again, and it stays. */
  async #makeDictionary(): Promise<void> {
    const { rangeId } = this.range;
    const text = (place: number) => words.map((_, at) => words[(place * (at + 1)) % words.length]).join(' ');
    const puts = Object.fromEntries(Array.from({ length: 4_000 }, (_, n) => [`f${n}`, { n, text: text(n).repeat(3) }]));
    await this.storage.append(group([{ rangeId, frame: frameOf({ puts }) }]));
    await this.storage.append(group([{ rangeId, frame: frameOf({ deletes: Object.keys(puts) }) }]));
  }

  async reopen(packsBodies: boolean): Promise<void> {
    const info = this.range.info();
    await this.storage.close();
    this.storage = await openTestStorage(this.directory);
    this.range = await this.storage.openRange(info.rangeId, undefined, packsBodies);
    expect(this.range.info()).toEqual(info);
  }

  /** Reads the feed from where it stopped, as an index does. */
  follow(): void {
    for (let page = this.range.feed.read(this.#followed); page; page = this.range.feed.read(this.#followed)) {
      const frame = readFrame(page.frame);
      for (let row = 0; row < frame.rowCount; row += 1) {
        if (frame.kind(row) === 2) this.#follower.delete(frame.ordinal(row));
        else this.#follower.set(frame.ordinal(row), { key: frame.key(row), body: documentOf(frame.body(row)) });
      }
      this.#followed = page.lastSequence;
    }
  }

  get followed(): number {
    return this.#followed;
  }

  followerContent(): [string, unknown][] {
    return [...this.#follower.values()].map(({ key, body }) => [key, body]);
  }
}

async function apply(operation: Operation, subject: Subject, model: Model): Promise<void> {
  const { storage, range } = subject;
  const { rangeId } = range;
  switch (operation.kind) {
    case 'batch': {
      const { puts, increments, upsert } = operation;
      const deletes = operation.deletes.filter((name) => !(name in puts));
      const operations = [{ op: '$inc', path: 'n', value: 1 }];
      const transforms = increments.map((name) => ({ key: name, operations, upsert }));
      await storage.append(group([{ rangeId, frame: frameOf({ puts, deletes, transforms }) }]));
      for (const [name, value] of Object.entries(puts)) model.set(name, value);
      for (const name of deletes) model.delete(name);
      for (const name of increments) {
        const held = model.get(name) ?? (upsert ? {} : undefined);
        if (held) model.set(name, { ...held, n: Number(held.n ?? 0) + 1 });
      }
      return;
    }
    case 'merge': {
      const keys = Object.keys(operation.records).sort((left, right) =>
        Buffer.compare(Buffer.from(left), Buffer.from(right)),
      );
      const toKey = must(keys[keys.length - 1], 'no records');
      const merge = { afterKey: '', toKey, dryRun: false };
      await storage.append(group([{ rangeId, frame: frameOf({ puts: operation.records }), merge }]));
      for (const name of model.keys())
        if (Buffer.compare(Buffer.from(name), Buffer.from(toKey)) <= 0) model.delete(name);
      for (const [name, value] of Object.entries(operation.records)) model.set(name, value);
      return;
    }
    case 'compare-and-set': {
      const version = range.documents.get(operation.key)?.sequence ?? 0;
      const request = group([{ rangeId, frame: frameOf({ puts: { [operation.key]: { n: operation.n } } }) }], {
        readSet: [{ rangeId, key: operation.key, version: operation.stale ? version + 1 : version }],
      });
      if (operation.stale)
        expect(await failure(storage.append(request))).toMatchObject({ code: 'transaction_conflict' });
      else {
        await storage.append(request);
        model.set(operation.key, { n: operation.n });
      }
      return;
    }
    case 'purge':
      subject.follow();
      await range.purgeTombstones(subject.followed);
      return;
    case 'checkpoint':
      await storage.walCheckpoint();
      return;
    case 'reopen':
      await subject.reopen(operation.packsBodies);
  }
}

function compare(subject: Subject, model: Model): void {
  const expected = [...model].sort(([left], [right]) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
  const { documents } = subject.range.documents.page({
    fromKey: '',
    fromInclusive: true,
    toKey: null,
    toInclusive: false,
  });
  expect(documents.map(({ key, body }): [string, unknown] => [key, documentOf(body)])).toEqual(expected);
  expect(subject.range.info().documents).toBe(model.size);
}

test('a range behaves like a map, through merges, purges, checkpoints and reopens, its bodies packed or not', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (operations) => {
      using directory = temporaryDirectory();
      const subject = await Subject.open(directory.path);
      const model: Model = new Map();
      for (const each of operations) {
        await apply(each, subject, model);
        compare(subject, model);
      }
      subject.follow();
      expect(new Map(subject.followerContent())).toEqual(new Map(model));
      const file = subject.storage.directory.documentsFile(subject.range.rangeId, 1);
      await subject.storage.close();
      expect(checkRangeFile(file).findings).toEqual([]);
    }),
    { numRuns: 25 },
  );
}, 120_000);
