import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { lockFile } from '../../../scripts/lock-file.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

test('a lock is held by one at a time, and the next one is told that it waits', async () => {
  using directory = new TemporaryDirectory();
  const path = join(directory.path, 'build', 'lock');
  const events: string[] = [];
  const work = async (name: string) => {
    using _lock = await lockFile(path, () => void events.push(`${name} waits`));
    events.push(`${name} begins`);
    await Bun.sleep(50);
    events.push(`${name} ends`);
  };
  await Promise.all([work('first'), work('second')]);
  expect(events).toEqual(['first begins', 'second waits', 'first ends', 'second begins', 'second ends']);
});
