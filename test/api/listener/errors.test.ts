import { describe, expect, test } from 'bun:test';
import { ServerListener } from '../../../src/http/listener/server-listener.ts';
import { docsRoutes } from '../../../src/http/routing/docs-page.ts';
import { defineRoute } from '../../../src/http/routing/route.ts';
import { unimplementedParts, unimplementedRoutes } from '../../../src/http/routing/unimplemented-routes.ts';
import { checkIndexName, checkTableName } from '../../../src/protocol/names.ts';
import { sendRaw } from '../../support/raw-http.ts';
import { testListener } from '../../support/test-listener.ts';

const described = {
  access: 'open',
  summary: 'A route of this test',
  tag: 'test',
  responses: { 200: { description: 'Fine' } },
} as const;
const value = defineRoute({ ...described, method: 'GET', path: '/value', handler: () => ({ a: 1 }) });

interface ErrorAnswer {
  readonly code: string;
  readonly message: string;
}

describe('paths as they are sent', () => {
  const dropped: string[] = [];
  const routes = [
    defineRoute({
      ...described,
      method: 'DELETE',
      path: '/tables/:table',
      handler: ({ params }) => {
        dropped.push(checkTableName(params.table));
        return {};
      },
    }),
    defineRoute({
      ...described,
      method: 'DELETE',
      path: '/tables/:table/indexes/:index',
      handler: ({ params }) => ({ table: checkTableName(params.table), index: checkIndexName(params.index) }),
    }),
  ];

  const refused: readonly (readonly [path: string, status: number, code: string])[] = [
    ['/tables/%2e%2e', 400, 'invalid_name'],
    ['/tables/..%2fx', 400, 'invalid_name'],
    ['/tables/a%2Fb', 400, 'invalid_name'],
    [`/tables/${'a'.repeat(300)}`, 400, 'invalid_name'],
    ['/tables/_system', 400, 'invalid_name'],
    ['/tables/e%CC%81', 400, 'invalid_name'],
    ['/tables/a%00b', 400, 'invalid_name'],
    ['/tables/%ff', 400, 'invalid_request'],
    ['/tables/books/indexes/%2e%2e', 400, 'invalid_name'],
    ['/tables/books/indexes/..', 400, 'invalid_name'],
    ['/tables/books/indexes/', 404, 'not_found'],
    ['/tables//indexes/x', 404, 'not_found'],
  ];
  test.each(refused)('DELETE %s drops nothing', async (path, status, code) => {
    await using server = testListener({ routes });
    const answer = await sendRaw(server.port, [`DELETE ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`]);
    expect([answer.status, (JSON.parse(answer.body) as ErrorAnswer).code]).toEqual([status, code]);
    expect(dropped).toEqual([]);
  });

  const loadedLater = { routes: [], loadRoutes: async () => routes };
  test.each(refused)('DELETE %s drops nothing while the routes are being loaded', async (path, status) => {
    await using server = testListener(loadedLater);
    const answer = await sendRaw(server.port, [`DELETE ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`]);
    expect([status, 404]).toContain(answer.status);
    expect(dropped).toEqual([]);
  });

  // The runtime's router sees each path as it was sent. The URL of the request is normalised: a router that looks at it
  // would take every one of these for the table.
  const notTheTable = [
    '/tables/books/x/..',
    '/tables/books/indexes/x/../..',
    '/tables/books/indexes/x/%2e%2e/%2e%2e',
    '/tables/books/indexes/x/%2E%2e/.%2e',
    '/tables/books/.',
    '/tables/books/%2e',
    '/x/../tables/books',
    '/x/%2e%2e/tables/books',
    '/./tables/books',
    '//tables/books',
    '/tables/books/',
    '/tables%2Fbooks',
    '/tables\\books',
    '/.\\tables/books',
    '/x\\..\\tables/books',
    '/%74ables/books',
  ];
  const listeners = { 'of all routes': { routes }, 'that loads its routes': loadedLater };
  const cases = Object.entries(listeners).flatMap(([name, deps]) =>
    notTheTable.map((path) => [path, name, deps] as const),
  );
  test.each(cases)('DELETE %s reaches no route of a listener %s', async (path, _name, deps) => {
    await using server = testListener(deps);
    const answer = await sendRaw(server.port, [`DELETE ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`]);
    expect([answer.status, (JSON.parse(answer.body) as ErrorAnswer).code]).toEqual([404, 'not_found']);
    expect(dropped).toEqual([]);
  });

  test('the host header, however short, does not change what is reached', async () => {
    await using server = testListener({ routes: [value] });
    for (const host of ['h', 'localhost', 'a/b', 'x/tables/books', '?', '']) {
      const answer = await sendRaw(server.port, [`GET /value HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`]);
      expect([answer.status, answer.body]).toEqual([200, '{"a":1}']);
    }
  });
});

