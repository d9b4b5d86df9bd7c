import { afterAll, beforeAll, expect, test } from 'bun:test';
import { limits } from '../../src/config/limits.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ set: { '--models-dir': models, '--allow-downloads': 'false' } });
});
afterAll(() => server[Symbol.asyncDispose]());

async function post(path: string, body: string | Uint8Array<ArrayBuffer>): Promise<{ status: number; body: unknown }> {
  const headers = {
    'content-type': 'application/json',
    ...(typeof body === 'string' ? {} : { 'content-encoding': 'gzip' }),
  };
  const response = await fetch(`${server.url}${path}`, { method: 'POST', headers, body });
  return { status: response.status, body: await response.json() };
}

const requests: [string, object][] = [
  ['/ai/v1/embeddings', { model: 'tiny-bert', input: ['the king', 'a queen'] }],
  ['/v1/embeddings', { model: 'tiny-bert', input: 'the king' }],
  ['/embed', { model: 'tiny-bert', inputs: 'the king' }],
  ['/ai/v1/rerank', { model: 'tiny-cross', query: 'the king', prompts: ['a queen', 'the king'] }],
  ['/ai/v1/rerank_multimodal', { model: 'tiny-cross', query: 'the king', documents: [{ content: 'a queen' }] }],
  ['/ai/v1/chunk', { text: 'one two', config: { target_tokens: 1 } }],
  ['/ai/v1/tokenize', { model: 'tiny-bert', prompt: 'the king' }],
];

test.each(requests)('%s is answered alike for a body that is compressed', async (path, request) => {
  const text = JSON.stringify(request);
  const plain = await post(path, text);
  expect(plain.status).toBe(200);
  const packed = await post(path, Bun.gzipSync(text));
  // The second answer of a chunker comes from its memory.
  expect({ ...packed, body: { ...(packed.body as object), cache_hit: false } }).toEqual({
    ...plain,
    body: { ...(plain.body as object), cache_hit: false },
  });
});

test('the bound of a body holds for what it is inflated, and damage is told', async () => {
  const bomb = Bun.gzipSync(new Uint8Array(limits.generateBodyBytesMax + 1).fill(0x20));
  expect(await post('/ai/v1/embeddings', bomb)).toMatchObject({ status: 413 });
  expect(await post('/ai/v1/rerank', bomb.slice(0, 1_000))).toMatchObject({
    status: 400,
    body: { error: expect.stringContaining('not valid gzip') },
  });
});
