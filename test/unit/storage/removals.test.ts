import { test } from 'bun:test';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { Removals } from '../../../src/storage/directory/removals.ts';
import { until } from '../../support/fault/until.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

test('what is added while the last removal ends is removed as well', async () => {
  using directory = new TemporaryDirectory();
  const removals = new Removals({ clock: systemClock, onFailed: () => undefined });
  const [first, second] = ['first', 'second'].map((name) => join(directory.path, name)) as [string, string];
  for (const path of [first, second]) mkdirSync(path);
  const { run } = removals;
  removals.run = async (signal) => {
    await run.call(removals, signal);
    // The queue is empty, and nobody has heard of that yet.
    if (existsSync(second)) removals.add([second]);
  };
  removals.add([first]);
  await until(async () => !existsSync(first) && !existsSync(second));
  await removals.close();
});
