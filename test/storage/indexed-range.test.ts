import { expect, setDefaultTimeout, test } from 'bun:test';
import type { IndexDefinition } from '../../src/index-kinds/all-kinds.ts';
import { IndexedRange } from '../../src/indexing/indexed-range.ts';
import type { RangeIndex } from '../../src/indexing/range-index.ts';
import { must } from '../../src/lib/assert.ts';
import { readFrame, rowKind } from '../../src/lib/document-frame.ts';
import { LocalRangeLog } from '../../src/replication/local-range-log.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';
import { until } from '../support/fault/until.ts';
import {
  createTable,
  type FrameContent,
  openTestStorage,
  rangeId,
  temporaryDirectory,
  write,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

const { put: document, delete: gone, partPut: vector } = rowKind;
const bounds = {
  gatherMs: 0,
  visibilityMs: 200,
  busyVisibilityMs: 2_000,
  visibilityBytes: 1_000,
  queueBytesMax: 2_000,
  backlogBytesMax: 2_000,
  checkpointMs: 30_000,
  checkpointBytes: 10_000,
  writerIdleMs: 5_000,
  verifyDelayMs: 1_000,
  vectorWriterIdleMs: 1_000,
};

/** An index that keeps the kinds of the rows that it was given, and waits while it is held. */
class KeepingIndex {
  readonly given: number[][] = [];
  checkpoints = 0;
  #sequence = 0;
  /** Set to hold every native call until it resolves. */
  held: Promise<void> | undefined;

  /** Opens it at its last commit, which is durable at once. */
  open(): RangeIndex {
    let sequence = this.#sequence;
    return {
      handle: 1,
      openedAtSequence: sequence,
      apply: async (bytes) => {
        await this.held;
        const frame = readFrame(bytes as Uint8Array<ArrayBuffer>);
        const rows = Array.from({ length: frame.rowCount }, (_, row) => frame.kind(row));
        this.given.push(rows);
        return { rows: rows.length, skipped: [] };
      },
      commit: async (to) => {
        sequence = to;
        this.#sequence = to;
      },
      checkpoint: async () => {
        this.checkpoints += 1;
        return { sequence, bytes: 0 };
      },
      stats: () => ({
        appliedSequence: sequence,
        checkpointSequence: sequence,
        docCount: 0,
        vectorCount: 0,
        termCount: 0,
        segmentCount: 0,
        diskBytes: 0,
        memoryBytes: 0,
      }),
      leftOut: () => [],
      memoryBytes: () => 0,
      rest: async () => {},
      verify: async () => {},
      closeSoon: () => {},
      close: async () => {},
    };
  }
}

/** An open range of a real store with one index of each kind; `indexes` by name. */
async function openRange(directory: string) {
  const storage = await openTestStorage(directory);
  const table = await createTable(storage, 'things', 1, ['text', 'dense', 'sparse']);
  const of = (name: string) => {
    const index = table.indexes.find((each) => each.name === name);
    const { incarnation, partId } = must(index, 'an index of the table');
    return { name, incarnation, partId, memOnly: false };
  };
  const definitions: IndexDefinition[] = [
    { ...of('text'), kind: 'full_text', schema: undefined },
    { ...of('dense'), kind: 'dense', dimension: 2, metric: 'cosine' },
    { ...of('sparse'), kind: 'sparse', minWeight: 0, topK: 10 },
  ];
  const indexes = { text: new KeepingIndex(), dense: new KeepingIndex(), sparse: new KeepingIndex() };
  const stored = await storage.openRange(rangeId(table));
  const removed: string[] = [];
  const rebuilds: string[] = [];
  const clock = new FakeClock();
  const range = new IndexedRange(
    {
      stored,
      log: new LocalRangeLog(storage),
      indexesDirectory: directory,
      openIndex:
        (_, { name }) =>
        async () =>
          indexes[name as keyof typeof indexes].open(),
      removeIndexFiles: (_, { name }) => void removed.push(name),
      clock,
      options: bounds,
      onIndexEvent: () => ({ rebuilding: (reason) => rebuilds.push(reason) }),
      hasTtl: () => false,
    },
    definitions,
  );
  await settle();
  const put = (content: FrameContent) => write(storage, rangeId(table), content);
  const close = async () => {
    await range.close();
    await storage.close();
  };
  const dense = of('dense').incarnation;
  return { storage, table, range, stored, indexes, definitions, removed, rebuilds, clock, put, close, dense };
}

test('every index gets the rows that concern it, and shows the others without work', async () => {
  using directory = temporaryDirectory();
  const { range, indexes, put, close, dense } = await openRange(directory.path);
  const given = async () => {
    await range.waitForIndexes('all', range.head);
    return Object.values(indexes).map((index) => index.given.splice(0).flat());
  };
  await put({ puts: { a: {}, b: {} } });
  expect(await given()).toEqual([[document, document], [], []]);
  await put({ puts: { a: {} }, vectors: { a: { [dense]: [1, 2] } } });
  expect(await given()).toEqual([[document, vector], [document, vector], []]);
  await put({ deletes: ['a'] });
  expect(await given()).toEqual([[gone], [gone], [gone]]);
  expect(range.facts().indexes.map(({ lag }) => lag)).toEqual([0, 0, 0]);
  await close();
});

test('a pin keeps tombstones in the feed after every index has taken them over, until it is released', async () => {
  using directory = temporaryDirectory();
  const { range, stored, clock, put, close } = await openRange(directory.path);
  const tombstones = () => {
    const page = stored.feed.read(0);
    const frame = page && readFrame(page.frame);
    return Array.from({ length: frame?.rowCount ?? 0 }, (_, row) => frame?.kind(row)).filter((kind) => kind === gone);
  };
  /** Has every index make a checkpoint, after which the feed is purged. */
  const checkpoint = async (key: string) => {
    await put({ puts: { [key]: {} } });
    await range.waitForIndexes('all', range.head);
    await clock.advance(bounds.checkpointMs);
    hasSeenPurge ||= range.isPurging;
    // The writer answers in order: the purge is behind it.
    await stored.setTtl({});
  };
  let hasSeenPurge = false;
  {
    using pin = range.pinFeed(range.head);
    await put({ puts: { a: {} } });
    await put({ deletes: ['a'] });
    await checkpoint('b');
    expect(tombstones().length).toBe(1);
    pin.advance(range.head);
    await checkpoint('c');
    expect(tombstones().length).toBe(0);
    await put({ deletes: ['b'] });
    await checkpoint('d');
    expect(tombstones().length).toBe(1);
  }
  await checkpoint('e');
  expect(tombstones().length).toBe(0);
  expect(hasSeenPurge).toBe(true);
  await close();
});

test('nobody waits any longer for an index that is dropped meanwhile', async () => {
  using directory = temporaryDirectory();
  const { range, indexes, put, close, dense } = await openRange(directory.path);
  const release = Promise.withResolvers<void>();
  indexes.dense.held = release.promise;
  await put({ puts: { a: {} }, vectors: { a: { [dense]: [1, 2] } } });
  const shown = range.waitForIndexes('all', range.head);
  const dropped = range.removeIndex('dense');
  indexes.dense.held = undefined;
  release.resolve();
  await Promise.all([shown, dropped]);
  await close();
});

test('a wait for an index goes on while the index is opened again, and so does one that begins then', async () => {
  using directory = temporaryDirectory();
  const { range, indexes, put, close, definitions } = await openRange(directory.path);
  const [text] = definitions;
  const release = Promise.withResolvers<void>();
  indexes.text.held = release.promise;
  await put({ puts: { a: {} } });
  let [isShown, isShownLater] = [false, false];
  const shown = range.waitForIndexes(['text'], range.head).then(() => {
    isShown = true;
  });
  const reopened = range.reopenIndex(must(text, 'the index of words'));
  await settle();
  const { head } = range;
  const shownLater = range.waitForIndexes(['text'], head).then(() => {
    isShownLater = true;
  });
  const replayed = range.applier('text')?.whenReplayed(new AbortController().signal);
  await settle();
  expect([isShown, isShownLater, range.applier('text')?.hasReplayed]).toEqual([false, false, false]);
  indexes.text.held = undefined;
  release.resolve();
  await Promise.all([shown, shownLater, reopened]);
  expect([await replayed, range.applier('text')?.progress.published]).toEqual([true, head]);
  await close();
});

test('rows that an index takes as it is opened again are no sign of damage', async () => {
  using directory = temporaryDirectory();
  const { range, indexes, put, close, definitions, rebuilds } = await openRange(directory.path);
  const release = Promise.withResolvers<void>();
  indexes.text.held = release.promise;
  await put({ puts: { a: {} } });
  await settle();
  const reopened = range.reopenIndex(must(definitions[0], 'the index of words'));
  await put({ puts: { b: {} } });
  indexes.text.held = undefined;
  release.resolve();
  await reopened;
  await range.waitForIndexes('all', range.head);
  expect([rebuilds, range.applier('text')?.index?.openedAtSequence]).toEqual([[], range.head]);
  await close();
});

test('writes wait while an index of vectors is too far behind, and go on when it has caught up', async () => {
  using directory = temporaryDirectory();
  const { range, indexes, put, close, dense } = await openRange(directory.path);
  const release = Promise.withResolvers<void>();
  indexes.dense.held = release.promise;
  const numbers = Array.from({ length: 100 }, () => 1);
  for (let count = 0; count < 8; count += 1) {
    await put({ puts: { [`k${count}`]: {} }, vectors: { [`k${count}`]: { [dense]: numbers } } });
  }
  expect(range.isBehind).toBe(true);
  const impatient = new AbortController();
  const givenUp = range.whenKeepsUp(impatient.signal);
  impatient.abort();
  await givenUp;
  expect(range.isBehind).toBe(true);
  const room = range.whenKeepsUp(new AbortController().signal);
  indexes.dense.held = undefined;
  release.resolve();
  await room;
  expect(range.isBehind).toBe(false);
  await range.waitForIndexes('all', range.head);
  expect(indexes.dense.given.flat().filter((kind) => kind === vector).length).toBeGreaterThanOrEqual(8);
  await close();
});

test('one that writes faster than any index is held by the bytes that wait in memory alone', async () => {
  using directory = temporaryDirectory();
  const { range, indexes, put, close, dense } = await openRange(directory.path);
  const release = Promise.withResolvers<void>();
  indexes.dense.held = release.promise;
  for (let count = 0; count < 2; count += 1) {
    await put({ puts: { [`k${count}`]: {} }, vectors: { [`k${count}`]: { [dense]: [1, 2] } } });
  }
  const { signal } = new AbortController();
  await range.whenKeepsUp(signal);
  let hasRoom = false;
  const room = range.whenKeepsUp(signal, 1).then(() => {
    hasRoom = true;
  });
  await range.whenKeepsUp(signal);
  expect([range.isBehind, hasRoom]).toEqual([false, false]);
  indexes.dense.held = undefined;
  release.resolve();
  await room;
  await close();
});

test('an index that has failed says so until it is open again', async () => {
  using directory = temporaryDirectory();
  const { range, indexes, put, close, dense, clock } = await openRange(directory.path);
  const state = () => range.report('dense')?.state;
  expect(state()).toBe('live');
  const fails = Promise.withResolvers<void>();
  indexes.dense.held = fails.promise;
  await put({ puts: { a: {} }, vectors: { a: { [dense]: [1, 2] } } });
  await settle();
  fails.reject(new Error('no room'));
  await until(async () => state() === 'failed');
  expect(range.report('text')?.state).toBe('live');
  indexes.dense.held = undefined;
  await clock.advance(1_000);
  await range.waitForIndexes('all', range.head);
  expect(state()).toBe('live');
  await close();
});

test('an index that is removed goes with its files, and its stored vectors when they are dropped', async () => {
  using directory = temporaryDirectory();
  const { storage, table, range, stored, indexes, removed, put, close, dense } = await openRange(directory.path);
  await put({ puts: { a: {} }, vectors: { a: { [dense]: [1, 2] } } });
  const bytes = stored.info().bytes;
  await storage.catalog.changeTable({ tableId: table.tableId, dropIndexes: [{ name: 'dense' }] });
  await range.removeIndex('dense');
  range.dropPart(dense);
  // Nothing is made durable of an index that goes.
  expect([removed, indexes.dense.checkpoints]).toEqual([['dense'], 0]);
  await until(async () => {
    await put({ puts: { b: {} } });
    return stored.info().bytes < bytes;
  });
  const page = readFrame(must(stored.feed.read(0, { parts: [dense] }), 'the changes of the range').frame);
  expect(Array.from({ length: page.rowCount }, (_, row) => page.kind(row))).not.toContain(vector);
  await close();
});
