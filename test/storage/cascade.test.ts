import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { checkRangeFile } from '../../src/storage/check/range-check.ts';
import { authorCount, fillTables, rangesOf } from './cascade-tables.ts';
import { documentOf, openTestStorage, temporaryDirectory } from './storage-fixture.ts';

setDefaultTimeout(120_000);

const child = Bun.fileURLToPath(new URL('./cascade-child.ts', import.meta.url));

const failpoints = [
  'storage.before-commit:2',
  'redo.after-record',
  'redo.after-record:3',
  ...Array.from({ length: 6 }, (_, at) => `redo.between-ranges:${at + 1}`),
  'redo.between-ranges:14',
  'redo.before-clear:2',
];

describe('a deletion that rows in seven ranges follow', () => {
  test.each(failpoints)('is whole or has not happened after a kill at %s', async (failpoint) => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    await fillTables(storage);
    await storage.close();

    const running = Bun.spawn([process.execPath, child, directory.path, failpoint], { stdout: 'pipe', stderr: 'pipe' });
    const acknowledged = (await new Response(running.stdout).text()).split('\n').filter(Boolean).map(Number);
    await running.exited;
    expect(`${running.signalCode} ${await new Response(running.stderr).text()}`).toBe('SIGKILL ');

    const again = await openTestStorage(directory.path);
    const found = async (name: string) => {
      const documents = new Map<string, { book?: string }>();
      for (const rangeId of rangesOf(again, name)) {
        const range = await again.openRange(rangeId);
        const all = { fromKey: '', fromInclusive: true, toKey: null, toInclusive: false };
        for (const { key, body } of range.documents.page(all).documents) documents.set(key, documentOf(body) as object);
      }
      return documents;
    };
    const [authors, books, notes] = [await found('authors'), await found('books'), await found('notes')];
    for (let author = 0; author < authorCount; author += 1) {
      const isThere = authors.has(`a${author}`);
      if (acknowledged.includes(author)) expect(isThere).toBe(false);
      for (const at of [0, 1, 2]) {
        expect(books.has(`r${at}a${author}`)).toBe(isThere);
        expect(notes.get(`r${at}a${author}`)?.book).toBe(isThere ? `r${(at + 1) % 3}a${author}` : undefined);
      }
    }
    expect(notes.size).toBe(3 * authorCount);
    const files = ['authors', 'books', 'notes'].flatMap((name) =>
      rangesOf(again, name).map((id) => again.rangeFile(id)),
    );
    await again.close();
    for (const file of files) expect(checkRangeFile(file).findings).toEqual([]);
  });
});
