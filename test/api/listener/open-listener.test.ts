import { describe, expect, test } from 'bun:test';
import { OriginGuard } from '../../../src/http/listener/origin-guard.ts';
import { defineRoute } from '../../../src/http/routing/route.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { sendRaw } from '../../support/raw-http.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { testListener } from '../../support/test-listener.ts';
import { startTestServer } from '../../support/test-server.ts';

const main = Bun.fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const described = {
  access: 'open',
  summary: 'A route of this test',
  tag: 'test',
  responses: { 200: { description: 'Fine' } },
} as const;
const routes = [
  defineRoute({ ...described, method: 'GET', path: '/value', handler: () => ({ a: 1 }) }),
  defineRoute({ ...described, method: 'POST', path: '/value', handler: () => ({ a: 2 }) }),
  defineRoute({ ...described, method: 'GET', path: '/healthz', always: true, handler: () => ({ status: 'ok' }) }),
];
const page = 'https://app.example.org';

function guarded(allowedHosts: string[] = [], allowedOrigins: string[] = []) {
  return testListener({ routes, guard: new OriginGuard({ allowedHosts, allowedOrigins }) });
}

describe('what cannot be read as a request', () => {
  const head = (line: string, more = '') => `${line}\r\n${more}Connection: close\r\n\r\n`;
  const answers: readonly (readonly [what: string, request: string, status: number])[] = [
    ['a malformed request line', head('GET', 'Host: localhost\r\n'), 400],
    ['a missing host', head('GET /value HTTP/1.1'), 400],
    ['another version', head('GET /value HTTP/3.7', 'Host: localhost\r\n'), 505],
    [
      'a head of more than 16 KiB',
      head('GET /value HTTP/1.1', `Host: localhost\r\nx-long: ${'a'.repeat(16_700)}\r\n`),
      431,
    ],
  ];
  test.each(answers)('%s is answered as the guide says', async (_what, request, status) => {
    await using server = guarded();
    const answer = await sendRaw(server.port, [request]);
    expect([answer.status, answer.body]).toEqual([status, '']);
  });
});

describe('the host of a request', () => {
  const hosts: readonly (readonly [host: string, status: number])[] = [
    ['localhost', 200],
    ['LOCALHOST:8080', 200],
    ['localhost.', 200],
    ['db.localhost:1', 200],
    ['127.0.0.1:8080', 200],
    ['10.1.2.3', 200],
    ['[::1]:8080', 200],
    ['db.internal:8080', 200],
    ['evil.example', 403],
    ['localhost.evil.example', 403],
    ['127.0.0.1.evil.example', 403],
    ['xdb.internal', 403],
    ['1.2.3.4.5', 403],
  ];
  test.each(hosts)('%s is answered %d', async (host, status) => {
    await using server = guarded(['db.internal']);
    const answer = await sendRaw(server.port, [`GET /value HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`]);
    expect(answer.status).toBe(status);
    if (status === 403) expect(JSON.parse(answer.body)).toMatchObject({ code: 'forbidden' });
  });

  test('does not matter to probes', async () => {
    await using server = guarded();
    const answer = await sendRaw(server.port, [
      'GET /healthz HTTP/1.1\r\nHost: probe.example\r\nConnection: close\r\n\r\n',
    ]);
    expect(answer.status).toBe(200);
  });

  test('that is foreign learns nothing of the routes', async () => {
    await using server = guarded();
    for (const path of ['/value', '/absent']) {
      const answer = await sendRaw(server.port, [
        `PUT ${path} HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n`,
      ]);
      expect([answer.status, answer.headers.has('allow')]).toEqual([403, false]);
    }
  });
});

