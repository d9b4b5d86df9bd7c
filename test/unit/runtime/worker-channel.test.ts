import { describe, expect, test } from 'bun:test';
import { must } from '../../../src/lib/assert.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { packError, unpackError } from '../../../src/runtime/error-transport.ts';
import { type IncomingCall, openChannel, serveChannel } from '../../../src/runtime/worker-channel.ts';

type Calls = { double: [number, number]; fail: [string, never] };

/** Both ends of a worker without a thread: messages are structured clones and arrive in later turns. */
function joinedEnds(handle: (batch: IncomingCall<Calls>[]) => void) {
  const events: string[] = [];
  const failures: string[] = [];
  const closeListeners: (() => void)[] = [];
  let idles = 0;
  let messages = 0;
  const outside = {
    onmessage: null as ((event: MessageEvent) => void) | null,
    onerror: null as ((event: ErrorEvent) => void) | null,
    postMessage: (data: unknown) => {
      messages += 1;
      deliver(inside, data);
    },
    addEventListener: (_: string, listener: () => void) => closeListeners.push(listener),
    terminate: () => undefined,
  };
  const inside: { onmessage: Worker['onmessage']; postMessage: (data: unknown) => void } = {
    onmessage: null,
    postMessage: (data) => deliver(outside, data),
  };
  const deliver = (end: { onmessage: unknown }, data: unknown) => {
    const copy = structuredClone(data);
    setImmediate(() => (end.onmessage as (event: unknown) => void)({ data: copy }));
  };
  const server = serveChannel<Calls, string>(inside as Pick<Worker, 'onmessage' | 'postMessage'>, handle, () => {
    idles += 1;
  });
  const channel = openChannel<Calls, string>(outside as unknown as Worker, {
    onEvent: (event) => events.push(event),
    onFailure: (error) => failures.push(error.message),
  });
  const die = () => {
    for (const listener of closeListeners) listener();
  };
  return { channel, server, events, failures, die, idles: () => idles, messages: () => messages };
}

function answerAll(batch: IncomingCall<Calls>[]): void {
  for (const call of batch) {
    if (call.name === 'double') call.resolve(call.request * 2);
    else call.reject(new ServiceError('unavailable', call.request));
  }
}

describe('a worker channel', () => {
  test('answers every call with its own answer or error', async () => {
    const { channel } = joinedEnds(answerAll);
    const answers = await Promise.allSettled([
      channel.call('double', 1),
      channel.call('fail', 'not now'),
      channel.call('double', 3),
    ]);
    expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message))).toEqual([
      2,
      'not now',
      6,
    ]);
  });

  test('an idle thread is given a call at once, one at work what the requests of a turn ask as one message', async () => {
    const { channel, messages } = joinedEnds(answerAll);
    const first = channel.call('double', 1);
    await Promise.resolve();
    expect(messages()).toBe(1);
    const later = [channel.call('double', 2)];
    await Promise.resolve();
    later.push(channel.call('double', 3));
    expect(await Promise.all([first, ...later])).toEqual([2, 4, 6]);
    expect(messages()).toBe(2);
  });

  test('hands over together what arrived together, and says when it is idle', async () => {
    const sizes: number[] = [];
    const { channel, idles } = joinedEnds((batch) => {
      sizes.push(batch.length);
      answerAll(batch);
    });
    await Promise.all([1, 2, 3].map((n) => channel.call('double', n)));
    await channel.call('double', 4);
    expect(sizes).toEqual([3, 1]);
    expect(idles()).toBeGreaterThan(0);
  });

  test('delivers events, after the answers that were given before', async () => {
    const order: string[] = [];
    const { channel, server, events } = joinedEnds((batch) => {
      answerAll(batch);
      server.emit('ready');
    });
    await channel.call('double', 1).then(() => order.push('answer', ...events));
    await channel.call('double', 1);
    expect(order).toEqual(['answer']);
    expect(events[0]).toBe('ready');
  });

  test('fails what is pending, and all later calls, when the thread ends', async () => {
    const { channel, die, failures } = joinedEnds(() => undefined);
    const pending = channel.call('double', 1);
    die();
    await expect(pending).rejects.toThrow('a worker thread ended');
    await expect(channel.call('double', 1)).rejects.toThrow('a worker thread ended');
    expect(failures).toEqual(['a worker thread ended']);
  });

  test('hears nothing of a thread that was stopped: not the answers that were on their way', async () => {
    const { channel, server, events } = joinedEnds((batch) => {
      answerAll(batch);
      server.emit('late');
    });
    const pending = channel.call('double', 1);
    // It is sent by then.
    await Promise.resolve();
    channel.terminate();
    await expect(pending).rejects.toThrow('stopped');
    for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(events).toEqual([]);
  });
});

test('errors keep class, code, details, wait, cause and stack on their way', () => {
  const cause = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' });
  const error = new ServiceError('storage_failed', 'stop', { retryAfterMs: 7, details: { file: 'a' }, cause });
  const received = unpackError(structuredClone(packError(error)));
  expect(received).toBeInstanceOf(ServiceError);
  expect(received).toMatchObject({ code: 'storage_failed', message: 'stop', retryAfterMs: 7, details: { file: 'a' } });
  expect(received.stack).toBe(must(error.stack, 'no stack'));
  expect(received.cause).toMatchObject({ message: 'disk I/O error', code: 'SQLITE_IOERR_FSYNC' });
  expect(unpackError(structuredClone(packError(new TypeError('x'))))).toMatchObject({
    name: 'TypeError',
    message: 'x',
  });
});
