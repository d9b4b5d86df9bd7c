import { expect, test } from 'bun:test';
import { IndexFaultError } from '../../../src/engine/engine-error.ts';
import { DamageWatch } from '../../../src/indexing/applier/damage-watch.ts';
import type { RangeIndex } from '../../../src/indexing/range-index.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const indexOf = (verify: () => Promise<void>) => ({ openedAtSequence: 1, verify }) as RangeIndex;

test('an index that is opened during a look at the one before it is looked at itself', async () => {
  const clock = new FakeClock();
  const { signal } = new AbortController();
  const watch = new DamageWatch({ clock, delayMs: 1_000, signal, onSuspect: () => {}, mayDoubt: () => false });
  const first = Promise.withResolvers<void>();
  void watch.watch(indexOf(() => first.promise));
  const looked = watch.look();
  watch.end();
  void watch.watch(indexOf(() => Promise.reject(new IndexFaultError('index_damaged', 'it is damaged'))));
  const lookedAgain = watch.look();
  await settle();
  first.resolve();
  expect([await looked, await lookedAgain, watch.isSuspect]).toEqual([false, true, true]);
});
