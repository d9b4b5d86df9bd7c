import { expect, test } from 'bun:test';
import type { NativeContext } from '../../../src/model-host/backends/llama/binding.ts';
import { DecodeLoop } from '../../../src/model-host/backends/llama/generation/decode-loop.ts';
import type { Generation } from '../../../src/model-host/backends/llama/generation/generation.ts';
import { type SequenceSlot, SequenceSlots } from '../../../src/model-host/backends/llama/generation/sequence-slots.ts';
import { Threads } from '../../../src/model-host/backends/llama/threads.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** Evaluates nothing, in no time. */
const context = {
  setThreads: () => undefined,
  initBatch: () => undefined,
  addToBatch: () => Uint32Array.of(0),
  decodeBatch: () => Promise.resolve(),
  removeTokenCellsFromSequence: () => true,
} as unknown as NativeContext;

/** One token of prompt and one of output. */
function shortGeneration(): Generation & { readonly ended: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const generation = {
    prompt: [1],
    cache: undefined,
    slot: undefined as SequenceSlot | undefined,
    aborted: false,
    reading: true,
    unread: 1,
    onAbort: () => undefined,
    begin: (slot: SequenceSlot) => {
      generation.slot = slot;
    },
    prepare: () => Promise.resolve(),
    next: () => [1],
    wanted: () => [0],
    take: () => Promise.resolve({ done: true, keptTokens: 1 }),
    settle: () => resolve(),
    ended: promise,
  };
  return generation as unknown as Generation & { readonly ended: Promise<void> };
}

function openLoop(native: NativeContext, slots: SequenceSlots): DecodeLoop {
  return new DecodeLoop({
    context: native,
    slots,
    threads: Threads.fixed(1),
    clock: new FakeClock(),
    sliceTokens: 128,
  });
}

test('a request that comes at any moment of the end of another is served', async () => {
  for (let steps = 0; steps < 40; steps += 1) {
    const loop = openLoop(context, new SequenceSlots(context, 1));
    const first = shortGeneration();
    const second = shortGeneration();
    loop.start(first);
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    loop.start(second);
    expect(await Promise.all([first.ended, second.ended])).toHaveLength(2);
  }
});

test('a sign of life costs nobody a state, and holds nobody up', async () => {
  let evaluated = 0;
  const decodeBatch = async () => {
    evaluated += 1;
  };
  const counting = { ...context, decodeBatch } as NativeContext;
  const slots = new SequenceSlots(counting, 1);
  const loop = openLoop(counting, slots);
  const generation = shortGeneration();
  const sign = loop.evaluateNothing();
  loop.start(generation);
  await Promise.all([sign, generation.ended]);
  expect(evaluated).toBe(2);
  const kept = slots.takeEmpty();
  kept?.tokens.push(1);
  if (kept !== undefined) slots.release(kept, true);
  await loop.evaluateNothing();
  expect([evaluated, kept?.tokens]).toEqual([2, [1]]);
});
