import assert from 'node:assert/strict';
import { Ollama } from 'ollama';
import { freed, given, thrownBy, works } from './report.mjs';

const client = new Ollama({ host: given.origin });
const model = given.generator;
const options = { temperature: 0, repeat_penalty: 1 };
const messages = (content) => [{ role: 'user', content }];
const numbers = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'] };
const tools = [{ type: 'function', function: { name: 'add', description: 'Adds', parameters: numbers } }];

await works('chat', async () => {
  const answer = await client.chat({ model, messages: messages('hello'), options });
  assert.equal(answer.message.content, ' from the chain.');
  assert.equal(answer.eval_count, 4);
});

await works('stream', async () => {
  let text = '';
  for await (const part of await client.chat({ model, messages: messages('hello'), options, stream: true })) {
    text += part.message.content;
  }
  assert.equal(text, ' from the chain.');
});

await works('tools', async () => {
  const { message } = await client.chat({ model, messages: messages('call'), tools, options });
  assert.deepEqual(message.tool_calls, [{ function: { name: 'add', arguments: { a: 1, b: 2 } } }]);
});

await works('schema', async () => {
  const format = { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] };
  const { message } = await client.chat({ model, messages: messages('json'), format, options });
  assert.deepEqual(JSON.parse(message.content), { answer: 42 });
});

await works('embeddings', async () => {
  const { embeddings } = await client.embed({ model: given.embedder, input: ['the cat', 'a dog'] });
  assert.deepEqual(
    embeddings.map(({ length }) => length),
    [32, 32],
  );
});

await works('models', async () => {
  const { models } = await client.list();
  assert.ok(models.some(({ name }) => name === `${model}:latest`));
});

await works('cancel', async () => {
  const slow = new Ollama({ host: given.slow });
  const stream = await slow.chat({ model: 'puppet', messages: messages('drip'), stream: true });
  const error = await thrownBy(async () => {
    for await (const part of stream) if (part.message.content) stream.abort();
  });
  assert.equal(error.name, 'AbortError');
  await freed();
});

await works('errors', async () => {
  const gone = await thrownBy(() => client.chat({ model: 'gone', messages: messages('hello') }));
  assert.equal(gone.status_code, 404);
  assert.match(gone.message, /model_not_found/);
  const long = await thrownBy(() => client.chat({ model, messages: messages('word '.repeat(5_000)) }));
  assert.match(long.message, /maximum context length is 4096 tokens/);
  const busy = await thrownBy(() =>
    new Ollama({ host: given.busy }).chat({ model: 'puppet', messages: messages('hi') }),
  );
  assert.equal(busy.status_code, 503);
});
