import { expect, test } from 'bun:test';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, openTestPool } from '../support/inference/inference-pool.ts';

/** Has room for an output that goes on while a busy machine does something else. */
const chain = fixtureModel('generators', 'chain', { contextTokensMax: 4_096 });

test.each([
  ['decodes', 'forever', true],
  ['reads a prompt', `${'x'.repeat(1_000)} count`, false],
] as const)(
  'a child that is killed while it %s fails its requests; the next request gets a new one',
  async (_, text, waits) => {
    await using host = openTestPool();
    const started = Promise.withResolvers<void>();
    const input = generateInput(text, { tokensMax: 4_000, stream: true });
    const failed = host.pool.use(chain, async (child) => {
      const running = child.run('generate', input, { onEvent: () => started.resolve() });
      const beside = child.run('generate', input);
      if (waits) await started.promise;
      child.kill('the test wants it');
      return await Promise.all([running, beside].map((each) => each.catch((error: unknown) => error)));
    });
    for (const error of await failed) expect(error).toMatchObject({ code: 'inference_interrupted', retryable: true });
    expect(host.crashes).toEqual([expect.stringContaining('the test wants it')]);
    expect(await host.pool.run(chain, 'generate', generateInput('hello'))).toMatchObject({ text: ' from the chain.' });
  },
);

test('a child that is killed while it loads fails the load; the next request tries again', async () => {
  await using host = openTestPool({ loadMs: 1 });
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    const error = await host.pool.run(chain, 'generate', generateInput('hello')).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'model_load_failed', message: expect.stringContaining('too long to load') });
    expect(host.crashes).toHaveLength(attempt);
  }
  expect(host.pool.loaded()).toEqual([]);
});
