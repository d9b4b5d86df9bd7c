import { expect, test } from 'bun:test';
import type { InferenceConnection } from '../../../src/connections/connection.ts';
import { listModels } from '../../../src/connections/model-listing.ts';
import type { ProviderHttp } from '../../../src/inference/providers/client/provider-http.ts';

test('a list of any number of models is read in a time in proportion, and shown up to a bound', async () => {
  const data = Array.from({ length: 200_000 }, (_, at) => ({ id: `model-${at}` }));
  const connection = {
    provider: 'openai',
    url: 'https://models.example/v1',
    names: [],
  } as unknown as InferenceConnection;
  const http = { json: async () => ({ data }) } as unknown as ProviderHttp;
  const call = { signal: new AbortController().signal, timeoutMs: 1_000 };
  const listed = await listModels(connection, http, () => new Map(), call);
  expect(listed?.other).toHaveLength(10_000);
});
