import { expect, test } from 'bun:test';
import type { NativeContext } from '../../../src/model-host/backends/llama/binding.ts';
import { probeThreads, threadsFor } from '../../../src/model-host/backends/llama/thread-probe.ts';
import { Threads } from '../../../src/model-host/backends/llama/threads.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** A machine by how long a batch takes on it, in milliseconds, for its tokens and threads. */
function machine(clock: FakeClock, batchMs: (tokens: number, threads: number) => number): NativeContext {
  let threads = 0;
  let tokens = 0;
  return {
    setThreads: (count: number) => {
      threads = count;
    },
    initBatch: (count: number) => {
      tokens = count;
    },
    addToBatch: () => Uint32Array.of(0),
    decodeBatch: async () => clock.advance(batchMs(tokens, threads)),
    removeTokenCellsFromSequence: () => true,
  } as unknown as NativeContext;
}

async function probed(cores: number, batchMs: (tokens: number, threads: number) => number, sequences = 4) {
  const clock = new FakeClock();
  const threads = await probeThreads({ context: machine(clock, batchMs), sequences, cores, clock });
  const { decode, parallel, prefill } = threads.shapes;
  return { counts: [decode.count, parallel.count, prefill.count], tookMs: clock.monotonicMs() };
}

test('a probe gives each shape of work its own count, within a third of a second', async () => {
  // One token waits for memory, many are arithmetic.
  const small = await probed(2, (tokens, threads) => (tokens === 1 ? 5 * threads : (4 * tokens) / threads));
  expect(small.counts).toEqual([1, 2, 2]);
  expect(small.tookMs).toBeLessThan(330);
  const many = await probed(16, (tokens, threads) => (10 * tokens) / Math.min(threads, 4));
  // Where nothing is lost by more than enough, more than enough will do.
  for (const count of many.counts) expect(count).toBeGreaterThanOrEqual(4);
  expect(many.tookMs).toBeLessThan(330);
});

test('a short text is read like a long one where only one is read at a time', async () => {
  const { counts } = await probed(2, (tokens, threads) => (tokens === 1 ? 5 * threads : (4 * tokens) / threads), 1);
  expect(counts).toEqual([1, 2, 2]);
});

test('a model on a GPU reads and writes on it before its first request, and waits for it with one thread', async () => {
  const batches: number[] = [];
  const context = machine(new FakeClock(), (tokens, threads) => {
    batches.push(tokens);
    return 10 / threads;
  });
  const { shapes } = await threadsFor({ context, device: 'cuda', set: 0, sequences: 4 });
  expect([shapes.decode.count, shapes.parallel.count, shapes.prefill.count]).toEqual([1, 1, 1]);
  expect(batches).toEqual([1, 32, 4]);
  const broken = { ...context, decodeBatch: () => Promise.reject(new Error('no kernel')) };
  await expect(threadsFor({ context: broken, device: 'cuda', set: 2, sequences: 4 })).rejects.toThrow('no kernel');
});

test('a thread more has to be worth it', async () => {
  expect((await probed(4, () => 3)).counts).toEqual([1, 1, 1]);
});

test('a large model gets all cores without a probe that would last', async () => {
  const large = await probed(8, (tokens, threads) => (300 * tokens) / threads);
  expect(large.counts).toEqual([8, 8, 8]);
  expect(large.tookMs).toBeLessThan(700);
});

test('several threads that are slower than one rest for a while', () => {
  const shape = { count: 4, singleMs: 10 };
  const threads = new Threads({ decode: shape, parallel: shape, prefill: shape });
  threads.took(1, 14);
  expect(threads.for(1)).toBe(4);
  threads.took(1, 16);
  expect([threads.for(1), threads.for(4), threads.for(128)]).toEqual([1, 4, 4]);
  for (let batch = 0; batch < 64; batch += 1) threads.took(1, 100);
  expect(threads.for(1)).toBe(4);
});
