import { expect, test } from 'bun:test';
import type { LlamaBinding, NativeModel } from '../../../src/model-host/backends/llama/binding.ts';
import { LazyPool } from '../../../src/model-host/backends/llama/lazy-pool.ts';
import { openContext } from '../../../src/model-host/backends/llama/open-context.ts';
import { States } from '../../../src/model-host/backends/llama/states.ts';
import { Threads } from '../../../src/model-host/backends/llama/threads.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/**
 * The states of a model on a GPU that has no room for a context of more than `roomTokens` tokens, under a memory limit of
 * `bytesMax`.
 */
async function statesOn(roomTokens: number, bytesMax = Number.POSITIVE_INFINITY) {
  const opened: number[] = [];
  class AddonContext {
    readonly #tokens: number;
    constructor(_model: NativeModel, options: { readonly contextSize: number }) {
      this.#tokens = options.contextSize;
    }
    init(): Promise<boolean> {
      if (this.#tokens <= roomTokens) opened.push(this.#tokens);
      return Promise.resolve(this.#tokens <= roomTokens);
    }
    dispose(): Promise<void> {
      return Promise.resolve();
    }
  }
  const deps = {
    name: 'm',
    binding: { AddonContext } as unknown as LlamaBinding,
    model: {} as NativeModel,
    device: 'cuda' as const,
    contextTokens: 8_192,
    sequences: 4,
  };
  let taken = 0;
  const memory = {
    reserve(bytes: number): Promise<boolean> {
      const fits = taken + bytes <= bytesMax;
      if (fits) taken += bytes;
      return Promise.resolve(fits);
    },
    release(bytes: number): void {
      taken -= bytes;
    },
  };
  const pool = new LazyPool(memory, new FakeClock());
  const first = await openContext({ ...deps, contextTokens: 512 }, 'f16');
  return { opened, states: new States({ ...deps, tokenBytes: 1, pool, threads: Threads.fixed(1) }, first) };
}

test('where a GPU has no room for the states of all sequences, there are fewer', async () => {
  const { opened, states } = await statesOn(2 * 8_192);
  const lease = await states.lease('f16', 8_000);
  lease.release();
  expect(opened).toEqual([4 * 512, 2 * 8_192]);
});

test('a state with fewer sequences is found by the next request, as long as one of them is free', async () => {
  const { opened, states } = await statesOn(4 * 8_192, 4 * 512 + 2 * 8_192);
  const first = await states.lease('f16', 8_000);
  first.release();
  const again = [await states.lease('f16', 8_000), await states.lease('f16', 7_000)];
  expect(again.map(({ value }) => value)).toEqual([first.value, first.value]);
  expect(opened).toEqual([4 * 512, 2 * 8_192]);
});

test('what a GPU has no room for at all is refused, and shorter requests go on', async () => {
  const { states } = await statesOn(8_191);
  expect(await states.lease('f16', 8_000).catch((error: unknown) => error)).toMatchObject({
    code: 'memory_budget_exceeded',
    message: expect.stringContaining('GPU'),
  });
  (await states.lease('f16', 500)).release();
});
