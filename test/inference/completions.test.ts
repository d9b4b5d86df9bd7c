import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));
/** The last word of a prompt chooses the answer of this model. */
const model = 'chain';

let server: TestServer;
let client: OpenAI;
beforeAll(async () => {
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => server[Symbol.asyncDispose]());

const complete = (more: Partial<OpenAI.CompletionCreateParamsNonStreaming>) =>
  client.completions.create({ model, prompt: 'hello', temperature: 0, ...more });
const refusal = (more: Partial<OpenAI.CompletionCreateParamsNonStreaming>) =>
  complete(more).then(
    () => 'taken',
    (error: Error) => error.message,
  );

describe('POST /v1/completions', () => {
  test('goes on with a text as it is', async () => {
    const answer = await complete({});
    expect(answer).toMatchObject({ id: expect.stringMatching(/^cmpl-/), object: 'text_completion', model });
    expect(answer.choices).toEqual([
      { text: ' from the chain.', index: 0, logprobs: null, finish_reason: 'stop' },
    ] as never);
    expect(answer.usage).toMatchObject({ completion_tokens: 4, total_tokens: 4 + (answer.usage?.prompt_tokens ?? 0) });
    expect((await complete({ echo: true })).choices[0]?.text).toBe('hello from the chain.');
    expect((await complete({ max_tokens: 2 })).choices[0]).toMatchObject({ finish_reason: 'length' });
  });

  test('answers several prompts, texts and tokens of the model, each n times', async () => {
    const tokenized = await server.send('POST', '/tokenize', { model, prompt: 'count' });
    const { tokens } = tokenized.body as unknown as { tokens: number[] };
    const { choices, usage } = await complete({ prompt: ['hello', 'count'], n: 2 });
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    expect(choices.map(({ text }) => text.slice(0, 5))).toEqual([' from', ' from', ' one ', ' one ']);
    const single = await complete({ prompt: 'hello' });
    expect(usage?.completion_tokens).toBeGreaterThan(2 * (single.usage?.completion_tokens ?? 0));
    const fromTokens = await complete({ prompt: tokens });
    expect(fromTokens.choices[0]?.text).toBe(choices[2]?.text ?? '');
    expect((await complete({ prompt: [tokens, tokens] })).choices).toHaveLength(2);
  });

  test('gives log probabilities of the answer, in the shape of this route', async () => {
    const [choice] = (await complete({ logprobs: 2 })).choices;
    const { tokens = [], token_logprobs = [], top_logprobs = [], text_offset = [] } = choice?.logprobs ?? {};
    expect(tokens.join('')).toBe(choice?.text ?? '');
    expect(token_logprobs.every((each) => each <= 0)).toBe(true);
    expect(Object.keys(top_logprobs[0] ?? {})).toHaveLength(2);
    expect(text_offset.map((at, index) => choice?.text.slice(at).startsWith(tokens[index] ?? '?'))).not.toContain(
      false,
    );
  });

  test('echoes a prompt with its log probabilities', async () => {
    const [whole] = (await complete({ logprobs: 2, echo: true })).choices;
    expect(whole?.text).toBe('hello from the chain.');
    expect(whole?.logprobs?.tokens?.join('')).toBe('hello from the chain.');
    const [first, ...others] = whole?.logprobs?.top_logprobs ?? [];
    expect(first).toBeNull();
    expect(others.every((top) => Object.keys(top).length === 2)).toBe(true);
    expect((await complete({ max_tokens: 0 })).choices[0]).toMatchObject({ text: '', finish_reason: 'length' });
  });

  test('scores a text without an answer, as evaluations ask', async () => {
    const asked = { prompt: 'hello from, é😀', max_tokens: 0, logprobs: 2, echo: true };
    const { choices, usage } = await complete(asked);
    expect(choices[0]).toMatchObject({ text: asked.prompt, finish_reason: 'length' });
    expect(usage).toMatchObject({ completion_tokens: 0, prompt_tokens: usage?.total_tokens });
    const scores: readonly (number | null)[] = choices[0]?.logprobs?.token_logprobs ?? [];
    const tokenized = await server.send('POST', '/tokenize', { model, prompt: asked.prompt });
    const { tokens } = tokenized.body as unknown as { tokens: number[] };
    expect(scores).toHaveLength(tokens.length);
    expect([...new Set(choices[0]?.logprobs?.text_offset)]).toEqual(
      expect.arrayContaining([0, ...Array.from('from, é😀', (_, at) => at + 6)]),
    );
    // Each is the one that the token has as an answer to those in front of it.
    expect(scores[0]).toBeNull();
    for (const [at, token] of tokens.entries()) {
      if (at === 0) continue;
      const forced = await complete({
        prompt: tokens.slice(0, at),
        max_tokens: 1,
        logprobs: 0,
        logit_bias: { [token]: 100 },
      });
      expect(scores[at]).toBeCloseTo(forced.choices[0]?.logprobs?.token_logprobs?.[0] ?? Number.NaN, 4);
    }
    // The same of its tokens, several times, and in a stream; and of a text that is read in several steps.
    const fromTokens = (await complete({ ...asked, prompt: [tokens] as never, n: 2 })).choices;
    for (const each of fromTokens) {
      expect(each.text).toBe(asked.prompt);
      expect(each.logprobs?.token_logprobs).toEqual(scores as number[]);
    }
    const streamed = [];
    for await (const chunk of await client.completions.create({ model, ...asked, stream: true })) {
      streamed.push(...(chunk.choices[0]?.logprobs?.token_logprobs ?? []));
    }
    expect(streamed).toEqual(scores as number[]);
    const prompt = 'hello from the chain. '.repeat(100);
    const long = (await complete({ ...asked, prompt })).choices[0]?.logprobs;
    expect(long?.tokens?.join('')).toBe(prompt);
    expect(long?.token_logprobs?.every((each, at) => (at === 0 ? each === null : each < 0))).toBe(true);
  });

  test('tells where tokens are by characters, of which one may be several tokens', async () => {
    const text = 'é😀日x';
    const asked = { logprobs: 0, max_tokens: 40, grammar: `root ::= "${text}"` };
    const [choice] = (await complete(asked)).choices;
    expect(choice?.text).toBe(text);
    expect(choice?.logprobs?.tokens?.length).toBeGreaterThan(4);
    expect([...new Set(choice?.logprobs?.text_offset)]).toEqual([0, 1, 2, 3]);
    const offsets: number[] = [];
    for await (const { choices } of await client.completions.create({
      model,
      prompt: 'hello',
      ...asked,
      stream: true,
    })) {
      offsets.push(...(choices[0]?.logprobs?.text_offset ?? []));
    }
    expect(offsets).toEqual(choice?.logprobs?.text_offset ?? []);
  });

  test('fills the gap before a suffix, for a model that was made to', async () => {
    const asked = { model: 'filler', prompt: 'count', suffix: 'hello' };
    const { choices, usage } = await complete(asked);
    expect(choices[0]).toMatchObject({ text: ' filled in', finish_reason: 'stop' });
    // Both texts and the three marks were read; without a suffix the same model goes on with the text.
    const tokens = async (prompt: string) =>
      (await server.send<{ count: number }>('POST', '/tokenize', { model: 'filler', prompt })).body.count;
    expect(usage?.prompt_tokens).toBe((await tokens('count')) + (await tokens('hello')) + 3);
    expect((await complete({ ...asked, suffix: '' })).choices[0]?.text).toStartWith(' one two');
    // Text that people write does not become a mark.
    const told = await complete({ ...asked, suffix: '<|fim_middle|>' });
    expect(told.usage?.prompt_tokens).toBe((await tokens('count')) + (await tokens('<|fim_middle|>')) + 3);
  });

  test('is streamed, each choice in its order', async () => {
    const stream = await client.completions.create({
      model,
      prompt: ['hello', 'count'],
      temperature: 0,
      echo: true,
      stream: true,
      stream_options: { include_usage: true },
    });
    const texts = ['', ''];
    const finished: number[] = [];
    let usage: unknown;
    for await (const chunk of stream) {
      for (const { index, text, finish_reason } of chunk.choices) {
        texts[index] += text;
        if (finish_reason !== null) finished.push(index);
      }
      usage = chunk.usage ?? usage;
    }
    expect(texts[0]).toBe('hello from the chain.');
    expect(texts[1]).toStartWith('count one two');
    expect(finished.toSorted()).toEqual([0, 1]);
    expect(usage).toMatchObject({ prompt_tokens: expect.any(Number) });
  });

  test('refuses by name what cannot be', async () => {
    expect(await refusal({ suffix: 'behind' })).toContain('suffix: this model was not made to fill a gap');
    expect(await refusal({ best_of: 3 })).toContain('best_of');
    expect(await refusal({ model: 'filler', suffix: 'behind', echo: true, logprobs: 1 })).toContain('echo');
    expect(await refusal({ logit_bias: { 270000: 1 } })).toContain('logit_bias: there is no token 270000');
    expect(await refusal({ prompt: '' })).toContain('prompt');
    expect(await refusal({ prompt: [999_999] })).toContain('the token 999999');
    expect(await refusal({ prompt: Array.from({ length: 40 }, () => 'a'), n: 8 })).toContain('128');
    expect(await refusal({ prompt: ['hello', 'x'.repeat(6_000)] })).toContain('maximum context length is 4096 tokens');
  });
});
