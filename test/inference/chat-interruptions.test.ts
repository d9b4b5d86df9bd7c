import { describe, expect, test } from 'bun:test';
import OpenAI, { APIError } from 'openai';
import { responsesRoutes } from '../../src/http/clients/responses/responses.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';
import { until } from '../support/fault/until.ts';
import { chatListener } from '../support/inference/chat-listener.ts';

type Listener = ReturnType<typeof chatListener>;

const cancelled = 'model="puppet",finish_reason="cancelled"';

/** The permit is back, the child works on nothing, and the next request is answered. */
async function expectFree(server: Listener): Promise<void> {
  await until(async () => server.admission.taken === 0 && server.inChild() === 0);
  expect((await server.counted('sundew_generations_total'))[cancelled]).toBeGreaterThan(0);
  expect(await (await server.chat('say something')).json()).toMatchObject({
    choices: [{ message: { content: 'done' } }],
  });
}

function readerOf({ body }: Response) {
  if (body === null) throw new Error('no body');
  return body.getReader();
}

/** A reader of the events that has seen the first piece of text. */
async function firstChunk(response: Response) {
  const reader = readerOf(response);
  for (let text = ''; !text.includes('first'); ) text += new TextDecoder().decode((await reader.read()).value);
  return reader;
}

describe('M09: a client that leaves', () => {
  test.each([
    ['while its prompt is read, streaming', { stream: true }],
    ['while its prompt is read, not streaming', {}],
  ])('%s frees its place', async (_name, more) => {
    await using server = chatListener();
    const leaving = new AbortController();
    const answer = server.chat('wait', more, leaving.signal);
    await until(async () => server.inChild() === 1);
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await expectFree(server);
  });

  test('in the middle of a stream frees its place', async () => {
    await using server = chatListener();
    const leaving = new AbortController();
    const reader = await firstChunk(await server.chat('drip', { stream: true }, leaving.signal));
    leaving.abort();
    await expect(reader.read()).rejects.toThrow();
    await expectFree(server);
  });

  test('while it waits behind another leaves the other alone', async () => {
    await using server = chatListener({ concurrentMax: 3 });
    const reader = await firstChunk(await server.chat('drip', { stream: true }));
    const leaving = new AbortController();
    const waiting = server.chat('anything', { stream: true }, leaving.signal);
    await until(async () => server.inChild() === 2);
    expect(await server.counted('sundew_generations_waiting')).toEqual({ 'model="puppet"': 1 });
    leaving.abort();
    await expect(waiting).rejects.toThrow();
    await until(async () => server.inChild() === 1 && server.admission.taken === 1);
    await reader.cancel();
    await expectFree(server);
  });

  test('or does not read what it asked for loses its stream, and frees its place', async () => {
    await using server = chatListener();
    const socket = await Bun.connect({ hostname: '127.0.0.1', port: server.port, socket: { data: () => undefined } });
    socket.pause();
    const body = JSON.stringify({ model: 'puppet', stream: true, messages: [{ role: 'user', content: 'flood' }] });
    socket.write(`POST /ai/v1/generate HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await until(async () => server.inChild() === 1);
    await expectFree(server);
    socket.terminate();
  });
});

describe('what fails', () => {
  test('before the first event is an ordinary error', async () => {
    await using server = chatListener();
    for (const more of [{}, { stream: true }]) {
      const response = await server.chat('refuse', more);
      expect([response.status, response.headers.get('x-should-retry')]).toEqual([400, 'false']);
      expect(await response.json()).toMatchObject({
        error: 'context_length_exceeded: the prompt has 101 tokens; the model takes 100',
      });
    }
    await until(async () => server.admission.taken === 0);
  });

  test('in the middle of a stream is an event with plain text, and nothing follows it', async () => {
    await using server = chatListener();
    const text = await (await server.chat('break', { stream: true })).text();
    expect(text).toEndWith('\n\nevent: error\ndata: inference_failed: the matrix is singular\ndata: and odd\n\n');
    expect(text).not.toContain('[DONE]');
    expect(server.admission.taken).toBe(0);
  });

  test('with the child is told to a stream, and the next request gets a new child', async () => {
    await using server = chatListener();
    const text = await (await server.chat('die', { stream: true })).text();
    expect(text).toContain('event: error\ndata: inference_interrupted: ');
    expect(await (await server.chat('hello')).json()).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
  });

  test('of a streamed response is its last event, in each of the shapes that libraries read', async () => {
    await using server = chatListener({ routes: responsesRoutes });
    const body = JSON.stringify({ model: 'puppet', input: 'break', stream: true });
    const text = await (await fetch(`${server.url}/responses`, { method: 'POST', body })).text();
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
    const message = 'inference_failed: the matrix is singular\nand odd';
    const facts = { code: 'inference_failed', message, param: null };
    const error = { type: 'server_error', ...facts };
    const last = { type: 'error', ...facts, reason: 'inference_failed', error };
    expect(events.at(-1)).toEqual({ ...last, sequence_number: events.length - 1 });
    expect(events[0]?.type).toBe('response.created');
  });

  test('reaches users of the OpenAI SDK with its text when the stream asks for JSON', async () => {
    await using server = chatListener();
    const client = new OpenAI({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const stream_options = { error_format: 'json' } as object;
    const stream = await client.chat.completions.create({
      model: 'puppet',
      messages: [{ role: 'user', content: 'break' }],
      stream: true,
      stream_options,
    });
    const read = async () => {
      for await (const _chunk of stream);
    };
    const error = await read().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(APIError);
    expect((error as APIError).message).toContain('inference_failed: the matrix is singular');
  });
});

describe('M10: a busy server', () => {
  test('turns requests away with all hints for a retry, which the OpenAI SDK follows', async () => {
    await using server = chatListener({ concurrentMax: 1 });
    const reader = await firstChunk(await server.chat('drip', { stream: true }));
    const refused = await server.chat('hello');
    expect(refused.status).toBe(503);
    expect(['retry-after', 'retry-after-ms', 'x-should-retry'].map((name) => refused.headers.get(name))).toEqual([
      '1',
      '500',
      'true',
    ]);
    expect(await refused.json()).toMatchObject({
      reason: 'inference_capacity',
      retryable: true,
      retry_after_ms: 500,
    });
    const client = new OpenAI({ baseURL: server.url, apiKey: 'none', maxRetries: 5 });
    const later = client.chat.completions.create({ model: 'puppet', messages: [{ role: 'user', content: 'hello' }] });
    await reader.cancel();
    expect((await later).choices[0]?.message.content).toBe('done');
  });

  test('says that it is there while a prompt is read for long, and keeps the connection', async () => {
    const clock = new FakeClock();
    await using server = chatListener({ clock });
    const waiting = server.chat('wait', { stream: true });
    await until(async () => server.inChild() === 1);
    await clock.advance(10_000);
    const response = await waiting;
    await clock.advance(10_000);
    const reader = readerOf(response);
    let text = '';
    while (!text.includes(': still here')) text += new TextDecoder().decode((await reader.read()).value);
    expect(text).toContain('{"role":"assistant"}');
    await reader.cancel();
    await settle();
    await expectFree(server);
  });

  test('that stops ends its streams with an event', async () => {
    await using server = chatListener();
    const response = await server.chat('drip', { stream: true });
    const reader = await firstChunk(response);
    const drained = server.listener.drain(server.app, 50, systemClock);
    let text = '';
    for (let read = await reader.read(); !read.done; read = await reader.read())
      text += new TextDecoder().decode(read.value);
    expect(text).toContain('event: error\ndata: unavailable: ');
    expect(await drained).toBe(1);
  });
});
