import { describe, expect, test } from 'bun:test';
import { SseStream } from '../../src/http/sse.ts';
import { FakeClock, settle } from '../support/fake-clock.ts';

function open(unsentBytesMax = 1_000) {
  const clock = new FakeClock();
  let gone = 0;
  const onGone = () => {
    gone += 1;
  };
  const stream = new SseStream({ clock, heartbeatMs: 10_000, unsentBytesMax, onGone });
  return { clock, stream, gone: () => gone };
}

describe('a stream of events', () => {
  test('sends each event by itself', async () => {
    const { stream } = open();
    const reader = must(stream.response.body).getReader();
    stream.send('{"a":1}');
    stream.send('[DONE]');
    stream.end();
    const decoder = new TextDecoder();
    expect(decoder.decode((await reader.read()).value)).toBe('data: {"a":1}\n\n');
    expect(decoder.decode((await reader.read()).value)).toBe('data: [DONE]\n\n');
    expect((await reader.read()).done).toBe(true);
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  });

  test('ends with an error as text, whatever lines that has', async () => {
    const { stream } = open();
    stream.fail('it broke\r\nbadly');
    stream.send('not sent any more');
    expect(await stream.response.text()).toBe('event: error\ndata: it broke\ndata: badly\n\n');
  });

  test('says that it is there when nothing else was said for ten seconds', async () => {
    const { clock, stream } = open();
    await clock.advance(9_000);
    stream.send('x');
    await clock.advance(9_000);
    await clock.advance(2_000);
    await clock.advance(10_000);
    stream.end();
    expect(clock.pending).toBe(0);
    expect(await stream.response.text()).toBe('data: x\n\n: still here\n\n: still here\n\n');
  });

  test('tells once that its reader left', async () => {
    const { clock, stream, gone } = open();
    await must(stream.response.body).cancel();
    stream.send('x');
    stream.end();
    expect([gone(), clock.pending]).toEqual([1, 0]);
  });

  test('gives up a reader that lets too much wait', async () => {
    const { stream, gone } = open(100);
    for (let at = 0; at < 20; at += 1) stream.send('0123456789');
    await settle();
    expect(gone()).toBe(1);
    expect(stream.response.text()).rejects.toThrow('does not read');
  });
});

function must<T>(value: T | null): T {
  if (value === null) throw new Error('no body');
  return value;
}