describe('connections', () => {
  test('a request that asks to close is told so', async () => {
    await using server = testListener({ routes: [value] });
    for (const path of ['/value', '/absent']) {
      const answer = await sendRaw(server.port, [`GET ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`]);
      expect(answer.headers.get('connection')).toBe('close');
    }
    expect((await fetch(`${server.url}/value`)).headers.get('connection')).not.toBe('close');
  });

  test('HEAD answers like GET, without a body', async () => {
    await using server = testListener({ routes: [value] });
    const response = await fetch(`${server.url}/value`, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  test('405 names the methods of the path', async () => {
    await using server = testListener({ routes: [value] });
    const response = await fetch(`${server.url}/value`, { method: 'PUT' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect(await response.json()).toEqual({
      code: 'method_not_allowed',
      error: 'this path takes GET, HEAD, not PUT',
      message: 'this path takes GET, HEAD, not PUT',
      retryable: false,
    });
  });

  test('a second listener on the port fails', async () => {
    await using server = testListener({ routes: [value] });
    expect(() => new ServerListener('127.0.0.1', server.port)).toThrow();
  });

  test('before an application is there, liveness is answered and the rest is asked to retry', async () => {
    const listener = new ServerListener('127.0.0.1', 0);
    try {
      expect(await (await fetch(`${listener.url}/healthz`)).json()).toEqual({ status: 'ok' });
      const early = await fetch(`${listener.url}/db/v1/tables`);
      expect([early.status, early.headers.get('retry-after-ms')]).toEqual([503, '250']);
      expect(await early.json()).toMatchObject({ code: 'unavailable', retryable: true, retry_after_ms: 250 });
      expect((await fetch(`${listener.url}/readyz`)).status).toBe(503);
    } finally {
      await listener.stop();
    }
  });
});

describe('what is not built', () => {
  const all = unimplementedParts.flatMap(({ name, routes }) => routes.map((route) => [route, name] as const));

  test.each(all)('%s answers 501 and names its part', async (route, part) => {
    await using server = testListener({ routes: unimplementedRoutes() });
    const [method = '', path = ''] = route.split(' ');
    const response = await fetch(server.url + path.replaceAll(/:[a-z]+/g, 'x'), { method });
    expect(response.status).toBe(501);
    const body = (await response.json()) as ErrorAnswer & { error: string };
    expect(body.code ?? body.error.split(':')[0]).toBe('not_implemented');
    expect(body.message).toStartWith(`${part}: ${method} `);
  });
});

describe('documentation', () => {
  const routes = [...docsRoutes([value], '1.2.3')];

  test('/openapi.json is OpenAPI 3.1 and describes every route and itself', async () => {
    await using server = testListener({ routes });
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      openapi: string;
      paths: Record<string, Record<string, { summary: string }>>;
    };
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toEqual(['/value', '/openapi.json']);
    expect(document.paths['/value']?.get?.summary).toBe('A route of this test');
  });

  test('/docs and all that it loads comes from this server and may come from nowhere else', async () => {
    await using server = testListener({ routes });
    const page = await fetch(`${server.url}/docs`);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const parts = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, part]) => part ?? '');
    expect(parts.length).toBe(3);
    for (const part of parts) {
      // A proxy may have put the page below a path of its own.
      const address = new URL(part, 'http://proxy/below/docs').pathname;
      expect(address).toStartWith('/below/docs/');
      const response = await fetch(server.url + address.slice('/below'.length));
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(text.length).toBeGreaterThan(50);
      if (part.endsWith('start.js')) expect(text).toContain("url: 'openapi.json'");
    }
  });
});
