import { describe, expect, test } from 'bun:test';
import OpenAI, { APIError } from 'openai';
import { until } from '../support/fault/until.ts';
import { chatListener } from '../support/inference/chat-listener.ts';

function limitsOf({ headers }: Response): (string | null)[] {
  return ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}-requests`));
}

describe('the headers of an answer', () => {
  test('tell how many permits there are and how many are free', async () => {
    await using server = chatListener({ concurrentMax: 2 });
    const idle = await server.chat('say something');
    expect(limitsOf(idle)).toEqual(['2', '2', '0s']);
    expect(idle.headers.get('openai-processing-ms')).toMatch(/^\d+$/);
    expect(idle.headers.get('x-request-id')).toBeTruthy();
    const leaving = new AbortController();
    const streamed = await server.chat('drip', { stream: true }, leaving.signal);
    expect(limitsOf(streamed)).toEqual(['2', '1', '0s']);
    const waiting = server.chat('anything', {}, leaving.signal).catch(() => undefined);
    await until(async () => server.admission.taken === 2);
    const refused = await server.chat('anything');
    expect([refused.status, ...limitsOf(refused)]).toEqual([503, '2', '0', '500ms']);
    const { headers } = refused;
    expect([headers.get('retry-after-ms'), headers.get('retry-after'), headers.get('x-should-retry')]).toEqual([
      '500',
      '1',
      'true',
    ]);
    leaving.abort();
    await waiting;
  });

  test('say nothing of limits where there are none', async () => {
    await using server = chatListener({ concurrentMax: 0 });
    expect(limitsOf(await server.chat('say something'))).toEqual([null, null, null]);
  });
});

test('an error in the middle of a stream reaches the OpenAI client without being asked for below /v1', async () => {
  await using server = chatListener();
  const baseURL = server.url.replace('/ai/v1', '/v1');
  const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  const messages = [{ role: 'user' as const, content: 'break' }];
  const stream = await client.chat.completions.create({ model: 'puppet', messages, stream: true });
  const read = async () => {
    for await (const _ of stream);
  };
  const error = await read().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ code: 'inference_failed', type: 'server_error' });
  expect(String(error)).toContain('the matrix is singular');
});
