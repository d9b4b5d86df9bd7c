import { describe, expect, test } from 'bun:test';
import { limits } from '../../../src/config/limits.ts';
import { defineRoute } from '../../../src/http/routing/route.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type RawAnswer, sendRaw } from '../../support/raw-http.ts';
import { testListener } from '../../support/test-listener.ts';

const mebibyte = 1024 * 1024;
const described = {
  access: 'open',
  summary: 'Counts bytes',
  tag: 'test',
  responses: { 200: { description: 'Counted' } },
} as const;

function counting(bytesMax: number, gzip: boolean) {
  const path = gzip ? '/packed' : '/plain';
  return defineRoute({
    ...described,
    method: 'POST',
    path,
    body: { kind: 'bytes', bytesMax, gzip },
    handler: ({ body }) => ({ bytes: body.byteLength }),
  });
}

const routes = [counting(2 * mebibyte, false), counting(2 * mebibyte, true)];

function codeOf(answer: RawAnswer): string {
  return `${answer.status} ${(JSON.parse(answer.body) as { code: string }).code}`;
}

async function answerOf(response: Promise<Response>): Promise<string> {
  const { status, body } = await response.then(async (found) => ({ status: found.status, body: await found.json() }));
  const { code, bytes } = body as { code?: string; bytes?: number };
  return `${status} ${code ?? bytes}`;
}

function post(url: string, body: string | Uint8Array<ArrayBuffer>, encoding?: string): Promise<string> {
  return answerOf(
    fetch(url, { method: 'POST', body, headers: encoding === undefined ? {} : { 'content-encoding': encoding } }),
  );
}

const head = 'POST /plain HTTP/1.1\r\nHost: h\r\nConnection: close\r\n';

describe('size', () => {
  test('a body at the limit is read, one byte more is 413', async () => {
    await using server = testListener({ routes });
    expect(await post(`${server.url}/plain`, new Uint8Array(2 * mebibyte))).toBe(`200 ${2 * mebibyte}`);
    expect(await post(`${server.url}/plain`, new Uint8Array(2 * mebibyte + 1))).toBe('413 payload_too_large');
  });

  test('an announced length beyond the limit is refused before the body is sent', async () => {
    await using server = testListener({ routes });
    expect(codeOf(await sendRaw(server.port, [`${head}Content-Length: ${128 * mebibyte + 1}\r\n\r\n`]))).toBe(
      '413 payload_too_large',
    );
  });

  test('a chunked body is counted while it is read', async () => {
    await using server = testListener({ routes });
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const small = await sendRaw(server.port, [
      `${head}Transfer-Encoding: chunked\r\n\r\n`,
      '3\r\nabc\r\n',
      '0\r\n\r\n',
    ]);
    expect(JSON.parse(small.body)).toEqual({ bytes: 3 });
    const sent = sendRaw(server.port, [`${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(33)}0\r\n\r\n`]);
    expect(codeOf(await sent)).toBe('413 payload_too_large');
  });

  test('no body at all is empty bytes', async () => {
    await using server = testListener({ routes });
    expect(JSON.parse((await sendRaw(server.port, [`${head}\r\n`])).body)).toEqual({ bytes: 0 });
  });

  test('a body of any announced length is refused in our words, before it is read', async () => {
    await using server = testListener({ routes });
    for (const length of [161 * mebibyte, 2 ** 40, Number.MAX_SAFE_INTEGER - 1]) {
      const answer = await sendRaw(server.port, [`${head}Content-Length: ${length}\r\n\r\n`, 'x'.repeat(100)]);
      expect(codeOf(answer)).toBe('413 payload_too_large');
    }
  });
});

describe('encoding', () => {
  test('gzip is read where the route says so, and only there', async () => {
    await using server = testListener({ routes });
    const packed = Bun.gzipSync(new Uint8Array(1_000));
    expect(await post(`${server.url}/packed`, packed, 'gzip')).toBe('200 1000');
    expect(await post(`${server.url}/plain`, packed, 'gzip')).toBe('415 unsupported_media_type');
    expect(await post(`${server.url}/plain`, 'abc', 'identity')).toBe('200 3');
  });

  test.each(['br', 'deflate', 'zstd', 'gzip, gzip', 'nonsense'])('%s is 415', async (encoding) => {
    await using server = testListener({ routes });
    expect(await post(`${server.url}/packed`, 'abc', encoding)).toBe('415 unsupported_media_type');
  });

  test('a small body that inflates beyond the limit is 413, and is not inflated beyond it', async () => {
    await using server = testListener({ routes });
    const bomb = Bun.gzipSync(new Uint8Array(256 * mebibyte));
    expect(bomb.byteLength).toBeLessThan(mebibyte);
    const before = process.memoryUsage.rss();
    expect(await post(`${server.url}/packed`, bomb, 'gzip')).toBe('413 payload_too_large');
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * mebibyte);
  });

  test('damaged gzip is 400', async () => {
    await using server = testListener({ routes });
    expect(await post(`${server.url}/packed`, 'abc', 'gzip')).toBe('400 invalid_request');
    const packed = Bun.gzipSync(new Uint8Array(100_000));
    expect(await post(`${server.url}/packed`, packed.slice(0, packed.byteLength - 9), 'gzip')).toBe(
      '400 invalid_request',
    );
  });
});

describe('time', () => {
  /** Lets the server take what was sent before its time moves on. */
  const taken = async () => {
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };

  test.each([
    ['with a length', 'Content-Length: 100000\r\n\r\n', 'x'],
    ['with a large length', `Content-Length: ${mebibyte}\r\n\r\n`, 'x'],
    ['in chunks', 'Transfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n'],
  ])(
    'a body %s that comes one byte a second is 408 soon after its deadline, and the connection is closed',
    async (_how, rest, byte) => {
      const clock = new FakeClock();
      await using server = testListener({ routes, clock });
      let bytes = 0;
      const answer = await sendRaw(server.port, [head + rest, ...Array<string>(200).fill(byte)], async () => {
        await taken();
        await clock.advance(1_000);
        bytes += 1;
      });
      expect(codeOf(answer)).toBe('408 request_timeout');
      expect(answer.headers.get('connection')).toBe('close');
      expect(bytes).toBeLessThan(limits.bodyDeadlineMs / 1_000 + 10);
    },
  );

  test('a large body that keeps its pace may take longer than that', async () => {
    const clock = new FakeClock();
    await using server = testListener({ routes, clock });
    const seconds = limits.bodyDeadlineMs / 1_000 + 20;
    const bytesOfSecond = limits.bodyBytesPerSecondMin;
    const parts = Array<string>(seconds).fill('x'.repeat(bytesOfSecond));
    const first = `${head}Content-Length: ${seconds * bytesOfSecond}\r\n\r\n`;
    const answer = await sendRaw(server.port, [first, ...parts], async () => {
      await taken();
      await clock.advance(1_000);
    });
    expect(answer.body).toBe(`{"bytes":${seconds * bytesOfSecond}}`);
  });

  test('a client that leaves in the middle of its body frees its place', async () => {
    await using server = testListener({ routes });
    const opened = Promise.withResolvers<void>();
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: server.port,
      socket: { open: () => opened.resolve(), data: () => {} },
    });
    await opened.promise;
    socket.write('POST /plain HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc');
    while (server.app.inFlight.count === 0) await taken();
    socket.terminate();
    while (server.app.inFlight.count > 0) await taken();
    expect(server.app.inFlight.count).toBe(0);
  });
});
