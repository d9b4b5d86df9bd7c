import { describe, expect, test } from 'bun:test';
import type { GenerateInput } from '../../src/model-host/operations/generate.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, poolOfTests } from '../support/inference/inference-pool.ts';

const chain = fixtureModel('generators', 'chain');
/** Has room for an output that goes on while a busy machine does something else. */
const single = fixtureModel('generators', 'chain', { parallelSequences: 1, contextTokensMax: 4_096 });
const count = ' one two three four five six seven eight nine ten';
const answer = ' from the chain.';
const pool = poolOfTests();

describe('requests beside each other', () => {
  test('do not change what each of them is answered', async () => {
    const words = ['hello', 'count', 'json', 'think', 'flower', 'call', 'hello', 'count', 'nothing', 'json'];
    const alone: string[] = [];
    for (const word of words) alone.push((await pool().run(chain, 'generate', generateInput(word))).text);
    const together = await Promise.all(words.map((word) => pool().run(chain, 'generate', generateInput(word))));
    expect(together.map(({ text }) => text)).toEqual(alone);
    expect(alone[2]).toBe('{"answer":42}');
  });

  test('advance together, also while a long prompt is being read', async () => {
    const order: string[] = [];
    // Opens the state that all of them have room in.
    await pool().run(chain, 'generate', generateInput('x'.repeat(900), { tokensMax: 1 }));
    const say = (name: string, text: string, changes: Partial<GenerateInput>) =>
      pool().run(chain, 'generate', generateInput(text, { stream: true, ...changes }), {
        onEvent: () => order.push(name),
      });
    await Promise.all([
      say('a', 'forever', { tokensMax: 200 }),
      say('long', `${'x'.repeat(900)} count`, { tokensMax: 2 }),
      say('b', 'forever', { tokensMax: 200 }),
    ]);
    // The prompt takes eight slices; the others get a token beside each, and some while the prompt is split into tokens.
    const before = order.slice(0, order.indexOf('long'));
    expect(before.filter((name) => name === 'a').length).toBeWithin(4, 200);
    expect(before.filter((name) => name === 'b').length).toBeWithin(4, 200);
  });
});

describe('a batch', () => {
  test('starts its items together, as many as there are sequences', async () => {
    const words = ['hello', 'hello', 'hello', 'hello', 'count', 'count'];
    const { items, nativeBatches } = await pool().run(chain, 'generateBatch', {
      items: words.map((word) => generateInput(word)),
    });
    expect(items.map((item) => 'result' in item && item.result.text)).toEqual([
      answer,
      answer,
      answer,
      answer,
      count,
      count,
    ]);
    expect(nativeBatches).toBe(2);
  });

  test('says of each item what is wrong with it, and answers the others', async () => {
    const { items, nativeBatches } = await pool().run(chain, 'generateBatch', {
      items: [generateInput('hello'), generateInput('x'.repeat(3_000)), generateInput('count', { tokensMax: 1 })],
    });
    expect(items[0]).toMatchObject({ result: { text: answer } });
    expect(items[1]).toMatchObject({ error: { code: 'context_length_exceeded' } });
    expect(items[2]).toMatchObject({ result: { text: ' one', finish: 'length' } });
    expect(nativeBatches).toBe(1);
  });
});

describe('a request that nobody waits for any more', () => {
  test('leaves the queue, and the next one takes its turn', async () => {
    const endless = new AbortController();
    const waiting = new AbortController();
    const started = Promise.withResolvers<void>();
    const forever = generateInput('forever', { stream: true, tokensMax: 4_000 });
    const first = pool().run(single, 'generate', forever, {
      signal: endless.signal,
      onEvent: () => started.resolve(),
    });
    await started.promise;
    const second = pool().run(single, 'generate', generateInput('count'), { signal: waiting.signal });
    const third = pool().run(single, 'generate', generateInput('hello'));
    waiting.abort(new Error('left the queue'));
    expect(await second.catch(String)).toBe('Error: left the queue');
    endless.abort(new Error('left while it was told'));
    expect(await first.catch(String)).toBe('Error: left while it was told');
    expect(await third).toMatchObject({ text: answer });
  });

  test('frees its place between two slices of its prompt', async () => {
    const control = new AbortController();
    const long = generateInput(`${'x'.repeat(1_000)} count`);
    const reading = pool().run(single, 'generate', long, { signal: control.signal });
    const after = pool().run(single, 'generate', generateInput('hello'));
    control.abort(new Error('gone'));
    expect(await reading.catch(String)).toBe('Error: gone');
    expect(await after).toMatchObject({ text: answer });
  });

  test('takes its whole batch along', async () => {
    const control = new AbortController();
    const items = Array.from({ length: 9 }, () => generateInput('forever', { tokensMax: 4_000 }));
    const batch = pool().run(single, 'generateBatch', { items }, { signal: control.signal });
    const after = pool().run(single, 'generate', generateInput('hello'));
    control.abort(new Error('gone'));
    expect(await batch.catch(String)).toBe('Error: gone');
    expect(await after).toMatchObject({ text: answer });
  });
});
