import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, embedMany, generateText, jsonSchema, Output, streamText, tool } from 'ai';
import { freed, given, thrownBy, works } from './report.mjs';

const providerOf = (origin) =>
  createOpenAICompatible({
    name: 'sundew',
    baseURL: `${origin}/v1`,
    apiKey: 'none',
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
const provider = providerOf(given.origin);
const model = provider(given.generator);
const asked = (prompt) => ({ model, prompt, temperature: 0, maxRetries: 0 });
const numbers = jsonSchema({
  type: 'object',
  properties: { a: { type: 'integer' }, b: { type: 'integer' } },
  required: ['a', 'b'],
});
const tools = { add: tool({ description: 'Adds', inputSchema: numbers }) };

await works('chat', async () => {
  const { text, usage } = await generateText(asked('hello'));
  assert.equal(text, ' from the chain.');
  assert.equal(usage.outputTokens, 4);
});

await works('stream', async () => {
  const { textStream, usage } = streamText(asked('hello'));
  let text = '';
  for await (const part of textStream) text += part;
  assert.equal(text, ' from the chain.');
  assert.equal((await usage).outputTokens, 4);
});

await works('tools', async () => {
  const { toolCalls } = await generateText({ ...asked('call'), tools });
  assert.deepEqual([toolCalls[0].toolName, toolCalls[0].input], ['add', { a: 1, b: 2 }]);
});

await works('schema', async () => {
  const schema = jsonSchema({
    type: 'object',
    properties: { answer: { type: 'integer' } },
    required: ['answer'],
    additionalProperties: false,
  });
  const { output } = await generateText({ ...asked('json'), output: Output.object({ schema }) });
  assert.deepEqual(output, { answer: 42 });
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
  const leaving = new AbortController();
  const { textStream } = streamText({
    model: providerOf(given.slow)('puppet'),
    prompt: 'drip',
    abortSignal: leaving.signal,
    maxRetries: 0,
  });
  for await (const _ of textStream) leaving.abort();
  await freed();
});

await works('errors', async () => {
  const long = await thrownBy(() => generateText(asked('word '.repeat(5_000))));
  assert.ok(APICallError.isInstance(long));
  assert.equal(long.statusCode, 400);
  assert.match(long.message, /maximum context length is 4096 tokens/);
  assert.equal(long.data.error.code, 'context_length_exceeded');
  const gone = await thrownBy(() => generateText({ ...asked('hello'), model: provider('gone') }));
  assert.match(gone.message, /model_not_found/);
  const busy = await thrownBy(() =>
    generateText({ model: providerOf(given.busy)('puppet'), prompt: 'hi', maxRetries: 0 }),
  );
  assert.deepEqual([busy.statusCode, busy.isRetryable], [503, true]);
});
