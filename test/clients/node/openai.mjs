import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { freed, given, thrownBy, works } from './report.mjs';

const clientOf = (origin) => new OpenAI({ baseURL: `${origin}/v1`, apiKey: 'none', maxRetries: 0 });
const client = clientOf(given.origin);
const asked = (content) => ({
  model: given.generator,
  messages: [{ role: 'user', content }],
  temperature: 0,
});
const numbers = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'] };
const tools = [{ type: 'function', function: { name: 'add', description: 'Adds', parameters: numbers } }];

await works('chat', async () => {
  const { choices, usage } = await client.chat.completions.create(asked('hello'));
  assert.equal(choices[0].message.content, ' from the chain.');
  assert.equal(usage.completion_tokens, 4);
});

await works('stream', async () => {
  const stream = await client.chat.completions.create({
    ...asked('hello'),
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = '';
  let usage;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, ' from the chain.');
  assert.equal(usage.completion_tokens, 4);
});

await works('tools', async () => {
  const { choices } = await client.chat.completions.create({ ...asked('call'), tools });
  const [call] = choices[0].message.tool_calls;
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ['add', { a: 1, b: 2 }]);
  assert.equal(choices[0].finish_reason, 'tool_calls');
});

await works('schema', async () => {
  const format = zodResponseFormat(z.object({ answer: z.int() }), 'answer');
  const { choices } = await client.chat.completions.parse({ ...asked('json'), response_format: format });
  assert.deepEqual(choices[0].message.parsed, { answer: 42 });
});

await works('responses', async () => {
  const first = await client.responses.create({ model: given.generator, input: 'hello', temperature: 0 });
  assert.equal(first.output_text, ' from the chain.');
  const stream = client.responses.stream({ model: given.generator, input: 'hello', temperature: 0 });
  assert.equal((await stream.finalResponse()).output_text, ' from the chain.');
});

await works('embeddings', async () => {
  const { data } = await client.embeddings.create({ model: given.embedder, input: ['the cat', 'a dog'] });
  assert.deepEqual(
    data.map(({ embedding }) => embedding.length),
    [32, 32],
  );
});

await works('models', async () => {
  const ids = [];
  for await (const { id } of client.models.list()) ids.push(id);
  assert.ok(ids.includes(given.generator));
});

await works('cancel', async () => {
  const stream = await clientOf(given.slow).chat.completions.create({
    model: 'puppet',
    messages: [{ role: 'user', content: 'drip' }],
    stream: true,
  });
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
  await freed();
});

await works('errors', async () => {
  const long = await thrownBy(() => client.chat.completions.create(asked('word '.repeat(5_000))));
  assert.ok(long instanceof OpenAI.BadRequestError);
  assert.equal(long.code, 'context_length_exceeded');
  assert.match(long.message, /maximum context length is 4096 tokens/);
  const gone = await thrownBy(() => client.chat.completions.create({ ...asked('hello'), model: 'gone' }));
  assert.ok(gone instanceof OpenAI.NotFoundError);
  assert.equal(gone.code, 'model_not_found');
  const busy = await thrownBy(() =>
    clientOf(given.busy).chat.completions.create({ model: 'puppet', messages: [{ role: 'user', content: 'hi' }] }),
  );
  assert.deepEqual([busy.status, busy.code, busy.type], [503, 'inference_capacity', 'server_error']);
});
