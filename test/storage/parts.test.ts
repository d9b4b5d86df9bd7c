import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { must } from '../../src/lib/assert.ts';
import { type DocumentFrame, FrameBuilder, readFrame, rowIsAgain, rowKind } from '../../src/lib/document-frame.ts';
import { denseBody } from '../../src/lib/parts/dense-part.ts';
import { partBody, partDeleteBody, type partForm } from '../../src/lib/parts/part-body.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import type { FeedRows } from '../../src/storage/reader/change-feed.ts';
import type { RangeReader } from '../../src/storage/reader/range-reader.ts';
import type { AppliedWrite } from '../../src/storage/write-request.ts';
import { openBehind } from '../support/behind-the-server.ts';
import { readDense } from '../support/vectors/vector-part.ts';
import {
  createTable,
  failure,
  group,
  openTestStorage,
  requestTimeMs,
  temporaryDirectory,
  write,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One table of one range with the parts 1 and 2. */
class OpenedRange implements AsyncDisposable {
  readonly #directory = temporaryDirectory();
  storage!: Storage;
  range!: RangeReader;

  static async make(ttlDurationMs?: number): Promise<OpenedRange> {
    const opened = new OpenedRange();
    opened.storage = await openTestStorage(opened.#directory.path);
    const table = await createTable(opened.storage, 'things', 1, ['v0', 'v1']);
    opened.range = await opened.storage.openRange(must(table.ranges[0], 'a range').rangeId, {
      durationMs: ttlDurationMs,
    });
    return opened;
  }

  async reopen(): Promise<void> {
    const { rangeId } = this.range;
    await this.storage.close();
    this.storage = await openTestStorage(this.#directory.path);
    this.range = await this.storage.openRange(rangeId);
  }

  async append(build: (frame: FrameBuilder) => void): Promise<AppliedWrite> {
    const frame = new FrameBuilder();
    build(frame);
    const [applied] = await this.storage.append(group([{ rangeId: this.range.rangeId, frame: frame.finish() }]));
    return must(applied, 'an answer');
  }

  sequenceOf(key: string): number {
    return must(this.range.documents.get(key), key).sequence;
  }

  /** The first value of a document's vector in a part. */
  valueOf(key: string, partId = 1): number | undefined {
    const { ordinal } = must(this.range.documents.get(key), key);
    const body = this.range.parts.read([ordinal], [partId]).found.get(ordinal)?.get(partId);
    return body && readDense(body)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.storage.close();
    this.#directory[Symbol.dispose]();
  }
}

/** A part for a document that has this sequence. */
function addPart(frame: FrameBuilder, key: string, sequence: number, value: number | null, partId = 1): void {
  const kind = value === null ? rowKind.partDelete : rowKind.partPut;
  const body = value === null ? partDeleteBody(partId) : denseBody(partId, Float32Array.of(value));
  frame.setRequiredSequence(frame.append(kind, key, body), sequence);
}

function addNote(frame: FrameBuilder, key: string, value: string): void {
  frame.append(rowKind.state, key, encoder.encode(value));
}

function noteOf({ range }: OpenedRange, key: string): string | undefined {
  const value = range.notes.get(key);
  return value && decoder.decode(value);
}

describe('a part for a document of a sequence', () => {
  test('applies only while the document has it', async () => {
    await using opened = await OpenedRange.make();
    await write(opened.storage, opened.range.rangeId, { puts: { a: {}, b: {}, c: {} } });
    const [a, b] = [opened.sequenceOf('a'), opened.sequenceOf('b')];
    await write(opened.storage, opened.range.rangeId, { puts: { b: { n: 1 } }, deletes: ['c'] });
    const applied = await opened.append((frame) => {
      addPart(frame, 'a', a, 1);
      addPart(frame, 'b', b, 2);
      addPart(frame, 'c', b + 1, 3);
      addPart(frame, 'nowhere', 9, 4);
    });
    expect(applied.counts.skipped).toBe(3);
    expect([opened.valueOf('a'), opened.valueOf('b')]).toEqual([1, undefined]);
    const images = must(applied.images, 'images');
    expect(readFrame(images.frame).rowCount).toBe(1);
    expect(images.lastSequence).toBe(images.firstSequence);
    expect(opened.sequenceOf('a')).toBe(a);
    await opened.append((frame) => addPart(frame, 'a', a, null));
    expect(opened.valueOf('a')).toBeUndefined();
  });

  test('does not reach a document that has expired', async () => {
    await using opened = await OpenedRange.make(1_000);
    await write(opened.storage, opened.range.rangeId, { puts: { a: {} }, ttlBaseMs: requestTimeMs - 2_000 });
    const applied = await opened.append((frame) => addPart(frame, 'a', opened.sequenceOf('a'), 1));
    expect([applied.images, applied.counts.skipped]).toEqual([undefined, 1]);
  });

  test('may have a form that this release does not know', async () => {
    await using opened = await OpenedRange.make();
    await write(opened.storage, opened.range.rangeId, { puts: { a: {} } });
    const form = 99 as (typeof partForm)['asset'];
    await opened.append((frame) => {
      const row = frame.append(rowKind.partPut, 'a', partBody(1, form, Uint8Array.of(1, 2, 3)));
      frame.setRequiredSequence(row, opened.sequenceOf('a'));
    });
    const { ordinal } = must(opened.range.documents.get('a'), 'a');
    expect(opened.range.parts.read([ordinal], [1]).found.get(ordinal)?.get(1)?.[4]).toBe(99);
  });
});

describe('a note of the server', () => {
  test('is written with the rows of its request, takes no sequence, and is in no feed', async () => {
    await using opened = await OpenedRange.make();
    const applied = await opened.append((frame) => {
      frame.append(rowKind.put, 'a', encoder.encode('{}'));
      addNote(frame, 'e/1', 'live');
      addNote(frame, 'e/2', 'later');
    });
    const { firstSequence, lastSequence } = must(applied.images, 'images');
    expect(lastSequence).toBe(firstSequence);
    expect(noteOf(opened, 'e/1')).toBe('live');
    expect(readFrame(must(opened.range.feed.read(0), 'a page').frame).rowCount).toBe(1);
    await opened.append((frame) => {
      addNote(frame, 'e/1', 'done');
      addNote(frame, 'e/2', '');
    });
    await opened.reopen();
    expect([noteOf(opened, 'e/1'), noteOf(opened, 'e/2')]).toEqual(['done', undefined]);
    expect(opened.range.info().head).toBe(lastSequence);
  });

  test('is read by prefix, in order and in pages', async () => {
    await using opened = await OpenedRange.make();
    await opened.append((frame) => {
      for (const key of ['f/2/1', 'f/1/9', 'f/1/10', 'e/1', 'f/1/é', 'f0']) addNote(frame, key, key);
    });
    const { notes } = opened.range;
    expect(notes.within('f/1/', 10).map(({ key }) => key)).toEqual(['f/1/10', 'f/1/9', 'f/1/é']);
    expect(notes.within('f/', 2).map(({ key }) => key)).toEqual(['f/1/10', 'f/1/9']);
    expect(notes.within('f/', 2, 'f/1/9').map(({ key }) => key)).toEqual(['f/1/é', 'f/2/1']);
  });

  test('goes with the part that it is about', async () => {
    await using opened = await OpenedRange.make();
    await opened.append((frame) => {
      for (const key of ['e/1', 'f/1/7', 'f/1/8', 'e/2', 'e/11', 'f/11/7', 'd/1']) addNote(frame, key, key);
    });
    await opened.range.dropPart(1);
    expect(opened.range.notes.within('', 10).map(({ key }) => key)).toEqual(['d/1', 'e/11', 'e/2', 'f/11/7']);
  });

  test('is undone with a request that fails', async () => {
    await using opened = await OpenedRange.make();
    await write(opened.storage, opened.range.rangeId, { puts: { a: { n: 'x' } } });
    const frame = new FrameBuilder();
    addNote(frame, 'e/1', 'lost');
    const { rangeId } = opened.range;
    const readSet = [{ rangeId, key: 'a', version: 1 }];
    const append = opened.storage.append(group([{ rangeId, frame: frame.finish() }], { readSet }));
    expect(await failure(append)).toMatchObject({ code: 'transaction_conflict' });
    expect(noteOf(opened, 'e/1')).toBeUndefined();
  });

  test('is left out where a part that was read with a document is not as it was', async () => {
    await using opened = await OpenedRange.make();
    const { rangeId } = opened.range;
    await write(opened.storage, rangeId, { puts: { a: {} } });
    const version = opened.sequenceOf('a');
    const change = (value: number | null, partId = 1) =>
      opened.append((frame) => addPart(frame, 'a', version, value, partId));
    await change(0.5);
    const sequencesOf = () => {
      const { ordinal } = must(opened.range.documents.get('a'), 'a document');
      return [1, 2].map((id) => [id, opened.range.parts.sequences([ordinal], id).get(ordinal) ?? 0] as const);
    };
    let parts = sequencesOf();
    const note = () => {
      const frame = new FrameBuilder();
      addNote(frame, 'seen', JSON.stringify(parts));
      const readSet = [{ rangeId, key: 'a', version, parts }];
      return opened.storage.append(group([{ rangeId, frame: frame.finish() }], { readSet }));
    };
    for (const [value, partId] of [
      [0.25, 1],
      [0.5, 2],
      [null, 1],
    ] as const) {
      await note();
      await change(value, partId);
      expect(await failure(note())).toMatchObject({ code: 'transaction_conflict' });
      parts = sequencesOf();
    }
    await note();
    expect(noteOf(opened, 'seen')).toBe(JSON.stringify(parts));
  });

  test('travels in the images of a write over several ranges, and is finished with it', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    const table = await createTable(storage, 'things', 2);
    const ranges = await Promise.all(table.ranges.map(({ rangeId }) => storage.openRange(rangeId)));
    const writes = ranges.map(({ rangeId }, at) => {
      const frame = new FrameBuilder();
      addNote(frame, 'intent', String(at));
      if (at === 0) frame.append(rowKind.put, 'a', encoder.encode('{}'));
      return { rangeId, frame: frame.finish() };
    });
    const applied = await storage.append(group(writes));
    const kindsOf = ({ frame }: { frame: Uint8Array<ArrayBuffer> }) => {
      const rows: DocumentFrame = readFrame(frame);
      return Array.from({ length: rows.rowCount }, (_, row) => rows.kind(row));
    };
    expect(applied.map(({ images }) => kindsOf(must(images, 'images')))).toEqual([
      [rowKind.state, rowKind.put],
      [rowKind.state],
    ]);
    expect(ranges.map(({ notes }) => decoder.decode(notes.get('intent')))).toEqual(['0', '1']);
    await storage.close();
  });
});

describe('the feed', () => {
  /** Kind, ordinal, sequence relative to the first, and whether it is told again. */
  function rowsOf(range: RangeReader, rows: FeedRows, after = 0) {
    const page = range.feed.read(after, rows);
    const frame = readFrame(must(page, 'a page').frame);
    return Array.from({ length: frame.rowCount }, (_, row) => [
      frame.kind(row),
      frame.ordinal(row),
      frame.sequence(row) - range.info().firstSequence,
      ...(frame.flags(row) === rowIsAgain ? ['again'] : []),
    ]);
  }

  test('tells of documents, of parts, or of documents with their parts', async () => {
    await using opened = await OpenedRange.make();
    const { storage, range } = opened;
    const { put, partPut, partDelete, delete: gone } = rowKind;
    await write(storage, range.rangeId, { puts: { a: {}, b: {}, c: {} }, vectors: { a: { 1: [1], 2: [2] } } });
    const joined = { documents: true, parts: [1, 2] };
    expect(rowsOf(range, { documents: true })).toEqual([
      [put, 1, 0],
      [put, 2, 3],
      [put, 3, 4],
    ]);
    expect(rowsOf(range, { parts: [2] })).toEqual([[partPut, 1, 2]]);
    expect(rowsOf(range, joined)).toEqual([
      [put, 1, 0],
      [partPut, 1, 1],
      [partPut, 1, 2],
      [put, 2, 3],
      [put, 3, 4],
    ]);
    const before = range.info().head;
    await opened.append((frame) => {
      addPart(frame, 'b', opened.sequenceOf('b'), 5, 2);
      addPart(frame, 'a', opened.sequenceOf('a'), null);
    });
    await write(storage, range.rangeId, { deletes: ['c'] });
    expect(rowsOf(range, { parts: [1] }, before)).toEqual([
      [partDelete, 1, 6],
      [gone, 3, 7],
    ]);
    expect(rowsOf(range, joined, before)).toEqual([
      [put, 2, 3, 'again'],
      [partPut, 2, 5],
      [put, 1, 0, 'again'],
      [partPut, 1, 2],
      [gone, 3, 7],
    ]);
    expect(rowsOf(range, { documents: true, parts: [1] }, before)).toEqual([
      [put, 1, 0, 'again'],
      [gone, 3, 7],
    ]);
  });
});

test('part ids are given by each table', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  await createTable(storage, 'first', 1, ['a', 'b']);
  const { tableId, indexes } = await createTable(storage, 'second', 1, ['a']);
  expect(indexes.map(({ partId }) => partId)).toEqual([1]);
  const dropped = await storage.catalog.changeTable({ tableId, dropIndexes: [{ name: 'a' }] });
  expect(dropped.goneParts).toEqual([1]);
  const addIndexes = [{ name: 'a', config: '{}', state: 'extra' }];
  const again = await storage.catalog.changeTable({ tableId, addIndexes });
  expect(again.indexes.map(({ partId }) => partId)).toEqual([2]);
  await storage.close();
});

test('reads of one instant see nothing that is committed between them', async () => {
  await using opened = await OpenedRange.make();
  await opened.append((frame) => frame.append(rowKind.put, 'a', encoder.encode('{}')));
  const before = opened.sequenceOf('a');
  using other = openBehind(opened.range.path);
  const seen = opened.range.atOneInstant(() => {
    const first = opened.sequenceOf('a');
    other.run('UPDATE documents SET sequence = sequence + 100');
    return [first, opened.range.atOneInstant(() => opened.sequenceOf('a'))];
  });
  expect([seen, opened.sequenceOf('a')]).toEqual([[before, before], before + 100]);
  expect(() =>
    opened.range.atOneInstant(() => {
      throw new Error('stop');
    }),
  ).toThrow('stop');
  other.run('UPDATE documents SET sequence = sequence - 100');
  expect(opened.sequenceOf('a')).toBe(before);
});
