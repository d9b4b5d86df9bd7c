import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { until } from '../support/fault/until.ts';
import { wavFile } from '../support/files/wav-file.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));

interface BatchAnswer extends Record<string, unknown> {
  data: {
    custom_id: string;
    index: number;
    response?: { choices: { message: { content: string } }[] };
    error?: { code: string; message: string };
  }[];
  summary: object;
  execution: Record<string, number | string | null>;
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const send = (requests: object[], more: object = {}) =>
  server.send<BatchAnswer>('POST', '/ai/v1/generate/batch', { requests, ...more });
const item = (custom_id: string, content: string, more: object = {}) => ({
  custom_id,
  body: { model: 'chain', messages: [{ role: 'user', content }], temperature: 0, ...more },
});

describe('POST /ai/v1/generate/batch', () => {
  test('decodes the items of a model together, each with what it asks for', async () => {
    const json = { response_format: { type: 'json_object' } };
    const { status, body } = await send([
      item('a', 'hello'),
      item('b', 'count', { stop: [' three'] }),
      item('c', 'json', json),
      item('d', 'think'),
      item('e', 'flower'),
    ]);
    expect([status, body.object]).toEqual([200, 'generate.batch']);
    expect(
      body.data.map(({ custom_id, index, response }) => [custom_id, index, response?.choices[0]?.message.content]),
    ).toEqual([
      ['a', 0, ' from the chain.'],
      ['b', 1, ' one two'],
      ['c', 2, '{"answer":42}'],
      ['d', 3, 'done'],
      ['e', 4, '\u{1f33b}'],
    ]);
    expect(body.summary).toEqual({ total: 5, succeeded: 5, failed: 0 });
    const { native_batches, ...execution } = body.execution;
    expect(execution).toEqual({
      requested_items: 5,
      native_items: 5,
      serial_items: 0,
      rejected_items: 0,
      fallback_items: 0,
      fallback_reason: null,
    });
    expect(native_batches).toBeGreaterThan(0);
  });

  test('lets each item fail by itself', async () => {
    const sound = Buffer.from(wavFile(new Float32Array(16), 16_000)).toString('base64');
    const image = [{ role: 'user', content: [{ type: 'media', mime_type: 'audio/wav', data: sound }] }];
    const { status, body } = await send([
      item('streamed', 'hello', { stream: true }),
      item('several', 'hello', { n: 2 }),
      item('shape', 'hello', { temperature: 'warm' }),
      { custom_id: 'empty', body: null },
      item('model', 'hello', { model: 'gone' }),
      item('schema', 'hello', {
        response_format: { type: 'json_schema', json_schema: { schema: { not: {} }, strict: true } },
      }),
      item('long', 'x'.repeat(5_000)),
      item('sound', '', { messages: image }),
      item('works', 'hello'),
    ]);
    expect(status).toBe(200);
    expect(body.data.map(({ custom_id, error }) => [custom_id, error?.code])).toEqual([
      ['streamed', 'invalid_request'],
      ['several', 'invalid_request'],
      ['shape', 'invalid_request'],
      ['empty', 'invalid_request'],
      ['model', 'model_not_found'],
      ['schema', 'unsupported_response_format'],
      ['long', 'context_length_exceeded'],
      ['sound', 'model_not_supported'],
      ['works', undefined],
    ]);
    expect(body.data.every(({ response, error }) => (response === undefined) !== (error === undefined))).toBe(true);
    expect(body.data[0]?.error).toEqual({
      code: 'invalid_request',
      message: 'stream: an item of a batch is not streamed',
      retryable: false,
      retry_after_ms: 0,
    } as never);
    expect(body.summary).toEqual({ total: 9, succeeded: 1, failed: 8 });
    // The one that was too long was refused by the model itself; it was not decoded either.
    expect(body.execution).toMatchObject({ requested_items: 9, native_items: 1, serial_items: 0, rejected_items: 8 });
  });

  test('leaves its model loaded for as long as its last item asks', async () => {
    const loaded = async () => {
      const { body } = await server.send<{ models: { name: string }[] }>('GET', '/api/ps');
      return body.models.some(({ name }) => name === 'chain:latest');
    };
    await send([item('a', 'hello', { keep_alive: 0 }), item('b', 'hello', { keep_alive: '1h' })]);
    expect(await loaded()).toBe(true);
    await send([item('a', 'hello', { keep_alive: '1h' }), item('b', 'hello', { keep_alive: 0 })]);
    await until(async () => !(await loaded()));
  });

  test('runs what cannot be decoded together by itself', async () => {
    const { body } = await send([item('a', 'hello'), item('b', 'count', { speculation_policy: 'auto' })]);
    expect(body.summary).toEqual({ total: 2, succeeded: 2, failed: 0 });
    expect(body.execution).toMatchObject({ native_items: 1, serial_items: 1, rejected_items: 0 });
  });

  test.each([
    ['of no items', { requests: [] }, 'requests'],
    ['for later', { requests: [item('a', 'x')], mode: 'async' }, 'mode'],
    ['of an unknown mode', { requests: [item('a', 'x')], mode: 'soon' }, 'mode'],
    ['with an id twice', { requests: [item('a', 'x'), item('a', 'y')] }, 'custom_id'],
    ['with an empty id', { requests: [item('', 'x')] }, 'custom_id'],
    ['with an item without a body', { requests: [{ custom_id: 'a' }] }, 'body'],
  ])('a batch %s is refused as a whole', async (_name, body, word) => {
    const { status, body: refused } = await server.send('POST', '/ai/v1/generate/batch', body);
    expect([status, String(refused.error)]).toEqual([400, expect.stringContaining(word)]);
    expect(String(refused.error)).toStartWith('invalid_request: ');
  });
});
