import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { must } from '../../src/lib/assert.ts';
import { checkRangeFile } from '../../src/storage/check/range-check.ts';
import { openBehind } from '../support/behind-the-server.ts';
import { createTable, failure, openTestStorage, rangeId, temporaryDirectory, write } from './storage-fixture.ts';

setDefaultTimeout(120_000);

/** A closed range file with the documents a, b and c, a vector of b, and a tombstone. */
async function closedRange(directory: string): Promise<{ file: string; id: number }> {
  const storage = await openTestStorage(directory);
  const id = rangeId(await createTable(storage, 'things', 1, ['v0']));
  const file = storage.directory.documentsFile(id, 1);
  await write(storage, id, { puts: { a: { n: 1 }, b: { n: 2 }, gone: {} }, vectors: { b: { 1: [1, 2] } } });
  await write(storage, id, { puts: { c: { n: 3 } }, deletes: ['gone'] });
  await storage.close();
  return { file, id };
}

function change(file: string, ...statements: string[]): void {
  const database = new Database(file);
  for (const statement of statements) database.run(statement);
  database.run('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

const swapped = `UPDATE documents SET body = CAST('{"n":9}' AS BLOB) WHERE key = CAST('b' AS BLOB)`;

test('a sound file has no findings', async () => {
  using directory = temporaryDirectory();
  const { file } = await closedRange(directory.path);
  const found = checkRangeFile(file);
  expect(found.findings).toEqual([]);
  expect(found.documents).toBe(3);
});

const damages: [what: string, statement: string, finding: { problem: string; key?: string; message?: string }][] = [
  ['a body that changed under its checksum', swapped, { problem: 'document', key: 'b' }],
  [
    'a body that is no JSON object, with a right checksum',
    `UPDATE documents SET body = CAST('[1]' AS BLOB), crc = ${Bun.hash.crc32('[1]')} WHERE ordinal = 1`,
    { problem: 'document', key: 'a', message: 'the document "a" is not a JSON object' },
  ],
  [
    'a document that the feed does not know',
    'DELETE FROM changes WHERE sequence = (SELECT min(sequence) FROM changes)',
    { problem: 'feed', message: '1 documents are missing from the change feed' },
  ],
  [
    'a tombstone of a document that exists',
    'UPDATE changes SET ordinal = 1 WHERE deleted = 1',
    { problem: 'feed', message: '1 tombstones name documents that exist' },
  ],
  [
    'two documents of one sequence',
    'UPDATE documents SET sequence = (SELECT sequence FROM documents WHERE ordinal = 2) WHERE ordinal = 1',
    { problem: 'feed', message: '1 documents share a sequence with another' },
  ],
  [
    'counters that do not count',
    'UPDATE changes SET documents = 4 WHERE documents = 3',
    { problem: 'counters', message: 'the counters say 4 documents and 37 bytes; there are 3 and 37' },
  ],
  [
    'an ordinal that would be given twice',
    'UPDATE changes SET next_ordinal = 4 WHERE next_ordinal = 5',
    { problem: 'counters', message: 'the next ordinal 4 has been given already' },
  ],
  [
    'a vector that changed under its checksum',
    'UPDATE parts SET body = zeroblob(16)',
    { problem: 'part', key: 'b', message: 'part 1 of "b" does not match its checksum' },
  ],
  [
    'a vector without its document',
    'UPDATE parts SET id = id + 50',
    { problem: 'part', message: 'part 1 of ordinal 52 has lost its document' },
  ],
  [
    'a vector that the feed does not know',
    'DELETE FROM changes WHERE part_id = 1',
    { problem: 'feed', message: '1 parts of documents are missing from the change feed' },
  ],
  [
    'a vector that is gone',
    'DELETE FROM parts',
    { problem: 'counters', message: 'the counters say 3 documents and 37 bytes; there are 3 and 21' },
  ],
];

test.each(damages)('%s is found', async (_, statement, finding) => {
  using directory = temporaryDirectory();
  const { file } = await closedRange(directory.path);
  change(file, statement);
  const { findings } = checkRangeFile(file);
  expect(findings).toContainEqual(expect.objectContaining(finding));
});

test('keys outside the range are found, at both of its ends', async () => {
  using directory = temporaryDirectory();
  const { file } = await closedRange(directory.path);
  const keys = (startKey: string, endKey: string | null) =>
    checkRangeFile(file, { startKey, endKey }).findings.map(({ key }) => key);
  expect(keys('a', null)).toEqual([]);
  expect(keys('b', 'c')).toEqual(['a', 'c']);
});

test('a file from before there were vectors is sound, and takes them', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage, 'things', 1, ['v0']));
  await write(storage, id, { puts: { a: {}, b: {} }, deletes: [] });
  await storage.close();
  const file = storage.directory.documentsFile(id, 1);
  change(
    file,
    'DROP TABLE request_answers',
    'DROP TABLE dictionaries',
    'ALTER TABLE documents DROP COLUMN raw_bytes',
    'ALTER TABLE documents DROP COLUMN written_ms',
    'DROP TABLE range_state',
    'DROP TABLE parts',
    'ALTER TABLE changes DROP COLUMN part_id',
    'PRAGMA user_version = 1',
  );
  expect(checkRangeFile(file)).toMatchObject({ findings: [], documents: 2 });
  storage = await openTestStorage(directory.path);
  const range = await storage.openRange(id);
  await write(storage, id, { puts: { b: {} }, vectors: { b: { 1: [1] } } });
  expect(range.parts.read([1, 2], [1]).found.size).toBe(1);
  expect(range.feed.read(0)).toMatchObject({ damaged: [], lastSequence: range.info().head });
  await storage.close();
  expect(checkRangeFile(file).findings).toEqual([]);
});

