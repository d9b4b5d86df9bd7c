import assert from 'node:assert/strict';
import { CohereClientV2, CohereError } from 'cohere-ai';
import { given, thrownBy, works } from './report.mjs';

const client = new CohereClientV2({ environment: given.origin, token: 'none' });
const documents = ['a cat sat', 'the quick brown fox', 'the mat'];

await works('rerank', async () => {
  const { results } = await client.rerank({ model: given.reranker, query: 'the quick fox', documents, topN: 2 });
  assert.equal(results.length, 2);
  assert.ok(results[0].relevanceScore >= results[1].relevanceScore);
  assert.ok(results.every(({ index }) => index >= 0 && index < 3));
});

await works('errors', async () => {
  const gone = await thrownBy(() => client.rerank({ model: 'gone', query: 'fox', documents }, { maxRetries: 0 }));
  assert.ok(gone instanceof CohereError);
  assert.equal(gone.statusCode, 404);
  assert.match(gone.body.message, /no model named "gone"/);
});
