import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { pythonEnvironment } from '../clients/install-libraries.ts';
import {
  fetchMs,
  pullRealModels,
  realEmbedder,
  realGenerator,
  realModelsDirectory,
} from '../support/inference/real-models.ts';
import { answerOf, readmeAnswers, readmeCommands } from '../support/sources/shell-example.ts';
import { hitKeys, startTestServer, type TestServer } from '../support/test-server.ts';

const root = Bun.fileURLToPath(new URL('../../', import.meta.url));
let python = '';
let server: TestServer;
let client: OpenAI;
const model = realGenerator;
const embedder = realEmbedder;

beforeAll(async () => {
  await pullRealModels();
  [python = ''] = (await pythonEnvironment('official')).run;
  server = await startTestServer({ set: { '--models-dir': realModelsDirectory, '--allow-downloads': 'false' } });
  client = new OpenAI({ baseURL: `${server.url}/ai/v1`, apiKey: 'none' });
}, fetchMs);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

test('the code of the README does what it says, as it is written', async () => {
  const readme = await Bun.file(join(root, 'README.md')).text();
  const code = /```ts\n(import OpenAI[\s\S]*?)```/.exec(readme)?.[1] ?? '';
  const directory = mkdtempSync(join(tmpdir(), 'sundew-readme-'));
  // Beside the tests, so that the package is found.
  const file = join(root, 'test/real-models', `readme-${crypto.randomUUID()}.tmp.ts`);
  writeFileSync(file, code.replaceAll('http://127.0.0.1:8080', server.url));
  try {
    const child = Bun.spawn([process.execPath, file], { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
    const output = await new Response(child.stdout).text();
    expect([await child.exited, output]).toEqual([0, expect.stringMatching(/\w+[\s\S]*name: "get_weather"/)]);
    expect(output).toMatch(/arguments: ["'].*city.*["']/);
    expect(output).toMatch(/city: ["'].*["']/);
    expect(output).toContain('[ 384, 384, 384 ]');
  } finally {
    rmSync(file);
    rmSync(directory, { recursive: true });
  }
}, 120_000);

test('so do its curl and its Python', async () => {
  const readme = await Bun.file(join(root, 'README.md')).text();
  const here = (code = '') => code.replaceAll('http://127.0.0.1:8080', server.url);
  const command = here(/```sh\n(curl \S* \S*\/ai\/v1\/[\s\S]*?)```/.exec(readme)?.[1]);
  const shell = Bun.spawn(['bash', '-c', command], { stdio: ['ignore', 'pipe', 'inherit'] });
  const answer = JSON.parse(await new Response(shell.stdout).text());
  expect(answer.choices[0].message.content).toMatch(/\w/);
  const script = here(/```python\n([\s\S]*?)```/.exec(readme)?.[1]);
  const child = Bun.spawn([python, '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = await new Response(child.stdout).text();
  expect([await child.exited, output]).toEqual([0, expect.stringMatching(/\w/)]);
}, 120_000);

test('a question in words finds the note that answers it, as the README says', async () => {
  const answers: unknown[] = [];
  for (const command of readmeCommands('Ask in words')) answers.push(await answerOf(command, server.url));
  expect(answers).toMatchObject(readmeAnswers);
  const alone = { table: 'notes', semantic_search: 'how do I keep the heating running in winter', limit: 1 };
  expect(hitKeys(await server.send('POST', '/db/v1/query', alone))).toEqual(['n:1']);
}, 120_000);

test('texts that mean the same are near, others are not', async () => {
  const input = ['a cat sits on the mat', 'a kitten rests on a rug', 'stock prices fell sharply'];
  const { data, usage } = await client.embeddings.create({ model: embedder, input });
  const [cat, kitten, stocks] = data.map(({ embedding }) => embedding);
  const cosine = (a: number[] = [], b: number[] = []) => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  // The two quantisations of the catalogue differ a little.
  expect(cosine(cat, cat)).toBeCloseTo(1, 4);
  expect(cosine(cat, kitten)).toBeCloseTo(0.66, 1);
  expect(cosine(cat, stocks)).toBeCloseTo(0.07, 1);
  expect(usage.total_tokens).toBe(22);
});

test('chats in English, the same words streamed and whole', async () => {
  const request = {
    model,
    messages: [{ role: 'user', content: 'What is the capital of France? Answer in one sentence.' }],
    temperature: 0,
    max_completion_tokens: 40,
  } as const;
  const whole = await client.chat.completions.create({ ...request, messages: [...request.messages] });
  expect(whole.choices[0]?.message.content).toContain('Paris');
  expect(whole.choices[0]?.finish_reason).toBe('stop');
  let streamed = '';
  const stream = await client.chat.completions.create({ ...request, messages: [...request.messages], stream: true });
  for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? '';
  expect(streamed).toBe(whole.choices[0]?.message.content ?? '');
});

test('answers JSON of a schema whatever it is asked', async () => {
  const schema = {
    type: 'object',
    properties: { colour: { enum: ['red', 'green'] }, amount: { type: 'integer' } },
    required: ['colour', 'amount'],
    additionalProperties: false,
  };
  for (const content of ['How many apples?', 'Write a poem about the sea.']) {
    const answer = await client.chat.completions.create({
      model,
      messages: [{ role: 'user', content }],
      temperature: 0,
      max_completion_tokens: 100,
      response_format: { type: 'json_schema', json_schema: { name: 'fruit', strict: true, schema } },
    });
    const value = JSON.parse(answer.choices[0]?.message.content ?? '') as Record<string, unknown>;
    expect(Object.keys(value).sort()).toEqual(['amount', 'colour']);
    expect(['red', 'green']).toContain(String(value.colour));
    expect(Number.isInteger(value.amount)).toBe(true);
  }
});

test('the Python client of OpenAI gets the same', async () => {
  const script = Bun.fileURLToPath(new URL('openai_client.py', import.meta.url));
  const child = Bun.spawn([python, script, `${server.url}/ai/v1`, model, embedder], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const output = await new Response(child.stdout).text();
  expect(await child.exited).toBe(0);
  const found = JSON.parse(output) as Record<string, unknown>;
  expect(found.whole).toContain('Paris');
  expect([found.streamed, found.helped]).toEqual([found.whole, found.whole]);
  expect(found.call).toEqual({
    reason: 'tool_calls',
    name: 'save_city',
    arguments: { name: expect.any(String), population: expect.any(Number) },
  });
  expect(found.parsed).toEqual({ name: expect.any(String), population: expect.any(Number) });
  expect(found.embeddings_differ_by).toBeLessThan(1e-6);
  expect(found.error).toContain('model_not_found');
}, 120_000);
