import { expect, test } from 'bun:test';
import type { GenerateEvent } from '../../src/model-host/operations/generate.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, poolOfTests } from '../support/inference/inference-pool.ts';

const chain = fixtureModel('generators', 'chain');
/** The model has 313 tokens; the one that follows gets the length of the one-hot state in half precision. */
const tokens = 313;
const logit = Math.round(64 / Math.sqrt(1 / tokens + 1e-5)) / 64;
const zero = Math.log(Math.exp(logit) + tokens - 1);
const pool = poolOfTests();

test('log probabilities are the log-softmax over the whole vocabulary', async () => {
  const { logprobs = [] } = await pool().run(chain, 'generate', generateInput('hello', { topLogprobs: 3 }));
  expect(logprobs.map(({ token }) => token)).toEqual([' from', ' the', ' chain', '.']);
  for (const { token, bytes, logprob, top } of logprobs) {
    expect(logprob).toBeCloseTo(logit - zero, 3);
    expect(new TextDecoder().decode(Uint8Array.from(bytes))).toBe(token);
    expect(top).toHaveLength(3);
    expect(top[0]).toEqual({ token, bytes, logprob });
    expect(top[1]?.logprob).toBeCloseTo(-zero, 3);
  }
});

test('no alternatives are given where none are asked for', async () => {
  const { logprobs } = await pool().run(chain, 'generate', generateInput('hello', { topLogprobs: 0 }));
  expect(logprobs?.map(({ top }) => top)).toEqual([[], [], [], []]);
  expect(logprobs?.[0]?.logprob).toBeCloseTo(logit - zero, 3);
});

test('an unlikely token has its own, whatever chose it', async () => {
  const sampling = { ...generateInput('').sampling, logitBias: [[33, 100] as const] };
  const input = generateInput('hello', { topLogprobs: 1, tokensMax: 1, sampling });
  const { logprobs, text } = await pool().run(chain, 'generate', input);
  expect(text).toBe('!');
  expect(logprobs?.[0]?.logprob).toBeCloseTo(-zero, 3);
  expect(logprobs?.[0]?.top).toMatchObject([{ token: ' from' }]);
});

test('every token has one, also the parts of a character, in order beside their text', async () => {
  const events: GenerateEvent[] = [];
  const input = generateInput('flower', { topLogprobs: 0, stream: true });
  await pool().run(chain, 'generate', input, { onEvent: (event) => events.push(event) });
  const bytes = events.flatMap(({ logprobs = [] }) => logprobs.flatMap((each) => each.bytes));
  expect(new TextDecoder().decode(Uint8Array.from(bytes))).toBe('\u{1f33b}');
  expect(events.map(({ text }) => text).join('')).toBe('\u{1f33b}');
});

test('tokens of a stop text have none', async () => {
  const { logprobs } = await pool().run(chain, 'generate', generateInput('count', { topLogprobs: 0, stop: [' four'] }));
  expect(logprobs?.map(({ token }) => token)).toEqual([' one', ' two', ' three']);
});
