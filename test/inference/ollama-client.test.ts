import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { Ollama } from 'ollama';
import { until } from '../support/fault/until.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));
const dense = await Bun.file(`${fixtures}embedders/tiny-bert/reference.json`).json();
const model = 'chain';

let server: TestServer;
let client: Ollama;
const directory = new TemporaryDirectory();

beforeAll(async () => {
  for (const name of ['generators/chain', 'generators/filler', 'embedders/tiny-bert', 'embedders/tiny-sparse']) {
    cpSync(`${fixtures}${name}`, join(directory.path, name), { recursive: true });
  }
  cpSync(`${fixtures}embedders/tiny-bert`, join(directory.path, 'embedders/acme/tiny'), { recursive: true });
  server = await startTestServer({
    set: { '--models-dir': directory.path, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
  client = new Ollama({ host: server.url });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const options = { temperature: 0, repeat_penalty: 1 };
const user = (content: string) => [{ role: 'user', content }];
const told = async (work: Promise<unknown>) => String(await work.catch((error: unknown) => error));

const add = {
  type: 'function',
  function: {
    name: 'add',
    description: 'Adds',
    parameters: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'integer' } },
      required: ['a', 'b'],
    },
  },
};

const totals = {
  done: true,
  total_duration: expect.any(Number),
  load_duration: expect.any(Number),
  prompt_eval_count: expect.any(Number),
  prompt_eval_duration: expect.any(Number),
  eval_count: expect.any(Number),
  eval_duration: expect.any(Number),
};

test('the heartbeat of the command line is answered, by the name of the product and where it is documented', async () => {
  expect((await fetch(server.url, { method: 'HEAD' })).status).toBe(200);
  const { name, docs, openapi } = (await (await fetch(server.url)).json()) as Record<string, string>;
  expect(name).toBe('sundew');
  for (const path of [docs, openapi]) expect((await fetch(`${server.url}${path}`)).status).toBe(200);
});

describe('chat', () => {
  test('whole, with counts and durations as integers', async () => {
    for (const name of [model, `${model}:latest`]) {
      const answer = await client.chat({ model: name, messages: user('hello'), options });
      expect(answer).toMatchObject({
        model: name,
        message: { role: 'assistant', content: ' from the chain.' },
        done_reason: 'stop',
        ...totals,
      });
      expect(new Date(answer.created_at).getTime()).toBeGreaterThan(0);
      expect(Object.values(answer).every((each) => typeof each !== 'number' || Number.isInteger(each))).toBe(true);
    }
  });

  test('in lines of JSON, the last with the counts', async () => {
    const parts = [];
    for await (const part of await client.chat({ model, messages: user('hello'), options, stream: true })) {
      parts.push(part);
    }
    expect(parts.length).toBeGreaterThan(2);
    expect(parts.map(({ message }) => message.content).join('')).toBe(' from the chain.');
    expect(parts.slice(0, -1).every(({ done }) => !done)).toBe(true);
    expect(parts.at(-1)).toMatchObject({ done_reason: 'stop', ...totals });
    const response = await fetch(`${server.url}/api/chat`, {
      method: 'POST',
      body: JSON.stringify({ model, messages: user('hello'), options }),
    });
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = (await response.text()).split('\n');
    expect(lines.pop()).toBe('');
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty('done');
  });

  test('with the log probabilities of all tokens, whole and in lines', async () => {
    const asked = { model, messages: user('hello'), options, logprobs: true, top_logprobs: 2 };
    const { logprobs = [] } = await client.chat(asked);
    expect(logprobs.map(({ token }) => token).join('')).toBe(' from the chain.');
    expect(logprobs.every(({ logprob, top_logprobs }) => logprob <= 0 && top_logprobs?.length === 2)).toBe(true);
    const inLines = [];
    for await (const part of await client.chat({ ...asked, stream: true })) inLines.push(...(part.logprobs ?? []));
    expect(inLines).toEqual(logprobs);
  });

  test('calls tools, whole and in lines, and is told what they answered', async () => {
    const asked = { model, messages: user('call'), tools: [add], options };
    const { message } = await client.chat(asked);
    const calls = message.tool_calls ?? [];
    expect(calls).toEqual([{ function: { name: 'add', arguments: expect.any(Object) } }]);
    const streamed = [];
    for await (const part of await client.chat({ ...asked, stream: true })) {
      streamed.push(...(part.message.tool_calls ?? []));
    }
    expect(streamed).toEqual(calls);
    const after = await client.chat({
      ...asked,
      messages: [...asked.messages, message, { role: 'tool', tool_name: 'add', content: '3' }],
    });
    expect(after.done).toBe(true);
  });

  test('refuses to let a model think that cannot, and takes that it is not to', async () => {
    for (const think of [true, 'high'] as const) {
      const thinking = { model, messages: user('hello'), options, think };
      expect(await told(client.chat(thinking))).toContain('does not support thinking');
      expect(await told(client.generate({ model, prompt: 'hello', options, think }))).toContain('think: "chain"');
      const raw = { method: 'POST', body: JSON.stringify({ ...thinking, stream: true }) };
      expect((await fetch(`${server.url}/api/chat`, raw)).status).toBe(400);
    }
    expect((await client.chat({ model, messages: user('hello'), options, think: false })).done).toBe(true);
  });

  test('is held to a schema, and to lengths and stops', async () => {
    const format = { type: 'object', properties: { size: { enum: ['s', 'm'] } }, required: ['size'] };
    const held = await client.chat({ model, messages: user('count'), format, options });
    expect(['s', 'm']).toContain(JSON.parse(held.message.content).size);
    const short = await client.chat({ model, messages: user('count'), options: { ...options, num_predict: 2 } });
    expect([short.done_reason, short.eval_count]).toEqual(['length', 2]);
    const stopped = await client.chat({ model, messages: user('hello'), options: { ...options, stop: [' the'] } });
    expect(stopped.message.content).toBe(' from');
  });

  test('without messages loads the model, and unloads it where it is to stay for no time', async () => {
    expect(await client.chat({ model, messages: [] })).toMatchObject({ done: true, done_reason: 'load' });
    const loaded = async () => (await client.ps()).models.find(({ name }) => name === `${model}:latest`);
    const minutes = async () => (new Date(String((await loaded())?.expires_at)).getTime() - Date.now()) / 60_000;
    expect(await minutes()).toBeWithin(3, 6);
    expect(await loaded()).toMatchObject({ size: expect.any(Number), context_length: 4_096 } as never);
    await client.chat({ model, messages: [], keep_alive: '2h' });
    expect(await minutes()).toBeWithin(115, 121);
    await client.chat({ model, messages: [], keep_alive: -1 });
    expect(await minutes()).toBeGreaterThan(10 * 365 * 24 * 60);
    expect(await client.chat({ model, messages: [], keep_alive: 0 })).toMatchObject({ done_reason: 'unload' });
    await until(async () => !(await client.ps()).models.some(({ name }) => name === `${model}:latest`));
    // One that is not loaded is not loaded for it.
    const unload = client.chat({ model, messages: [], keep_alive: 0 });
    const seen: unknown[] = [];
    while ((await Promise.race([unload, Promise.resolve()])) === undefined) seen.push(...(await client.ps()).models);
    expect(seen).toEqual([]);
  });
});

describe('generate', () => {
  test('whole and in lines', async () => {
    const answer = await client.generate({ model, prompt: 'hello', system: 'be brief', options });
    const { response, ...rest } = answer;
    expect(rest).toMatchObject({ model, done_reason: 'stop', ...totals });
    const parts: string[] = [];
    const stream = await client.generate({ model, prompt: 'hello', system: 'be brief', options, stream: true });
    for await (const part of stream) parts.push(part.response ?? '');
    expect(parts.join('')).toBe(response ?? '');
  });

  test('goes on with a prompt as it is, and fills the gap before a suffix', async () => {
    const raw = await client.generate({ model, prompt: 'hello', raw: true, options });
    const templated = await client.generate({ model, prompt: 'hello', options });
    expect(raw.response).toBe(' from the chain.');
    expect(raw.prompt_eval_count).toBeLessThan(templated.prompt_eval_count);
    const filled = await client.generate({ model: 'filler', prompt: 'count', suffix: 'hello', options });
    expect(filled.response).toBe(' filled in');
  });

  test('refuses what it does not do, by name', async () => {
    const asked = { model, prompt: 'hello' };
    expect(await told(client.generate({ ...asked, suffix: 'x' }))).toContain('was not made to fill a gap');
    expect(await told(client.generate({ ...asked, raw: true, system: 'x' }))).toContain('system:');
    expect(await told(client.generate({ model: 'filler', prompt: '', suffix: 'x' }))).toContain('prompt:');
    expect(await told(client.generate({ ...asked, template: 'x' }))).toContain('template:');
    expect(await told(client.generate({ ...asked, context: [1] }))).toContain('context:');
    expect(await told(client.generate({ ...asked, format: 'xml' }))).toContain('format:');
    expect(await told(client.chat({ model: 'gone', messages: user('a') }))).toContain('model_not_found');
  });
});

test('embeds texts, with the older route as well', async () => {
  const {
    embeddings,
    model: named,
    prompt_eval_count,
  } = await client.embed({
    model: 'tiny-bert:latest',
    input: [dense.text, 'a'],
  });
  expect([named, embeddings.length, embeddings[0]?.length, prompt_eval_count]).toEqual([
    'tiny-bert:latest',
    2,
    32,
    dense.ids.length + 3,
  ]);
  expect(embeddings[0]?.[0]).toBeCloseTo(dense.mean_pooled[0], 5);
  const { embedding } = await client.embeddings({ model: 'tiny-bert', prompt: dense.text });
  expect(embedding).toEqual(embeddings[0] ?? []);
  // Without texts the model is loaded, and the time that it stays is that of the request.
  const name = 'tiny-bert:latest';
  const loaded = async () => (await client.ps()).models.find((each) => each.name === name);
  expect((await client.embed({ model: name, input: [], keep_alive: '2h' })).embeddings).toEqual([]);
  expect((await client.embed({ model: name, input: '', keep_alive: '2h' })).embeddings).toEqual([]);
  expect(await told(client.embed({ model: name, input: ['a', ''] }))).toContain('input 1: the input is empty');
  expect((new Date(String((await loaded())?.expires_at)).getTime() - Date.now()) / 60_000).toBeWithin(115, 121);
  await client.embed({ model: name, input: 'a', keep_alive: 0 });
  await until(async () => (await loaded()) === undefined);
  expect(await told(client.embed({ model: 'gone', input: [] }))).toContain('model_not_found');
  // A text that is too long is cut unless told otherwise.
  const long = 'the '.repeat(100);
  expect((await client.embed({ model: 'tiny-bert', input: long })).embeddings).toHaveLength(1);
  expect(await told(client.embed({ model: 'tiny-bert', input: long, truncate: false }))).toContain('context_length');
  expect(await told(client.embed({ model: 'tiny-sparse', input: 'a' }))).toContain('sparse');
});

describe('models', () => {
  test('are listed, shown and versioned', async () => {
    const { models } = await client.list();
    expect(models.map(({ name }) => name)).toEqual([
      'acme/tiny:latest',
      'tiny-bert:latest',
      'tiny-sparse:latest',
      'chain:latest',
      'filler:latest',
    ]);
    expect(models.at(-2)).toMatchObject({
      model: 'chain:latest',
      modified_at: expect.any(String),
      size: expect.any(Number),
      details: { format: 'gguf', family: 'llama' },
    });
    const shown = await client.show({ model });
    expect(shown).toMatchObject({ capabilities: ['completion', 'tools'], template: expect.stringContaining('{%') });
    expect(shown.model_info).toMatchObject({ 'llama.context_length': 4_096 });
    expect((await client.show({ model: 'tiny-bert' })).capabilities).toEqual(['embedding']);
    expect(await told(client.show({ model: 'gone' }))).toContain('not found');
    expect((await (await fetch(`${server.url}/api/version`)).json()) as object).toEqual({
      version: expect.any(String),
    });
  });

  test('that are there need not be pulled, and unknown ones are refused', async () => {
    expect(await client.pull({ model })).toEqual({ status: 'success' } as never);
    const told_ = [];
    for await (const { status } of await client.pull({ model, stream: true })) told_.push(status);
    expect(told_).toEqual(['pulling manifest', 'success']);
    expect(await told(client.pull({ model: 'gone' }))).toContain('model_not_found');
    // One of the catalogue, while downloads are off.
    expect(await told(client.pull({ model: 'all-minilm-l6-v2' }))).toContain('sundew models pull');
  });

  test('are deleted', async () => {
    await client.delete({ model: 'acme/tiny:latest' });
    expect(existsSync(join(directory.path, 'embedders/acme'))).toBe(false);
    expect((await client.list()).models.map(({ name }) => name)).not.toContain('acme/tiny:latest');
    expect(await told(client.delete({ model: 'acme/tiny' }))).toContain('not found');
  });
});