test('a file that is no database is a finding', async () => {
  using directory = temporaryDirectory();
  const { file } = await closedRange(directory.path);
  await Bun.write(file, 'not a database, but long enough to be looked at as one by whoever opens it');
  expect(checkRangeFile(file).findings).toMatchObject([{ problem: 'unreadable' }]);
});

test('reading a damaged document names it and leaves the others readable', async () => {
  using directory = temporaryDirectory();
  const { file, id } = await closedRange(directory.path);
  change(file, swapped);
  const storage = await openTestStorage(directory.path);
  const range = await storage.openRange(id);
  expect(() => range.documents.get('b')).toThrow('the stored document "b" does not match its checksum');
  const { ordinal } = must(range.documents.get('a'), 'the document that is left alone');
  const read = (ordinals: number[]) => {
    const { documents, damaged } = range.documents.byOrdinals(ordinals);
    return [documents.map(({ key }) => key), damaged.size];
  };
  expect(read([ordinal])).toEqual([['a'], 0]);
  expect(read([1, 2])).toEqual([['a'], 1]);
  const transforms = [{ key: 'b', operations: [{ op: '$inc', path: 'n', value: 1 }] }];
  expect(await failure(write(storage, id, { transforms }))).toMatchObject({
    code: 'data_corrupted',
    details: { key: 'b' },
  });
  await write(storage, id, { puts: { b: { n: 4 } } });
  expect(range.documents.get('b')).toBeDefined();
  await storage.close();
});

test('the text of a page is that of the stored bytes, and bytes that are no text are damage', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const id = rangeId(await createTable(storage));
  const range = await storage.openRange(id);
  const texts = ['plain', 'caf\u00e9', '\u65e5\u672c \u{1f35c}'];
  await write(storage, id, { puts: Object.fromEntries(texts.map((text, at) => [`k${at}`, { text }])) });
  const ordinals = texts.map((_, at) => must(range.documents.get(`k${at}`), 'a document').ordinal);
  const page = range.documents.byOrdinals(ordinals).documents.toSorted((a, b) => a.ordinal - b.ordinal);
  expect(page.map(({ text }) => (JSON.parse(text) as { text: string }).text)).toEqual(texts);
  using database = openBehind(storage.directory.documentsFile(id, 1));
  database.run(`UPDATE documents SET body = x'7b22ff223a317d' WHERE ordinal = ${ordinals[1]}`);
  expect([...range.documents.byOrdinals(ordinals).damaged]).toEqual([must(ordinals[1], 'an ordinal')]);
  await storage.close();
});
