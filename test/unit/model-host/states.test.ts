import { expect, test } from 'bun:test';
import type { LlamaBinding, NativeModel } from '../../../src/model-host/backends/llama/binding.ts';
import { LazyPool } from '../../../src/model-host/backends/llama/lazy-pool.ts';
import { openContext } from '../../../src/model-host/backends/llama/open-context.ts';
import { States } from '../../../src/model-host/backends/llama/states.ts';
import { Threads } from '../../../src/model-host/backends/llama/threads.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** The states of a model on a GPU that has no room for a context of more than `roomTokens` tokens. */
async function statesOn(roomTokens: number) {
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
  const memory = { reserve: () => Promise.resolve(true), release: () => undefined };
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

test('what a GPU has no room for at all is refused, and shorter requests go on', async () => {
  const { states } = await statesOn(8_191);
  expect(await states.lease('f16', 8_000).catch((error: unknown) => error)).toMatchObject({
    code: 'memory_budget_exceeded',
    message: expect.stringContaining('GPU'),
  });
  (await states.lease('f16', 500)).release();
});
