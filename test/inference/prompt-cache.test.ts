import { describe, expect, test } from 'bun:test';
import type { GenerateInput } from '../../src/model-host/operations/generate.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, poolOfTests } from '../support/inference/inference-pool.ts';

const two = fixtureModel('generators', 'chain', { parallelSequences: 2 });
const answer = ' from the chain.';
/** Each letter is a token of its own. */
const history = 'abcdefghijklmnopqrstuvwxyz '.repeat(5);
const pool = poolOfTests();

const ask = (text: string, changes: Partial<GenerateInput> = {}) =>
  pool().run(two, 'generate', generateInput(text, { promptCache: { key: undefined }, ...changes }));

describe('the state of a prompt', () => {
  test('is used by the next one that begins alike, and the counts are true', async () => {
    const first = await ask(`${history}hello`);
    expect(first).toMatchObject({ text: answer, cachedTokens: 0 });
    const same = await ask(`${history}hello`);
    // The last token is evaluated again, for what follows it.
    expect(same).toMatchObject({ text: answer, cachedTokens: first.promptTokens - 1 });
    const longer = await ask(`${history}hello${answer} hello`);
    // Text that people write has other tokens than generated text, even where both are the same.
    expect(longer).toMatchObject({ text: answer, cachedTokens: first.promptTokens });
    const other = await ask(`${history}count`, { tokensMax: 2 });
    expect(other).toMatchObject({ text: ' one two', cachedTokens: first.promptTokens - 1 });
  });

  test('is neither read nor left by a request without a cache', async () => {
    const secret = 'z'.repeat(50);
    expect(await ask(`${secret} hello`, { promptCache: undefined })).toMatchObject({ text: answer, cachedTokens: 0 });
    const after = await ask(`${secret} hello`);
    // The beginning of every prompt.
    expect(after.cachedTokens).toBeLessThan(10);
    expect(await ask(`${secret} hello`, { promptCache: undefined })).toMatchObject({ text: answer, cachedTokens: 0 });
    expect(await ask(`${secret} hello`)).toMatchObject({ text: answer });
  });

  test('is copied for a request that comes while another works on it', async () => {
    const text = `${'copy '.repeat(30)}forever`;
    const control = new AbortController();
    const started = Promise.withResolvers<void>();
    const input = generateInput(text, { promptCache: { key: 'a' }, stream: true, tokensMax: 900 });
    const running = pool().run(two, 'generate', input, { onEvent: () => started.resolve(), signal: control.signal });
    await started.promise;
    const beside = await ask(`${'copy '.repeat(30)}hello`, { promptCache: { key: 'b' } });
    expect(beside).toMatchObject({ text: answer });
    expect(beside.cachedTokens).toBeGreaterThan(100);
    control.abort(new Error('enough'));
    expect(await running.catch(String)).toBe('Error: enough');
  });
});

test('each precision of the state has its own context, or is refused with a reason', async () => {
  expect(await ask('hello', { cacheType: 'f32' })).toMatchObject({ text: answer, cachedTokens: 0 });
  expect(await ask('hello', { cacheType: 'f16' })).toMatchObject({ text: answer });
  // A head of this model is narrower than a block of such a state.
  const refusal = await ask('hello', { cacheType: 'int8' }).catch((reason: unknown) => reason);
  expect(refusal).toMatchObject({ code: 'model_not_supported', message: expect.stringContaining('int8') });
});
