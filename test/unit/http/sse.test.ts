import { afterEach, describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { SseStream } from '../../../src/http/listener/streams/sse.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const open: { stop(closeAll: boolean): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.stop(true)));
});

/** A stream that a server answers with. */
function serve(unsentBytesMax = 1_000) {
  const clock = new FakeClock();
  const gone = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  let timesGone = 0;
  const onGone = () => {
    timesGone += 1;
    gone.resolve();
  };
  const stream = new SseStream({ clock, heartbeatMs: 10_000, unsentBytesMax, onGone });
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    development: false,
    fetch() {
      begun.resolve();
      return stream.response;
    },
  });
  open.push(server);
  return { clock, stream, gone: gone.promise, begun: begun.promise, timesGone: () => timesGone, url: server.url };
}

/** The next text, read for as long as it takes to be `length` characters. */
function reading(response: Response) {
  const reader = must(response.body).pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  return async (length: number) => {
    while (waiting.length < length) {
      const { value, done } = await reader.read();
      if (done) break;
      waiting += value;
    }
    const text = waiting.slice(0, length);
    waiting = waiting.slice(length);
    return text;
  };
}

/** Asks, and reads nothing unless told to. */
function ask(url: URL): Socket {
  const socket = connect(Number(url.port), url.hostname);
  socket.pause();
  socket.on('error', () => undefined);
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  return socket;
}

describe('a stream of events', () => {
  test('sends events as soon as they are there', async () => {
    const { stream, url } = serve();
    stream.send('first');
    const response = await fetch(url);
    const next = reading(response);
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(await next(13)).toBe('data: first\n\n');
    for (const text of ['{"a":1}', 'é日😀', 'x'.repeat(100_000), '[DONE]']) {
      stream.send(text);
      expect(await next(text.length + 8)).toBe(`data: ${text}\n\n`);
    }
    stream.end();
    stream.send('not sent any more');
    expect(await next(1)).toBe('');
  });

  test('sends events that are there together at once', async () => {
    const { stream, url } = serve();
    stream.send('the first piece');
    const socket = ask(url);
    let received = '';
    const arrived = (text: string) =>
      new Promise<void>((resolve) => {
        socket.on('data', () => {
          if (received.includes(text)) resolve();
        });
      });
    socket.on('data', (bytes: Uint8Array) => {
      received += Buffer.from(bytes).toString();
    });
    socket.resume();
    await arrived('the first piece');
    stream.send('the last piece');
    stream.send('usage');
    stream.send('[DONE]');
    stream.end();
    await arrived('\r\n0\r\n\r\n');
    // One chunk of the transfer encoding.
    expect(received).toContain('data: the last piece\n\ndata: usage\n\ndata: [DONE]\n\n');
    socket.destroy();
  });

  test('that is over before anyone reads has all its events', async () => {
    const { stream, url } = serve();
    stream.send('a');
    stream.send('[DONE]');
    stream.end();
    stream.end();
    expect(await (await fetch(url)).text()).toBe('data: a\n\ndata: [DONE]\n\n');
  });

  test('ends with an error as text, whatever lines that has', async () => {
    const { stream, url } = serve();
    stream.fail('it broke\r\nbadly');
    stream.send('not sent any more');
    expect(await (await fetch(url)).text()).toBe('event: error\ndata: it broke\ndata: badly\n\n');
  });

  test('says that it is there when nothing else was said for ten seconds', async () => {
    const { clock, stream, url } = serve();
    await clock.advance(9_000);
    stream.send('x');
    await clock.advance(9_000);
    await clock.advance(2_000);
    const next = reading(await fetch(url));
    expect(await next(23)).toBe('data: x\n\n: still here\n\n');
    await clock.advance(10_000);
    expect(await next(14)).toBe(': still here\n\n');
    stream.end();
    expect(clock.pending).toBe(0);
  });

  test('tells once that its reader left', async () => {
    const { clock, stream, gone, begun, timesGone, url } = serve();
    const socket = ask(url);
    await begun;
    stream.send('x');
    socket.destroy();
    await gone;
    stream.send('x');
    stream.end();
    expect([timesGone(), clock.pending]).toEqual([1, 0]);
  });

  test('gives up a reader that lets too much wait, and closes its connection', async () => {
    const { clock, stream, begun, timesGone, url } = serve(1_000_000);
    const socket = ask(url);
    const closed = new Promise((resolve) => socket.on('close', resolve));
    await begun;
    // Bytes in the kernel's buffers for both ends do not count as waiting here.
    const event = 'x'.repeat(100_000);
    let sent = 0;
    for (; timesGone() === 0 && sent < 1_000; sent += 1) {
      stream.send(event);
      await Bun.sleep(0);
    }
    expect(sent).toBeWithin(10, 1_000);
    stream.send(event);
    await closed;
    expect([timesGone(), clock.pending]).toEqual([1, 0]);
  });

  test('keeps a reader that falls behind now and then', async () => {
    const { stream, begun, timesGone, url } = serve(8_000_000);
    const socket = ask(url);
    await begun;
    const event = 'x'.repeat(6_000_000);
    let received = 0;
    let more = Promise.withResolvers<void>();
    socket.on('data', (bytes: Uint8Array) => {
      received += bytes.byteLength;
      more.resolve();
    });
    // Some megabytes wait each time; all of them together would be too many.
    for (let sent = 1; sent <= 10; sent += 1) {
      socket.pause();
      stream.send(event);
      socket.resume();
      while (received < sent * event.length) {
        more = Promise.withResolvers();
        await more.promise;
      }
    }
    expect(timesGone()).toBe(0);
    socket.destroy();
  });
});

function must<T>(value: T | null): T {
  if (value === null) throw new Error('no body');
  return value;
}
