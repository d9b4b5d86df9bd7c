import { describe, expect, test } from 'bun:test';
import type { GenerateEvent, GenerateInput } from '../../src/model-host/operations/generate.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, poolOfTests } from '../support/inference/inference-pool.ts';

const chain = fixtureModel('generators', 'chain');
const count = ' one two three four five six seven eight nine ten';
const pool = poolOfTests();

const generate = (text: string, changes: Partial<GenerateInput> = {}) =>
  pool().run(chain, 'generate', generateInput(text, changes));

async function stream(text: string, changes: Partial<GenerateInput> = {}) {
  const events: GenerateEvent[] = [];
  const input = generateInput(text, { ...changes, stream: true });
  const result = await pool().run(chain, 'generate', input, { onEvent: (event) => events.push(event) });
  return { events, result };
}

describe('what a model says', () => {
  test('is its likeliest tokens, until it ends', async () => {
    const result = await generate('please count');
    expect(result).toMatchObject({ text: count, finish: 'stop', stopText: undefined, completionTokens: 10 });
    expect(result.cachedTokens).toBe(0);
    expect(await generate('hello')).toMatchObject({ text: ' from the chain.', finish: 'stop' });
    expect(await generate('nothing')).toMatchObject({ text: '', finish: 'stop', completionTokens: 0 });
  });

  test('ends after as many tokens as are wanted', async () => {
    expect(await generate('count', { tokensMax: 3 })).toMatchObject({
      text: ' one two three',
      finish: 'length',
      completionTokens: 3,
    });
    expect(await generate('forever', { tokensMax: 5 })).toMatchObject({ text: ' on and on and on', finish: 'length' });
  });

  test('goes beyond its end when the end is to be ignored', async () => {
    const result = await generate('hello', { ignoreEos: true, tokensMax: 9 });
    expect(result).toMatchObject({ finish: 'length', completionTokens: 9 });
    expect(result.text).toStartWith(' from the chain.');
  });

  test('comes in pieces, token by token', async () => {
    const { events, result } = await stream('count');
    expect(events.map(({ text }) => text)).toEqual(count.split(/(?= )/));
    expect(result).toMatchObject({ text: '', finish: 'stop', completionTokens: 10 });
  });

  test('comes in whole characters, and never ends within one', async () => {
    const { events } = await stream('flower');
    expect(events.map(({ text }) => text)).toEqual(['\u{1f33b}']);
    expect(await generate('flower', { tokensMax: 3 })).toMatchObject({ text: '', finish: 'length' });
  });
});

describe('stop texts', () => {
  test('end the output wherever they begin and end', async () => {
    expect(await generate('count', { stop: ['ee fo'] })).toMatchObject({
      text: ' one two thr',
      finish: 'stop',
      stopText: 'ee fo',
    });
  });

  test('are not shown, not even their beginning', async () => {
    const { events, result } = await stream('count', { stop: ['three four nine', ' six seven'] });
    expect(events.map(({ text }) => text).join('')).toBe(' one two three four five');
    expect(result.stopText).toBe(' six seven');
  });
});

describe('the context', () => {
  test('refuses a prompt that does not fit, with both counts', async () => {
    const error = await generate('x'.repeat(2_000)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'context_length_exceeded' });
    expect(String(error)).toMatch(/maximum context length is 1024 tokens.*20\d\d/);
  });

  test('ends an output that fills it', async () => {
    const result = await generate('forever', { tokensMax: 5_000 });
    expect(result.finish).toBe('length');
    expect(result.promptTokens + result.completionTokens).toBe(1_024);
  });
});

describe('special tokens', () => {
  test('are known to the caller, and plain text where people wrote them', async () => {
    const { specialTexts } = await pool().info(chain);
    expect(specialTexts).toEqual(['<|endoftext|>', '<|im_start|>', '<|im_end|>']);
    const markup = await generate('', { prompt: [{ text: '<|im_end|>count', markup: true }] });
    const plain = await generate('', { prompt: [{ text: '<|im_end|>count', markup: false }] });
    expect([markup.promptTokens, markup.text]).toEqual([2, count]);
    expect([plain.promptTokens, plain.text]).toEqual([11, count]);
  });
});

test('sampling with a seed says the same again, and something else with another', async () => {
  const sampling = { ...generateInput('').sampling, temperature: 10, topK: 40 };
  const say = async (seed: number) =>
    (await generate('forever', { tokensMax: 12, ignoreEos: true, sampling: { ...sampling, seed } })).text;
  const first = await say(1);
  expect(await say(1)).toBe(first);
  expect(new Set([first, await say(2), await say(3)]).size).toBe(3);
});

test('top-p and min-p leave only what is likely, however high the temperature', async () => {
  const sampling = { ...generateInput('').sampling, temperature: 10 };
  for (const narrowed of [{ topP: 0.9 }, { minP: 0.1 }, { topK: 1 }]) {
    expect(await generate('count', { sampling: { ...sampling, ...narrowed } })).toMatchObject({ text: count });
  }
});

test('a bias moves tokens to the front or bans them', async () => {
  const { sampling } = generateInput('');
  const exclamationMark = 33;
  const pushed = await generate('count', {
    tokensMax: 4,
    sampling: { ...sampling, logitBias: [[exclamationMark, 100]] },
  });
  expect(pushed.text).toBe('!!!!');
  const both: [number, number][] = [
    [exclamationMark, 100],
    [exclamationMark + 1, 99],
  ];
  expect((await generate('count', { tokensMax: 2, sampling: { ...sampling, logitBias: both } })).text).toBe('!!');
  both[0] = [exclamationMark, -100];
  expect((await generate('count', { tokensMax: 2, sampling: { ...sampling, logitBias: both } })).text).toBe('""');
});

test('penalties keep the model from saying the same again', async () => {
  const again = async (changes: Partial<GenerateInput['sampling']>) => {
    const sampling = { ...generateInput('').sampling, ...changes };
    const { text } = await generate('forever', { tokensMax: 12, ignoreEos: true, sampling });
    return text.split(' on').length - 1;
  };
  expect(await again({})).toBe(6);
  expect(await again({ frequencyPenalty: 5 })).toBe(4);
  expect(await again({ presencePenalty: 100 })).toBe(1);
  // Divides what was said by this; the alternatives are at zero, so that it changes nothing alone.
  expect(await again({ repetitionPenalty: 100, logitBias: [[33, 1]] })).toBe(1);
});
