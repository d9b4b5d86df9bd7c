import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { APICallError, embedMany, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { freed, given, thrownBy, works } from './report.mjs';

const providerOf = (origin) => createOpenAI({ baseURL: `${origin}/v1`, apiKey: 'none' });
const provider = providerOf(given.origin);
const model = provider.chat(given.generator);
const responses = provider(given.generator);
const asked = (prompt, of = model) => ({ model: of, prompt, temperature: 0, maxRetries: 0 });
const numbers = jsonSchema({
  type: 'object',
  properties: { a: { type: 'integer' }, b: { type: 'integer' } },
  required: ['a', 'b'],
  additionalProperties: false,
});
const tools = { add: tool({ description: 'Adds', inputSchema: numbers, execute: ({ a, b }) => a + b }) };
const ways = [model, responses];

await works('chat', async () => {
  const { text, usage } = await generateText(asked('hello'));
  assert.equal(text, ' from the chain.');
  assert.equal(usage.outputTokens, 4);
});

await works('stream', async () => {
  for (const of of ways) {
    const { textStream, usage } = streamText(asked('hello', of));
    let text = '';
    for await (const part of textStream) text += part;
    assert.equal(text, ' from the chain.');
    assert.equal((await usage).outputTokens, 4);
  }
});

await works('tools', async () => {
  for (const of of ways) {
    const { steps } = await generateText({ ...asked('call', of), tools, stopWhen: stepCountIs(3) });
    assert.deepEqual(
      steps.map(({ toolResults }) => toolResults.map(({ toolName, output }) => [toolName, output])),
      [[['add', 3]], []],
    );
  }
});

await works('schema', async () => {
  const schema = z.object({ answer: z.int(), at: z.iso.datetime(), by: z.email(), from: z.url().max(2_048) });
  for (const of of ways) {
    const { output } = await generateText({ ...asked('json', of), output: Output.object({ schema }) });
    schema.parse(output);
  }
});

await works('responses', async () => {
  const { text, response } = await generateText(asked('hello', responses));
  assert.equal(text, ' from the chain.');
  // The library refers to what was said before by its id.
  const { prompt: _, ...rest } = asked('', responses);
  const messages = [{ role: 'user', content: 'hello' }, ...response.messages, { role: 'user', content: 'hello' }];
  const again = await generateText({ ...rest, messages });
  assert.equal(again.text, ' from the chain.');
});

await works('embeddings', async () => {
  const embedder = provider.embeddingModel(given.embedder);
  const { embeddings } = await embedMany({ model: embedder, values: ['the cat', 'a dog'], maxRetries: 0 });
  assert.deepEqual(
    embeddings.map(({ length }) => length),
    [32, 32],
  );
});

await works('cancel', async () => {
  const slow = providerOf(given.slow);
  for (const of of [slow.chat('puppet'), slow('puppet')]) {
    const leaving = new AbortController();
    const { textStream } = streamText({ model: of, prompt: 'drip', abortSignal: leaving.signal, maxRetries: 0 });
    for await (const _ of textStream) leaving.abort();
    await freed();
  }
});

await works('errors', async () => {
  const long = await thrownBy(() => generateText(asked('word '.repeat(5_000), responses)));
  assert.ok(APICallError.isInstance(long));
  assert.equal(long.statusCode, 400);
  assert.match(long.message, /maximum context length is 4096 tokens/);
  const gone = await thrownBy(() => generateText(asked('hello', provider('gone'))));
  assert.match(gone.message, /model_not_found/);
  const busy = await thrownBy(() => generateText(asked('hi', providerOf(given.busy)('puppet'))));
  assert.deepEqual([busy.statusCode, busy.isRetryable], [503, true]);
});
