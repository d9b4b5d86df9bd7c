import assert from 'node:assert/strict';
import { BaseRetriever } from '@langchain/core/retrievers';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { freed, given, thrownBy, works } from './report.mjs';

const chatOf = (origin, model, more = {}) =>
  new ChatOpenAI({
    model,
    apiKey: 'none',
    temperature: 0,
    maxRetries: 0,
    configuration: { baseURL: `${origin}/v1` },
    ...more,
  });
const chat = chatOf(given.origin, given.generator);
const numbers = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'] };
const tools = [{ type: 'function', function: { name: 'add', description: 'Adds', parameters: numbers } }];

await works('chat', async () => {
  const answer = await chat.invoke('hello');
  assert.equal(answer.content, ' from the chain.');
  assert.equal(answer.usage_metadata.output_tokens, 4);
});

await works('stream', async () => {
  let text = '';
  let tokens = 0;
  for await (const chunk of await chat.stream('hello')) {
    text += chunk.content;
    tokens += chunk.usage_metadata?.output_tokens ?? 0;
  }
  assert.equal(text, ' from the chain.');
  assert.equal(tokens, 4);
});

await works('tools', async () => {
  const { tool_calls: calls } = await chat.bindTools(tools).invoke('call');
  assert.deepEqual([calls[0].name, calls[0].args], ['add', { a: 1, b: 2 }]);
});

await works('schema', async () => {
  const schema = {
    title: 'answer',
    type: 'object',
    properties: { answer: { type: 'integer' } },
    required: ['answer'],
    additionalProperties: false,
  };
  const answer = await chat.withStructuredOutput(schema, { method: 'jsonSchema', name: 'answer' }).invoke('json');
  assert.deepEqual(answer, { answer: 42 });
});

await works('embeddings', async () => {
  const embeddings = new OpenAIEmbeddings({
    model: given.embedder,
    apiKey: 'none',
    maxRetries: 0,
    configuration: { baseURL: `${given.origin}/v1` },
  });
  const vectors = await embeddings.embedDocuments(['the cat', 'a dog']);
  assert.deepEqual(
    vectors.map(({ length }) => length),
    [32, 32],
  );
  assert.deepEqual(await embeddings.embedQuery('the cat'), vectors[0]);
});

await works('retriever', async () => {
  class TableRetriever extends BaseRetriever {
    lc_namespace = ['sundew'];
    async _getRelevantDocuments(query) {
      const body = JSON.stringify({ full_text_search: { match: query, field: 'title' }, fields: ['title'] });
      const answer = await fetch(`${given.origin}/db/v1/tables/dishes/query`, { method: 'POST', body });
      const { responses } = await answer.json();
      return responses[0].hits.hits.map(({ _id, _source }) => ({ id: _id, pageContent: _source.title, metadata: {} }));
    }
  }
  const found = await new TableRetriever().invoke('miso');
  assert.deepEqual(
    found.map(({ id, pageContent }) => [id, pageContent]),
    [['soup', 'Miso soup']],
  );
});

await works('cancel', async () => {
  const leaving = new AbortController();
  const stream = await chatOf(given.slow, 'puppet').stream('drip', { signal: leaving.signal });
  await thrownBy(async () => {
    for await (const chunk of stream) if (chunk.content !== '') leaving.abort();
  });
  await freed();
});

await works('errors', async () => {
  const long = await thrownBy(() => chat.invoke('word '.repeat(5_000)));
  assert.equal(long.name, 'ContextOverflowError');
  const gone = await thrownBy(() => chatOf(given.origin, 'gone').invoke('hello'));
  assert.equal(gone.lc_error_code, 'MODEL_NOT_FOUND');
  const busy = await thrownBy(() => chatOf(given.busy, 'puppet').invoke('hi'));
  assert.equal(busy.status, 503);
});
