import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { must } from '../../src/lib/assert.ts';
import { checkRangeFile } from '../../src/storage/check/range-check.ts';
import { readVector } from '../support/vectors/vector-part.ts';
import { createTable, documentOf, openTestStorage, temporaryDirectory } from './storage-fixture.ts';

setDefaultTimeout(120_000);

const child = Bun.fileURLToPath(new URL('./crash-child.ts', import.meta.url));

/** Runs the writing child until the failpoint kills it; returns what it acknowledged. */
async function acknowledgedBefore(directory: string, failpoint: string): Promise<{ lines: string[]; killed: boolean }> {
  const running = Bun.spawn([process.execPath, child, directory, failpoint], { stdout: 'pipe', stderr: 'pipe' });
  const output = await new Response(running.stdout).text();
  await running.exited;
  if (running.signalCode === null && running.exitCode !== 0) throw new Error(await new Response(running.stderr).text());
  return { lines: output.split('\n').filter(Boolean), killed: running.signalCode === 'SIGKILL' };
}

/** The conditions after any crash: whole groups, acknowledged ones present, sums equal to the groups that exist. */
async function checkDirectory(directory: string, acknowledged: string[]): Promise<number> {
  const storage = await openTestStorage(directory);
  const table = must(storage.catalog.table('things'), 'no table');
  const ranges = await Promise.all(table.ranges.map(({ rangeId }) => storage.openRange(rangeId)));
  let groups = 0;
  for (let round = 1; round <= 6; round += 1) {
    const present = ranges.map((range, place) => {
      const key = `${must(table.ranges[place], 'no range').startKey}-${round}`;
      const ordinal = range.documents.get(key)?.ordinal;
      if (ordinal === undefined) return false;
      const vector = must(range.parts.read([ordinal], [1]).found.get(ordinal)?.get(1), 'a document without its vector');
      expect(readVector(vector)).toEqual({ dense: Float32Array.of(round) });
      return true;
    });
    expect(new Set(present).size).toBe(1);
    if (present[0]) groups += 1;
    if (acknowledged.includes(`group ${round}`)) expect(present[0]).toBe(true);
    if (acknowledged.includes(`single ${round}`)) {
      expect(ranges.some((range) => range.documents.get(`r9-single-${round}`) !== undefined)).toBe(true);
    }
  }
  for (const [place, range] of ranges.entries()) {
    const key = `${must(table.ranges[place], 'no range').startKey}-sum`;
    expect(documentOf(range.documents.get(key)?.body)).toEqual(groups === 0 ? undefined : { n: groups });
  }
  if (acknowledged.includes('table late')) expect(storage.catalog.table('late')).toBeDefined();
  const files = table.ranges.map(({ rangeId }) => storage.directory.documentsFile(rangeId, 1));
  const { redone } = storage.start;
  await storage.close();
  for (const file of files) expect(checkRangeFile(file).findings).toEqual([]);
  return redone;
}

const failpoints: [name: string, redoneAtStart: number][] = [
  ['redo.after-record', 1],
  ['redo.after-record:3', 1],
  ['redo.between-ranges', 1],
  ['redo.between-ranges:1', 1],
  ['redo.before-clear:2', 0],
  ['storage.before-commit', 1],
  ['storage.after-commit:5', 1],
  ['storage.wal-checkpoint', 0],
  ['storage.wal-checkpoint:2', 0],
  ['catalog.before-commit:1', 0],
  ['catalog.after-commit:1', 1],
  // The last change of the catalog creates a table.
  ['catalog.before-commit:6', 0],
  ['catalog.after-commit:6', 0],
];

describe('a write over three ranges is all or nothing', () => {
  test.each(failpoints)('when the process dies at %s', async (failpoint, redoneAtStart) => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    await createTable(storage, 'things', 3, ['v0']);
    await storage.close();
    const { lines, killed } = await acknowledgedBefore(directory.path, failpoint);
    expect(killed).toBe(true);
    expect(await checkDirectory(directory.path, lines)).toBe(redoneAtStart);
    // A second start has nothing left to finish, and the next writer meets a sound directory.
    expect(await checkDirectory(directory.path, lines)).toBe(0);
  });

  test('and without a crash everything is there', async () => {
    using directory = temporaryDirectory();
    const storage = await openTestStorage(directory.path);
    await createTable(storage, 'things', 3, ['v0']);
    await storage.close();
    const { lines, killed } = await acknowledgedBefore(directory.path, 'none');
    expect(killed).toBe(false);
    expect(lines.length).toBe(13);
    expect(await checkDirectory(directory.path, lines)).toBe(0);
  });
});
