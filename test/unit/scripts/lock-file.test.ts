import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { lockFile } from '../../../scripts/lock-file.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

test('a lock is held by one at a time, and the next one is told that it waits', async () => {
  using directory = new TemporaryDirectory();
  const path = join(directory.path, 'build', 'lock');
  const waits = Promise.withResolvers<void>();
  const events: string[] = [];
  const first = await lockFile(path, () => void events.push('first waits'));
  const second = lockFile(path, waits.resolve).then((lock) => {
    events.push('second begins');
    return lock;
  });
  await waits.promise;
  events.push('first ends');
  first[Symbol.dispose]();
  (await second)[Symbol.dispose]();
  expect(events).toEqual(['first ends', 'second begins']);
});
