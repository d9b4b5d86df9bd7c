import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { ChatCompletionChunk, ChatCompletionFunctionTool } from 'openai/resources';
import { jsonSchemas } from '../support/inference/json-schemas.ts';
import { librarySchemas } from '../support/inference/library-schemas.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));

interface Completion extends Record<string, unknown> {
  choices: {
    index: number;
    message: {
      content: string | null;
      reasoning_content: string | null;
      tool_calls?: { id: string; function: object }[];
    };
    finish_reason: string;
    logprobs: { content: { token: string; top_logprobs: object[] }[] } | null;
  }[];
  usage: Record<string, number>;
  speculation: object;
}

let server: TestServer;
let client: OpenAI;
beforeAll(async () => {
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
  client = new OpenAI({ baseURL: `${server.url}/ai/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => server[Symbol.asyncDispose]());

const user = (content: string) => [{ role: 'user' as const, content }];
const body = (content: string, more: object = {}) => ({
  model: 'chain',
  messages: user(content),
  temperature: 0,
  ...more,
});
const chat = (content: string, more: object = {}) =>
  server.send<Completion>('POST', '/ai/v1/chat/completions', body(content, more));

async function answer(content: string, more: object = {}) {
  const { status, body: completion } = await chat(content, more);
  if (status !== 200) throw new Error(JSON.stringify(completion));
  const [choice] = completion.choices;
  if (choice === undefined) throw new Error('no choice');
  return { ...choice, usage: completion.usage };
}

async function refusal(content: string, more: object): Promise<string> {
  const { status, body: refused } = await chat(content, more);
  return `${status} ${refused.error}`;
}

/** Data of the events of a streamed answer. */
async function events(content: string, more: object = {}): Promise<string[]> {
  const { body: text } = await server.send<string>('POST', '/ai/v1/generate', body(content, { stream: true, ...more }));
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''));
}

const add: ChatCompletionFunctionTool = {
  type: 'function',
  function: {
    name: 'add',
    parameters: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'integer' } },
      required: ['a', 'b'],
      additionalProperties: false,
    },
    strict: true,
  },
};

describe('several answers', () => {
  test('come from one prompt, which is read and counted once', async () => {
    const random = { temperature: 2, top_k: 0, seed: 4, grammar: 'root ::= [a-z]{12}' };
    const more = { n: 3, ...random, prompt_cache_key: 'several' };
    const text = `${'once '.repeat(60)}nothing`;
    const { body: completion } = await chat(text, more);
    const alone = await answer(text, { ...more, n: 1, prompt_cache: false });
    const texts = completion.choices.map(({ message }) => message.content);
    expect(completion.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(texts[0]).toBe(alone.message.content);
    expect(new Set(texts).size).toBe(3);
    expect(completion.usage.prompt_tokens).toBe(alone.usage.prompt_tokens ?? 0);
    const counts = completion.usage.completion_tokens ?? 0;
    expect(counts).toBeGreaterThan(2 * (alone.usage.completion_tokens ?? 0));
    // Each of them is what its own seed gives.
    const second = await answer(text, { ...more, n: 1, seed: 5, prompt_cache: false });
    expect(texts[1]).toBe(second.message.content);
  });

  test('are streamed side by side, each with its place', async () => {
    const chunks = (await events('hello', { n: 2, stream_options: { include_usage: true } })).slice(0, -1);
    const parsed = chunks.map((chunk) => JSON.parse(chunk) as ChatCompletionChunk);
    for (const index of [0, 1]) {
      const own = parsed.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
      expect(own[0]?.delta).toEqual({ role: 'assistant' });
      expect(own.map(({ delta }) => delta.content ?? '').join('')).toBe(' from the chain.');
      expect(own.at(-1)?.finish_reason).toBe('stop');
    }
    expect(parsed.at(-1)?.usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 8 });
  });

  test('are no more than eight', async () => {
    expect(await refusal('hello', { n: 9 })).toMatch(/^400 .*n/);
    expect((await chat('hello', { n: 8 })).body.choices).toHaveLength(8);
  });
});

test('an answer goes on with the last message', async () => {
  const messages = [
    { role: 'user', content: 'say' },
    { role: 'assistant', content: 'count' },
  ];
  const { message, usage } = await answer('', { messages, continue_final_message: true });
  expect(message.content).toStartWith(' one two three');
  expect(usage.prompt_tokens).toBeGreaterThan(0);
  expect(await refusal('hello', { continue_final_message: true })).toMatch(/^400 .*continue_final_message/);
});

describe('an answer', () => {
  test('has the whole shape under both names of the route', async () => {
    for (const path of ['/ai/v1/generate', '/ai/v1/chat/completions']) {
      const {
        status,
        headers,
        body: completion,
      } = await server.send('POST', path, { ...body('hello'), prompt_cache: false });
      expect(status).toBe(200);
      expect(completion).toEqual({
        id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/),
        object: 'chat.completion',
        created: expect.any(Number),
        model: 'chain',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: ' from the chain.', refusal: null, reasoning_content: null },
            logprobs: null,
            finish_reason: 'stop',
          },
        ],
        usage: {
          prompt_tokens: 7,
          completion_tokens: 4,
          total_tokens: 11,
          cached_prompt_tokens: 0,
          prompt_tokens_details: { cached_tokens: 0 },
        },
        speculation: {
          policy: 'auto',
          calibration: 'none',
          decision: 'disabled',
          disabled_reason: 'not_requested',
          drafted_tokens: 0,
          accepted_tokens: 0,
        },
      });
      expect(headers.get('server-timing')).toMatch(/prefill;dur=.*decode;dur=/);
    }
  });

  test('ends where it is told to', async () => {
    expect(await answer('count', { stop: ' four' })).toMatchObject({
      message: { content: ' one two three' },
      finish_reason: 'stop',
    });
    expect(await answer('forever', { max_completion_tokens: 3 })).toMatchObject({
      message: { content: ' on and on' },
      finish_reason: 'length',
    });
    expect((await answer('forever', {})).usage.completion_tokens).toBe(256);
  });

  test('keeps thoughts apart from what it says', async () => {
    expect((await answer('think')).message).toMatchObject({ content: 'done', reasoning_content: 'hmm' });
  });

  test('has log probabilities when they are asked for', async () => {
    const { logprobs } = await answer('hello', { logprobs: true, top_logprobs: 2 });
    expect(logprobs?.content.map(({ token }) => token).join('')).toBe(' from the chain.');
    expect(logprobs?.content.every(({ top_logprobs }) => top_logprobs.length === 2)).toBe(true);
  });

  test('starts from a prompt that was read before, unless that is refused', async () => {
    const more = { prompt_cache: true, prompt_cache_key: 'a' };
    const before = await answer(`${'x '.repeat(300)}count`, more);
    // The beginning of every prompt may be there.
    expect(before.usage.cached_prompt_tokens).toBeLessThan(10);
    const { usage } = await answer(`${'x '.repeat(300)}hello`, more);
    expect(usage.cached_prompt_tokens).toBeGreaterThan(500);
    const plain = await answer(`${'x '.repeat(300)}hello`);
    expect(plain.usage.cached_prompt_tokens).toBeGreaterThan(500);
    const apart = await answer(`${'x '.repeat(300)}hello`, { prompt_cache: false });
    expect(apart.usage.cached_prompt_tokens).toBe(0);
  });

  test('says whether tokens were drafted for it, and is the same with and without', async () => {
    const drafted = await chat('count', { draft_model: 'chain', speculative_k: 4 });
    expect(drafted.body.choices[0]?.message.content).toBe(' one two three four five six seven eight nine ten');
    expect(drafted.body.speculation).toMatchObject({ policy: 'auto', decision: 'enabled', disabled_reason: null });
    const off = await chat('count', { draft_model: 'chain', speculation_policy: 'off' });
    expect(off.body.speculation).toMatchObject({ policy: 'off', decision: 'disabled', disabled_reason: 'policy_off' });
    expect(off.body.choices).toEqual(drafted.body.choices as never);
  });

  test('M11: reads special tokens that people write as text', async () => {
    // As markup it would end the message, and the word before it would choose the answer.
    expect((await answer('hello<|im_end|>')).message.content).toBe('');
    const { usage } = await answer('<|im_start|>');
    expect(usage.prompt_tokens).toBeGreaterThan(10);
  });
});

describe('a streamed answer', () => {
  test('is chunks of one id: the role, pieces, the reason, usage, the end', async () => {
    const all = await events('hello', { stream_options: { include_usage: true } });
    expect(all.pop()).toBe('[DONE]');
    const chunks = all.map((event) => JSON.parse(event) as ChatCompletionChunk);
    expect(new Set(chunks.map(({ id, created, model, object }) => [id, created, model, object].join())).size).toBe(1);
    const head = { index: 0, logprobs: null, finish_reason: null };
    expect(chunks.map(({ choices }) => choices)).toEqual([
      [{ ...head, delta: { role: 'assistant' } }],
      [{ ...head, delta: { content: ' from' } }],
      [{ ...head, delta: { content: ' the' } }],
      [{ ...head, delta: { content: ' chain' } }],
      [{ ...head, delta: { content: '.' } }],
      [{ ...head, delta: {}, finish_reason: 'stop' }],
      [],
    ]);
    expect(chunks.map(({ usage }) => usage?.total_tokens)).toEqual([...Array(6).fill(undefined), 11]);
    expect((await events('hello')).some((event) => event.includes('usage'))).toBe(false);
  });

  test('says what the whole answer says', async () => {
    for (const word of ['hello', 'count', 'flower', 'json', 'nothing']) {
      const chunks = (await events(word)).slice(0, -1).map((event) => JSON.parse(event) as ChatCompletionChunk);
      const streamed = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
      expect(streamed).toBe((await answer(word)).message.content ?? '');
    }
  });

  test('has content where the answer has no words, as the whole answer does', async () => {
    const contents = async (content: string) => {
      const chunks = (await events(content)).slice(0, -1).map((event) => JSON.parse(event) as ChatCompletionChunk);
      return chunks.flatMap(({ choices }) => choices[0]?.delta.content ?? []);
    };
    expect((await answer('nothing')).message.content).toBe('');
    expect(await contents('nothing')).toEqual(['']);
    expect(await contents('hello')).not.toContain('');
  });

  test('has its log probabilities with the pieces', async () => {
    const chunks = (await events('hello', { logprobs: true }))
      .slice(0, -1)
      .map((event) => JSON.parse(event) as ChatCompletionChunk);
    const tokens = chunks.flatMap(({ choices }) => choices[0]?.logprobs?.content?.map(({ token }) => token) ?? []);
    expect(tokens.join('')).toBe(' from the chain.');
  });

  test('is read by the OpenAI SDK, in a loop and by its helper', async () => {
    const stream = await client.chat.completions.create({ model: 'chain', messages: user('count'), stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe(' one two three four five six seven eight nine ten');
    const helped = client.chat.completions.stream({ model: 'chain', messages: user('think') });
    const completion = await helped.finalChatCompletion();
    expect(completion.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'done' } });
  });
});

describe('tools', () => {
  const call = { name: 'add', arguments: '{"a":1,"b":2}' };

  test('are called, and the call ends the answer', async () => {
    for (const more of [
      {},
      { tool_choice: 'auto' },
      { tool_choice: 'required' },
      { tool_choice: { type: 'function', function: { name: 'add' } } },
    ]) {
      expect(await answer('call', { tools: [add], ...more })).toMatchObject({
        message: {
          content: null,
          tool_calls: [{ id: expect.stringMatching(/^call_/), type: 'function', function: call }],
        },
        finish_reason: 'tool_calls',
      } as never);
    }
    const none = await answer('call', { tools: [add], tool_choice: 'none' });
    expect(none.message.tool_calls).toBeUndefined();
    expect(none.message.content).toStartWith('<tool_call>');
  });

  test('have to be called where that is required, whatever the model would rather say', async () => {
    const { message, finish_reason } = await answer('hello', {
      tools: [add],
      tool_choice: 'required',
      max_tokens: 200,
    });
    expect(message.content ?? '').not.toContain('chain');
    // A model without sense writes digits until it is stopped.
    expect(['tool_calls', 'length']).toContain(finish_reason);
  });

  test('are streamed with an index in each piece, and id and name in the first alone', async () => {
    const chunks = (await events('call', { tools: [add] }))
      .slice(0, -1)
      .map((event) => JSON.parse(event) as ChatCompletionChunk);
    const pieces = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    expect(pieces[0]).toEqual({
      index: 0,
      id: expect.stringMatching(/^call_/),
      type: 'function',
      function: { name: 'add', arguments: '' },
    });
    expect(pieces.slice(1).every((piece) => JSON.stringify(Object.keys(piece)) === '["index","function"]')).toBe(true);
    expect(pieces.map((piece) => piece.function?.arguments).join('')).toBe(call.arguments);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls');
  });

  test('M14: cut off in the middle are given as far as they came', async () => {
    // Behind the last argument only the end of the mark is missing: the call is whole.
    const { message, finish_reason } = await answer('call', { tools: [add], max_tokens: 3 });
    expect(finish_reason).toBe('tool_calls');
    expect(message.tool_calls).toMatchObject([{ function: call }] as never);
    const sooner = await answer('call', { tools: [add], max_tokens: 2 });
    expect([sooner.finish_reason, sooner.message.tool_calls ?? sooner.message.content]).toEqual([
      'length',
      expect.anything(),
    ]);
  });

  test('work with the OpenAI SDK, there and back', async () => {
    const first = await client.chat.completions.create({ model: 'chain', messages: user('call'), tools: [add] });
    const message = first.choices[0]?.message;
    const [made] = message?.tool_calls ?? [];
    if (message === undefined || made === undefined) throw new Error('no call');
    const second = await client.chat.completions.create({
      model: 'chain',
      messages: [...user('call'), message, { role: 'tool', tool_call_id: made.id, content: '3' }, ...user('hello')],
      tools: [add],
    });
    expect(second.choices[0]?.message.content).toBe(' from the chain.');
    const streamed = client.chat.completions.stream({ model: 'chain', messages: user('call'), tools: [add] });
    expect((await streamed.finalChatCompletion()).choices[0]?.message.tool_calls?.[0]).toMatchObject({
      function: { name: 'add', parsed_arguments: { a: 1, b: 2 } },
    });
  });
});

test('tools are run by the helper of the OpenAI SDK', async () => {
  const seen: unknown[] = [];
  const runner = client.chat.completions.runTools({
    model: 'chain',
    messages: user('call'),
    temperature: 0,
    stream: true,
    tools: [
      {
        type: 'function',
        function: {
          ...add.function,
          parse: JSON.parse,
          function: (given: unknown) => {
            seen.push(given);
            return 'say hello';
          },
        },
      },
    ],
  } as Parameters<typeof client.chat.completions.runTools>[0]);
  // The result stands last in the prompt, within its marks, after which the model has nothing to say.
  expect(await runner.finalContent()).toBe('');
  expect(seen).toEqual([{ a: 1, b: 2 }]);
});

describe('a format', () => {
  const schema = {
    type: 'object',
    properties: { answer: { enum: [41, 42] } },
    required: ['answer'],
    additionalProperties: false,
  };

  test('is kept, in the way of the OpenAI SDK too', async () => {
    const json_schema = { name: 'answer', strict: true, schema };
    const parsed = await client.chat.completions.parse({
      model: 'chain',
      messages: user('json'),
      response_format: { type: 'json_schema', json_schema },
    });
    expect(parsed.choices[0]?.message.parsed).toEqual({ answer: 42 } as never);
    expect(
      JSON.parse((await answer('json', { response_format: { type: 'json_object' } })).message.content ?? ''),
    ).toEqual({ answer: 42 });
  });

  test('is kept by a model that would rather say something else', async () => {
    const { message } = await answer('hello', { response_format: { type: 'json_schema', json_schema: { schema } } });
    expect([41, 42]).toContain(JSON.parse(message.content ?? '').answer);
    expect((await answer('hello', { grammar: 'root ::= "yes" | "no"' })).message.content).toMatch(/^(yes|no)$/);
  });

  test('of any schema that can be kept makes a grammar that the engine takes', async () => {
    for (const schema of [...jsonSchemas, ...librarySchemas]) {
      const { status, body: answered } = await chat('hello', {
        max_tokens: 1,
        response_format: { type: 'json_schema', json_schema: { schema } },
      });
      expect([JSON.stringify(schema), status, answered.error]).toEqual([JSON.stringify(schema), 200, undefined]);
    }
  });

  test('that cannot be kept is refused by name', async () => {
    const format = (schema: object) => ({
      response_format: { type: 'json_schema', json_schema: { schema, strict: true } },
    });
    expect(await refusal('json', format({ type: 'string', format: 'iri' }))).toStartWith(
      '400 unsupported_response_format: JSON Schema keyword "format"',
    );
    expect(await refusal('json', format({ $ref: 'https://example.com/s.json' }))).toContain('"$ref"');
    expect(await refusal('json', { grammar: 'root ::= (' })).toStartWith('400 unsupported_response_format');
    expect(await refusal('json', { grammar: 'no root' })).toStartWith('400 unsupported_response_format');
  });
});

describe('what cannot be', () => {
  test('is refused with the code of its cause', async () => {
    expect(await refusal('x'.repeat(5_000), {})).toMatch(
      /^400 context_length_exceeded: .*maximum context length is 4096 tokens.*\d{4}/,
    );
    expect(await refusal('hello', { model: 'gone' })).toStartWith('404 model_not_found: no model named "gone"');
    expect(await refusal('hello', { model: 'tiny-bert' })).toContain('among the embedders');
    expect(await refusal('hello', { backend: 'xla' })).toStartWith('400 model_not_supported: backend');
    expect(await refusal('hello', { draft_model: 'gone' })).toStartWith('404 model_not_found');
    expect(await refusal('hello', { web_search_options: {} })).toStartWith('400 invalid_request: web_search_options');
    expect((await chat('hello', { web_search_options: null })).status).toBe(200);
    expect((await chat('hello', { chat_template_kwargs: { enable_thinking: true } })).status).toBe(200);
  });

  test('are images for a model of text; too large and broken ones are said to be so first', async () => {
    const image = (url: string) => ({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    });
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    expect(await refusal('', image(`data:image/png;base64,${pixel}`))).toStartWith(
      '400 model_not_supported: messages[0].content[0]',
    );
    expect(await refusal('', image('data:image/png;base64,AAAA'))).toStartWith('400 invalid_media');
    // It takes no images, so none is fetched.
    expect(await refusal('', image('http://example.test/x.png'))).toStartWith('400 model_not_supported');
    const bytes = Buffer.from(pixel, 'base64');
    bytes.writeUInt32BE(60_000, 16);
    expect(await refusal('', image(`data:image/png;base64,${bytes.toString('base64')}`))).toMatch(
      /^413 media_too_large|^400 invalid_media/,
    );
  });

  test('shows in the OpenAI SDK with its sentence', async () => {
    const error = await client.chat.completions
      .create({ model: 'gone', messages: user('hello') })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect((error as Error).message).toContain('model_not_found: no model named');
  });
});
