import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { Health } from '../../src/observability/health.ts';
import { openStorage } from '../../src/storage/open-storage.ts';
import { until } from '../support/fault/until.ts';
import { locksOn } from '../support/file-locks.ts';
import { createTable, openTestStorage, temporaryDirectory } from './storage-fixture.ts';

test('a start that looks at the files of ranges leaves the locks on those that are open by then', async () => {
  using directory = temporaryDirectory();
  const first = await openTestStorage(directory.path);
  const { ranges } = await createTable(first, 'things', 60);
  const ids = ranges.map(({ rangeId }) => rangeId);
  const files = ids.map((rangeId) => first.rangeFile(rangeId));
  await first.close();
  // They are looked at in their order, so that the last one tells when all were.
  writeFileSync(must(files.at(-1), 'a file'), 'no database');
  const health = new Health();
  const storage = await openStorage({
    directory: directory.path,
    clock: systemClock,
    health,
    onFatal: () => undefined,
  });
  await Promise.all(ids.slice(-4, -1).map((rangeId) => storage.openRange(rangeId)));
  await until(async () => health.faults().length > 0);
  expect(files.slice(-4, -1).map(locksOn)).toEqual([1, 1, 1]);
  await storage.close();
});
