import { expect, spyOn, test } from 'bun:test';
import { buildFrame, scanWrite, sectionEntries } from '../../../src/engine/write-frame.ts';
import { readFrame } from '../../../src/lib/document-frame.ts';
import type { RangeReader } from '../../../src/storage/reader/range-reader.ts';
import type { Table } from '../../../src/tables/table.ts';
import { documentAsStaged } from '../../../src/tables/transactions/staged-document.ts';
import { foreseeTransforms } from '../../../src/tables/writes/foreseen-transforms.ts';

const count = 500;
const text = 'x'.repeat(80_000);
const operations = [{ op: '$inc', path: 'n', value: 1 }];

test('a document under many staged transforms is read once', () => {
  const transforms = Array.from({ length: count }, () => ({
    operations: Buffer.from(JSON.stringify(operations)),
    upsert: false,
  }));
  const parse = spyOn(JSON, 'parse');
  try {
    const staged = documentAsStaged(JSON.stringify({ text, n: 1 }), { base: undefined, isNew: false, transforms }, '');
    expect(staged).toBe(JSON.stringify({ text, n: 1 + count }));
    const readChars = parse.mock.calls.reduce((sum, [read]) => sum + read.length, 0);
    expect(readChars).toBeLessThan(2 * text.length);
  } finally {
    parse.mockRestore();
  }
});

test('others get a turn while many transforms of a large document are foreseen', async () => {
  const body = Buffer.from(JSON.stringify({ text, n: 0 }));
  const transforms = Array.from({ length: count }, () => ({ key: 'a', operations }));
  const bytes = Buffer.from(JSON.stringify({ transforms }));
  const at = { timeMs: 1, timestamp: '' };
  const frame = readFrame(
    await buildFrame(bytes, sectionEntries(await scanWrite(bytes, 'batch'), 0), { timestampMs: 1 }),
  );
  const stored = { rangeId: 1, documents: { get: () => ({ body }) }, versionOf: () => 1 } as unknown as RangeReader;
  const table = { name: 't', ttlField: undefined, expiredAtOrBeforeMs: () => undefined } as unknown as Table;
  let turns = 0;
  const turn = () => {
    turns += 1;
    pending = setImmediate(turn);
  };
  let pending = setImmediate(turn);
  try {
    const { documents } = await foreseeTransforms(frame, stored, table, at);
    expect(Buffer.from(documents.get(count - 1)?.body ?? []).toString()).toBe(JSON.stringify({ text, n: count }));
    expect(turns).toBeGreaterThan(count / 10);
  } finally {
    clearImmediate(pending);
  }
});
