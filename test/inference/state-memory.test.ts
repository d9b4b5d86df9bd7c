import { describe, expect, test } from 'bun:test';
import { must } from '../../src/lib/assert.ts';
import { specOfModel } from '../../src/model-host/model-spec.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, openTestPool, poolOfTests } from '../support/inference/inference-pool.ts';

const pool = poolOfTests();

describe('an output that outgrows its state', () => {
  // Of 1,024 tokens, half of which the first state has room for.
  const model = fixtureModel('generators', 'chain', { parallelSequences: 2 });

  test('goes on in a longer one as if there had been room', async () => {
    const long = await pool().run(model, 'generate', generateInput('forever', { tokensMax: 800 }));
    expect(long).toMatchObject({ finish: 'length', completionTokens: 800, cachedTokens: 0 });
    // The longer state is open now, and takes the same request from its first token on.
    const again = await pool().run(model, 'generate', generateInput('forever', { tokensMax: 800 }));
    expect(long.text).toBe(again.text);
    const counted = await pool().run(model, 'generate', generateInput('hello', { tokensMax: 5 }));
    expect(long.promptTokens).toBe(counted.promptTokens);
  });

  test('still has all that was read and written before, which the next request of that prompt starts from', async () => {
    await using host = openTestPool();
    const input = generateInput('forever', { tokensMax: 800, promptCache: { key: undefined } });
    const { promptTokens, cachedTokens } = await host.pool.run(model, 'generate', input);
    expect(cachedTokens).toBe(0);
    expect(await host.pool.run(model, 'generate', input)).toMatchObject({ cachedTokens: promptTokens - 1 });
  });

  test('keeps its grammar, its penalties and what was drafted', async () => {
    const model = fixtureModel('generators', 'chain', { parallelSequences: 1 });
    await using host = openTestPool();
    const input = generateInput('forever', {
      tokensMax: 700,
      constraint: { grammar: 'root ::= (" " [a-z]+)*', after: undefined },
      sampling: { ...generateInput('').sampling, frequencyPenalty: 0.01 },
      speculation: { policy: 'force', draft: undefined, tokens: 4 },
      topLogprobs: 1,
    });
    const outgrown = await host.pool.run(model, 'generate', input);
    expect(outgrown).toMatchObject({ completionTokens: 700, finish: 'length' });
    expect(outgrown.text).toMatch(/^( [a-z]+)*$/);
    expect(await host.pool.run(model, 'generate', input)).toMatchObject({
      text: outgrown.text,
      logprobs: outgrown.logprobs,
    });
  });
});

describe('the memory limit', () => {
  const { model: installed, settings } = fixtureModel('generators', 'chain');
  // The first state, of 512 tokens for each of four sequences, counts as two gibibytes.
  const model = specOfModel({ ...must(installed, 'it is installed'), kvCacheBytesPerToken: 2 ** 20 }, settings);
  const answer = { text: ' from the chain.' };

  test('holds for the states that requests open: what is idle goes, and there are fewer sequences', async () => {
    await using host = openTestPool({ memoryBytesMax: 3 * 2 ** 30 });
    const ask = (cacheType: 'f16' | 'f32') => host.pool.run(model, 'generate', generateInput('hello', { cacheType }));
    for (const type of ['f16', 'f32', 'f16'] as const) {
      expect(await ask(type)).toMatchObject(answer);
      expect(host.pool.memoryBytes).toBeLessThanOrEqual(3 * 2 ** 30);
    }
  });

  test('counts a model whole that is loaded while the process of the same one still ends', async () => {
    await using host = openTestPool({ memoryBytesMax: 3 * 2 ** 30 });
    for (const _ of [1, 2]) {
      expect(await host.pool.run(model, 'generate', generateInput('hello'))).toMatchObject(answer);
      expect(host.pool.memoryBytes).toBeGreaterThan(2 * 2 ** 30);
      host.pool.unload(model);
    }
  });

  test('ends an output that outgrows its state where a longer one has no room, and the model goes on', async () => {
    const { model: installed, settings } = fixtureModel('generators', 'chain', { parallelSequences: 1 });
    const model = specOfModel({ ...must(installed, 'it is installed'), kvCacheBytesPerToken: 2 ** 20 }, settings);
    await using host = openTestPool({ memoryBytesMax: 0.9 * 2 ** 30 });
    const long = host.pool.run(model, 'generate', generateInput('forever', { tokensMax: 800 }));
    expect(await long.catch((reason: unknown) => reason)).toMatchObject({ code: 'memory_budget_exceeded' });
    expect(await host.pool.run(model, 'generate', generateInput('hello'))).toMatchObject(answer);
    expect(host.crashes).toEqual([]);
  });

  test('refuses what has no room beside states in use, and those go on', async () => {
    await using host = openTestPool({ memoryBytesMax: 2.5 * 2 ** 30 });
    // Both are sent at once: the first one cannot have ended when the child reads the second.
    const running = host.pool.run(model, 'generate', generateInput('forever', { tokensMax: 250 }));
    const other = generateInput('hello', { cacheType: 'f32' });
    const refusal = await host.pool.run(model, 'generate', other).catch((reason: unknown) => reason);
    expect(refusal).toMatchObject({
      code: 'memory_budget_exceeded',
      message: expect.stringContaining('inference.memory_limit'),
    });
    expect(await running).toMatchObject({ completionTokens: 250 });
    expect(await host.pool.run(model, 'generate', other)).toMatchObject(answer);
  });
});
