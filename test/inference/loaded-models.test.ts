import { afterAll, beforeAll, expect, test } from 'bun:test';
import { until } from '../support/fault/until.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const isLoaded = async (name: string) => (await server.send('GET', `/v1/models/${name}`)).body.loaded;
const ask = (verb: 'load' | 'unload', body: object) => server.send('POST', `/ai/v1/models/${verb}`, body);

test.each(['chain', 'tiny-bert', 'tiny-cross'])(
  '%s is loaded before it is used, and unloaded when asked',
  async (model) => {
    expect(await isLoaded(model)).toBe(false);
    expect((await ask('load', { model, keep_alive: '1h' })).body).toMatchObject({ id: model, loaded: true });
    expect(await isLoaded(model)).toBe(true);
    expect((await ask('unload', { model })).body).toMatchObject({ id: model, loaded: false });
    expect(await isLoaded(model)).toBe(false);
    expect((await ask('unload', { model })).status).toBe(200);
  },
);

test('a model that works is unloaded once it has finished', async () => {
  const stop = new AbortController();
  const answer = await fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    signal: stop.signal,
    body: JSON.stringify({
      model: 'chain',
      messages: [{ role: 'user', content: 'forever' }],
      stream: true,
      max_tokens: 4_000,
    }),
  });
  const reader = answer.body?.getReader();
  await reader?.read();
  expect((await ask('unload', { model: 'chain' })).body).toMatchObject({ loaded: true });
  expect((await reader?.read())?.done).toBe(false);
  stop.abort();
  await until(async () => (await isLoaded('chain')) === false);
});

test('what is not installed, or not a duration, is refused', async () => {
  expect((await ask('load', { model: 'gone' })).body).toMatchObject({ reason: 'model_not_found' });
  expect((await ask('unload', { model: 'gone' })).status).toBe(404);
  expect((await ask('load', { model: 'chain', keep_alive: 'soon' })).body.error).toContain('keep_alive');
});