describe('the origin of a page', () => {
  test('that is foreign is refused for every method, and is told nothing', async () => {
    await using server = guarded();
    for (const method of ['GET', 'POST', 'PUT', 'OPTIONS']) {
      for (const origin of [page, 'null', 'http://localhost:3000']) {
        const response = await fetch(`${server.url}/value`, { method, headers: { origin } });
        expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([403, null]);
      }
    }
  });

  test("that is the server's own is answered", async () => {
    await using server = guarded();
    const response = await fetch(`${server.url}/value`, { method: 'POST', headers: { origin: server.url } });
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, null]);
  });

  test('that is allowed may ask first, and read the answer, an error too', async () => {
    await using server = guarded([], [page]);
    const preflight = await fetch(`${server.url}/value`, {
      method: 'OPTIONS',
      headers: {
        origin: page,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type',
      },
    });
    expect([preflight.status, await preflight.text()]).toEqual([204, '']);
    expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST');
    expect(preflight.headers.get('access-control-allow-headers')).toBe('content-type');
    expect(preflight.headers.get('access-control-allow-origin')).toBe(page);
    for (const path of ['/value', '/absent']) {
      const response = await fetch(server.url + path, { headers: { origin: page } });
      expect(response.headers.get('access-control-allow-origin')).toBe(page);
      expect(response.headers.get('vary')).toBe('Origin');
      const readable = response.headers.get('access-control-expose-headers')?.split(', ');
      expect(readable).toEqual(
        expect.arrayContaining(['x-request-id', 'x-ratelimit-remaining-requests', 'retry-after-ms']),
      );
    }
    const other = await fetch(`${server.url}/value`, { headers: { origin: `${page}.evil.example` } });
    expect(other.status).toBe(403);
  });
});

describe('the whole server', () => {
  test('a page cannot drop a table by a plain request, nor by a name that was made to lead here', async () => {
    await using server = await startTestServer();
    expect((await server.send('POST', '/db/v1/tables/books')).status).toBe(200);
    expect((await server.send('POST', '/db/v1/tables/other', '', { origin: page })).status).toBe(403);
    expect((await server.send('DELETE', '/db/v1/tables/books', undefined, { origin: page })).status).toBe(403);
    const rebound = `DELETE /db/v1/tables/books HTTP/1.1\r\nHost: rebound.example\r\nOrigin: http://rebound.example\r\nConnection: close\r\n\r\n`;
    expect((await sendRaw(Number(new URL(server.url).port), [rebound])).status).toBe(403);
    expect((await server.send('GET', '/db/v1/tables/books')).status).toBe(200);
    const inference = await server.send('POST', '/ai/v1/embeddings', {}, { origin: page });
    expect([inference.status, inference.body]).toMatchObject([403, { reason: 'unauthorized' }]);
  });

  test.each([['0.0.0.0'], ['::'], ['*']])('does not listen on %s unless it is told to', async (host) => {
    using directory = new TemporaryDirectory();
    const child = Bun.spawn([process.execPath, main, 'serve', '--host', host, '--port', '0', '--log-format', 'json'], {
      cwd: directory.path,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const log = await new Response(child.stderr).text();
    expect([await child.exited, log]).toEqual([2, expect.stringContaining('--allow-insecure-public-bind')]);
  });
});

test('the access log has a line for every request, with its path and client, when it is asked for', async () => {
  await using server = await startTestServer({ environment: { SUNDEW__LOG__ACCESS: 'true' } });
  await server.send('GET', '/db/v1/tables/absent', undefined, { 'x-request-id': 'mine' });
  const lines = server.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.find(({ request_id }) => request_id === 'mine')).toMatchObject({
    level: 'info',
    msg: 'request',
    method: 'GET',
    route: '/db/v1/tables/:table',
    path: '/db/v1/tables/absent',
    status: 404,
    client: '127.0.0.1',
  });
});

test('a stop that is delayed turns not ready at once and goes on serving', async () => {
  // The delay is over when the test says so: a request may take long.
  const delay = Promise.withResolvers<void>();
  const clock: Clock = {
    ...systemClock,
    after(delayMs, callback) {
      if (delayMs !== 59 * 60_000) return systemClock.after(delayMs, callback);
      void delay.promise.then(callback);
      return () => undefined;
    },
  };
  await using server = await startTestServer({ set: { '--stop-delay': '59m' }, clock });
  const stopping = server.drain(1_000);
  expect((await server.send('GET', '/readyz')).status).toBe(503);
  expect((await server.send('GET', '/db/v1/tables')).status).toBe(200);
  delay.resolve();
  await stopping;
  await expect(server.send('GET', '/db/v1/tables')).rejects.toThrow();
});
