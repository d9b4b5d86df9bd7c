import { expect, test } from 'bun:test';
import { OnnxSession } from '../../../src/model-host/backends/onnx/onnx-session.ts';
import { openProbed } from '../../../src/model-host/backends/onnx/probed-session.ts';

/** A machine of eight processors; `runMs` tells how long a run takes by its threads. */
function machine(runMs: Readonly<Record<number, number>>) {
  let nowMs = 0;
  const seen = { open: 0, most: 0, opened: [] as number[] };
  const threadsOf = new Map<unknown, number>();
  const open: typeof OnnxSession.open = async (_path, threads) => {
    seen.opened.push(threads);
    seen.open += 1;
    seen.most = Math.max(seen.most, seen.open);
    const session = Object.assign(Object.create(OnnxSession.prototype) as OnnxSession, {
      close: async () => {
        seen.open -= 1;
      },
    });
    threadsOf.set(session, threads);
    return session;
  };
  const sample = async (session: OnnxSession) => {
    nowMs += runMs[threadsOf.get(session) ?? 0] ?? 0;
  };
  return { seen, sample, given: { open, clock: { monotonicMs: () => nowMs }, all: 8 } };
}

test('all processors are used where that is worth it, and half of them otherwise', async () => {
  const cores = machine({ 4: 100, 8: 60 });
  expect(await openProbed('model.onnx', 0, cores.sample, cores.given)).toMatchObject({ threads: 8 });
  const shared = machine({ 4: 100, 8: 95 });
  expect(await openProbed('model.onnx', 0, shared.sample, shared.given)).toMatchObject({ threads: 4 });
  expect([cores.seen.opened, shared.seen.opened]).toEqual([
    [4, 8],
    [4, 8, 4],
  ]);
  // The one that is answered.
  for (const { seen } of [cores, shared]) expect([seen.open, seen.most]).toEqual([1, 1]);
});

test('a count that was asked for is not tried', async () => {
  const { seen, sample, given } = machine({ 3: 100 });
  expect(await openProbed('model.onnx', 3, sample, given)).toMatchObject({ threads: 3 });
  expect(seen.opened).toEqual([3]);
});
