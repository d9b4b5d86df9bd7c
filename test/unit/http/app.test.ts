import { describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Session } from '../../../src/access/access-state.ts';
import { everyone } from '../../../src/access/principal.ts';
import { limits } from '../../../src/config/limits.ts';
import type { RequestObservation } from '../../../src/http/listener/app.ts';
import { inferenceErrorReply } from '../../../src/http/listener/error-response.ts';
import { rawJson, reply } from '../../../src/http/listener/reply.ts';
import { readBody } from '../../../src/http/listener/request-body.ts';
import { defineRoute, type Route } from '../../../src/http/routing/route.ts';
import { AssertionError } from '../../../src/lib/assert.ts';
import { pause } from '../../../src/lib/clock.ts';
import { errorCodes } from '../../../src/protocol/error-codes.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { keepingLogger, testApp } from '../../support/test-app.ts';
import { testListener } from '../../support/test-listener.ts';

const described = {
  access: 'open',
  summary: 'A route of this test',
  tag: 'test',
  responses: { 200: { description: 'Fine' } },
} as const;

function get(path: string, handler: Route['handler'], more: Partial<Route> = {}): Route {
  return { ...defineRoute({ ...described, method: 'GET', path, handler: () => undefined }), handler, ...more };
}

const search = defineRoute({
  ...described,
  method: 'POST',
  path: '/t/:table/search',
  query: Type.Object({
    n: Type.Optional(Type.Integer({ minimum: 0 })),
    deep: Type.Optional(Type.Boolean()),
    fields: Type.Optional(Type.Array(Type.String())),
  }),
  body: {
    kind: 'json',
    bytesMax: 1_000,
    schema: Type.Object(
      {
        query: Type.String(),
        limit: Type.Optional(Type.Integer()),
        sort: Type.Optional(Type.Object({ field: Type.String() })),
      },
      { additionalProperties: false },
    ),
  },
  handler: ({ params, query, body }) => ({ table: params.table, ...query, ...body }),
});

function post(path: string, body: string, headers: Record<string, string> = {}): Request {
  const length = String(Buffer.byteLength(body));
  return new Request(`http://localhost${path}`, {
    method: 'POST',
    body,
    headers: { 'content-length': length, ...headers },
  });
}

async function messageOf(answer: Promise<Response>): Promise<string> {
  const response = await answer;
  const body = (await response.json()) as { code: string; message: string };
  return `${response.status} ${body.code}: ${body.message}`;
}

describe('what a handler gets', () => {
  const app = testApp({ routes: [search] });

  test('decoded parameters, converted query, checked body', async () => {
    const response = await app.handle(post('/t/a%2Fb%20c/search?n=3&deep=true&fields=x,y&other=1', '{"query":"tea"}'));
    expect(await response.json()).toEqual({ table: 'a/b c', n: 3, deep: true, fields: ['x', 'y'], query: 'tea' });
  });

  const refused: readonly (readonly [why: string, path: string, body: string, answer: string])[] = [
    ['a missing member', '/t/a/search', '{}', '400 invalid_request: member "query" is missing'],
    ['a wrong type', '/t/a/search', '{"query":1}', '400 invalid_request: member "query": expected string'],
    [
      'a nested one',
      '/t/a/search',
      '{"query":"","sort":{"field":2}}',
      '400 invalid_request: member "sort.field": expected string',
    ],
    [
      'an unknown member',
      '/t/a/search',
      '{"query":"","limti":1}',
      '400 invalid_request: unknown member "limti"; did you mean "limit"?',
    ],
    ['an empty body', '/t/a/search', '', '400 invalid_request: the body is empty; this route takes a JSON object'],
    [
      'a blank body',
      '/t/a/search',
      ' \r\n\t',
      '400 invalid_request: the body is empty; this route takes a JSON object',
    ],
    ['no JSON', '/t/a/search', '{', '400 invalid_json: the body is not JSON'],
    [
      'a parameter of the wrong type',
      '/t/a/search?n=x',
      '{"query":""}',
      '400 invalid_request: parameter "n" must be an integer',
    ],
    [
      'a parameter out of range',
      '/t/a/search?n=-1',
      '{"query":""}',
      '400 invalid_request: parameter "n": expected integer to be greater or equal to 0',
    ],
    ['a parameter twice', '/t/a/search?n=1&n=2', '{"query":""}', '400 invalid_request: parameter "n" is given twice'],
    [
      'a flag that is neither',
      '/t/a/search?deep=1',
      '{"query":""}',
      '400 invalid_request: parameter "deep" must be true or false',
    ],
    [
      'an escape that is not UTF-8',
      '/t/%ff/search',
      '{"query":""}',
      '400 invalid_request: the path has a percent escape that is not UTF-8',
    ],
  ];
  test.each(refused)('%s is refused', async (_why, path, body, answer) => {
    expect(await messageOf(app.handle(post(path, body)))).toBe(answer);
  });

  test('a member named __proto__ is a member like any other', async () => {
    const echo = defineRoute({
      ...described,
      method: 'POST',
      path: '/echo',
      body: { kind: 'json', schema: Type.Record(Type.String(), Type.Unknown()), bytesMax: 1_000 },
      handler: ({ body }) => ({ own: Object.keys(body), polluted: 'x' in {} }),
    });
    const response = await testApp({ routes: [echo] }).handle(post('/echo', '{"__proto__":{"x":1}}'));
    expect(await response.json()).toEqual({ own: ['__proto__'], polluted: false });
  });
});

describe('answers', () => {
  const created = { ...described, responses: { 201: { description: 'Made' }, 200: { description: 'Was there' } } };
  const routes = [
    get('/value', () => ({ a: 1 })),
    get('/nothing', () => undefined, { successStatus: 204 }),
    get('/status', () => reply(202, { b: 2 }, { 'x-more': '1' })),
    get('/bytes', () => rawJson(200, new TextEncoder().encode('{"stored": 1.0}'))),
    get('/stream', () => new Response('a\nb\n', { headers: { 'content-type': 'application/x-ndjson' } })),
    defineRoute({ ...created, method: 'GET', path: '/lowest', handler: () => 1 }),
  ];
  const app = testApp({ routes });
  const answer = async (path: string) => {
    const response = await app.handle(new Request(`http://localhost${path}`));
    return [response.status, response.headers.get('content-type'), await response.text()];
  };

  test('a value, nothing, a status, stored bytes, a stream', async () => {
    expect(await answer('/value')).toEqual([200, 'application/json', '{"a":1}']);
    expect(await answer('/nothing')).toEqual([204, null, '']);
    expect(await answer('/status')).toEqual([202, 'application/json', '{"b":2}']);
    expect(await answer('/bytes')).toEqual([200, 'application/json', '{"stored": 1.0}']);
    expect(await answer('/stream')).toEqual([200, 'application/x-ndjson', 'a\nb\n']);
    expect(await answer('/lowest')).toEqual([200, 'application/json', '1']);
  });

  test('every answer has a request id, forbids caching and says how long it took', async () => {
    for (const path of ['/value', '/stream', '/absent']) {
      const { headers } = await app.handle(new Request(`http://localhost${path}`));
      expect(headers.get('x-request-id')).toMatch(/^fresh-\d+$/);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('server-timing')).toMatch(/^total;dur=\d/);
    }
  });

  const ids: readonly (readonly [given: string, kept: boolean])[] = [
    ['abc-123_X.y:z/+=@', true],
    ['a'.repeat(128), true],
    ['a'.repeat(129), false],
    ['with space', false],
    ['"quoted"', false],
  ];
  test.each(ids)('the request id %j is kept: %p', async (given, kept) => {
    const response = await app.handle(new Request('http://localhost/value', { headers: { 'x-request-id': given } }));
    expect(response.headers.get('x-request-id') === given).toBe(kept);
  });

  test('stages are named in server-timing', async () => {
    const route = get('/', (context) => {
      context.addTiming('plan', 1.5);
      return 1;
    });
    const response = await testApp({ routes: [route] }).handle(new Request('http://localhost/'));
    expect(response.headers.get('server-timing')).toBe('plan;dur=1.50, total;dur=0.00');
  });
});

describe('errors', () => {
  test.each(Object.entries(errorCodes))('%s has its status and its whole body', async (code, [status, retryable]) => {
    const route = get('/', () => {
      throw new ServiceError(
        code as keyof typeof errorCodes,
        'what went wrong',
        retryable ? { retryAfterMs: 1_500 } : {},
      );
    });
    const response = await testApp({ routes: [route] }).handle(new Request('http://localhost/'));
    expect(response.status).toBe(status);
    expect(response.headers.get('retry-after')).toBe(retryable ? '2' : null);
    expect(response.headers.get('retry-after-ms')).toBe(retryable ? '1500' : null);
    expect(await response.json()).toEqual({
      code,
      error: 'what went wrong',
      message: 'what went wrong',
      retryable,
      ...(retryable ? { retry_after_ms: 1_500 } : {}),
    });
  });

  const faults: readonly (readonly [string, unknown])[] = [
    ['an assertion', new AssertionError('rows at /var/lib/secret')],
    ['an error of a library', new TypeError('cannot read /var/lib/secret')],
    ['what is no error at all', '/var/lib/secret'],
  ];
  test.each(faults)('%s is answered without a word about it, logged and counted', async (_what, thrown) => {
    const logger = keepingLogger();
    const counted: unknown[] = [];
    const route = get('/', () => {
      throw thrown;
    });
    const app = testApp({ routes: [route], logger, onFault: (fault) => void counted.push(fault) });
    const response = await app.handle(new Request('http://localhost/'));
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(text).not.toContain('secret');
    expect(text).not.toContain('.ts');
    expect(JSON.parse(text)).toMatchObject({ code: 'internal', retryable: false });
    expect(logger.lines).toMatchObject([
      { level: 'error', fields: { request_id: 'fresh-1', route: '/' }, error: thrown },
    ]);
    expect(counted).toEqual([thrown]);
  });

  test('a fault that was recognised elsewhere is logged with what caused it', async () => {
    const logger = keepingLogger();
    const cause = new Error('disk');
    const route = get('/', () => Promise.reject(new ServiceError('internal', 'a fault', { cause })));
    await testApp({ routes: [route], logger }).handle(new Request('http://localhost/'));
    expect(logger.lines).toMatchObject([{ error: cause }]);
  });
});

describe('routing', () => {
  const app = testApp({ routes: [search, get('/t/:table', () => 1), get('/t/list', () => 2)] });

  test('an unknown path is 404, a known one with another method 405 with Allow', async () => {
    expect(await messageOf(app.handle(new Request('http://localhost/nowhere')))).toStartWith('404 not_found');
    expect(await messageOf(app.handle(new Request('http://localhost/t/a/')))).toStartWith('404 not_found');
    const response = await app.handle(new Request('http://localhost/t/a', { method: 'DELETE' }));
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD');
  });

  test('a literal beats a parameter', async () => {
    expect(await (await app.handle(new Request('http://localhost/t/list'))).json()).toBe(2);
  });

  test('a request that collapses to a route of the inference plane reaches it', async () => {
    const models = testApp({ routes: [get('/ai/v1/models/:model', ({ params }) => params)] });
    const response = await models.handle(new Request('http://localhost/ai/v1//models/tea'));
    expect(await response.json()).toEqual({ model: 'tea' });
  });

  test('another Elysia application mounts it', async () => {
    const mounting = new Elysia()
      .get('/own', () => 'mine')
      .mount(app.handle)
      .mount('/db', app.handle);
    const ask = async (path: string) => (await mounting.handle(new Request(`http://localhost${path}`))).text();
    expect([await ask('/own'), await ask('/t/list'), await ask('/db/t/books')]).toEqual(['mine', '2', '1']);
    const posted = await mounting.handle(post('/db/t/a/search?n=1', '{"query":"tea"}'));
    expect([posted.headers.get('x-request-id'), await posted.json()]).toEqual([
      expect.stringMatching(/^fresh-/),
      { table: 'a', n: 1, query: 'tea' },
    ]);
  });

  test('routes that are loaded later are waited for, also by requests for other methods', async () => {
    let loads = 0;
    const loadRoutes = async () => {
      loads += 1;
      if (loads === 1) throw new Error('the file is being replaced');
      return [get('/t/list', () => 2), get('/later/:name', ({ params }) => params)];
    };
    await using server = testListener({ routes: [get('/t/list', () => 2)], loadRoutes });
    const ask = async (path: string, method = 'GET') => (await fetch(server.url + path, { method })).status;
    expect([await ask('/t/list'), loads]).toEqual([200, 0]);
    expect([await ask('/later/tea'), loads]).toEqual([500, 1]);
    expect(await Promise.all([ask('/later/tea'), ask('/later/cake'), ask('/t/list', 'PUT')])).toEqual([200, 200, 405]);
    expect(await (await fetch(`${server.url}/later/a%2Fb`)).json()).toEqual({ name: 'a/b' });
    expect([await ask('/nothing'), await ask('/later/tea', 'DELETE'), loads]).toEqual([404, 405, 2]);
  });

  test('a path is registered once', () => {
    expect(() => testApp({ routes: [get('/t/:a', () => 1), get('/t/:b', () => 2)] })).toThrow('two routes');
  });
});

describe('admission and deadlines', () => {
  function waiting() {
    const release = Promise.withResolvers<number>();
    const signals: AbortSignal[] = [];
    const route = get('/wait', (context) => {
      signals.push(context.signal);
      return release.promise;
    });
    return { release, route, signals };
  }

  test('requests beyond the bound are refused, and admitted again when one is done', async () => {
    const { release, route } = waiting();
    const app = testApp({ routes: [route, get('/now', () => 1)], limits: { ...limits, concurrentRequestsMax: 1 } });
    const first = app.handle(new Request('http://localhost/wait'));
    expect(await messageOf(app.handle(new Request('http://localhost/now')))).toStartWith('503 unavailable');
    release.resolve(1);
    expect((await first).status).toBe(200);
    expect((await app.handle(new Request('http://localhost/now'))).status).toBe(200);
  });

  test('a client is alone from its second request on, until another one asks too', async () => {
    const { release, route } = waiting();
    let connection: number | undefined = 1;
    const alone = get('/alone', ({ caller }) => caller.isAlone());
    const app = testApp({ routes: [route, alone], connectionOf: () => connection });
    const isAlone = async () => (await app.handle(new Request('http://localhost/alone'))).json();
    expect([await isAlone(), await isAlone(), await isAlone()]).toEqual([false, true, true]);
    connection = 2;
    expect([await isAlone(), await isAlone()]).toEqual([false, true]);
    const other = app.handle(new Request('http://localhost/wait'));
    expect(await isAlone()).toBe(false);
    release.resolve(1);
    await other;
    expect([await isAlone(), await isAlone()]).toEqual([false, true]);
    connection = undefined;
    expect([await isAlone(), await isAlone()]).toEqual([false, false]);
  });

  test('all queries of one request are told the same of being alone', async () => {
    const twice = get('/twice', ({ caller }) => [caller.isAlone(), caller.isAlone()]);
    const app = testApp({ routes: [twice], connectionOf: () => 1 });
    const ask = async () => (await app.handle(new Request('http://localhost/twice'))).json();
    expect([await ask(), await ask()]).toEqual([
      [false, false],
      [true, true],
    ]);
  });

  test('while draining only probes are answered, and connections are closed', async () => {
    const app = testApp({ routes: [get('/now', () => 1), get('/healthz', () => 2, { always: true })] });
    app.inFlight.refuseNew();
    const refused = await app.handle(new Request('http://localhost/now'));
    expect(refused.status).toBe(503);
    expect(refused.headers.get('connection')).toBe('close');
    expect((await app.handle(new Request('http://localhost/healthz'))).status).toBe(200);
  });

  test('a request that outlives its deadline is answered and its handler told to stop', async () => {
    const clock = new FakeClock();
    const { route, signals } = waiting();
    const extended: number[] = [];
    const app = testApp({ routes: [route], clock, extendIdle: (_request, seconds) => void extended.push(seconds) });
    const answer = app.handle(new Request('http://localhost/wait'));
    await clock.advance(limits.requestDeadlineMs - 1_000);
    expect(signals[0]?.aborted).toBe(false);
    expect(extended.length).toBeGreaterThan(0);
    await clock.advance(2_000);
    expect(await messageOf(answer)).toStartWith('503 deadline_exceeded');
    const late = inferenceErrorReply(new ServiceError('deadline_exceeded', 'late'));
    expect([late.status, late.headers?.['x-should-retry']]).toEqual([504, 'true']);
    expect(signals[0]?.aborted).toBe(true);
    expect(app.inFlight.count).toBe(0);
    await clock.advance(5_000);
    expect(clock.pending).toBe(0);
  });

  test('a connection that was given more time gets back what an idle one has, once its request is answered', async () => {
    const clock = new FakeClock();
    const { release, route } = waiting();
    const extended: number[] = [];
    const app = testApp({ routes: [route], clock, extendIdle: (_request, seconds) => void extended.push(seconds) });
    const quick = testApp({ routes: [get('/now', () => 1)], extendIdle: () => void extended.push(-1) });
    await quick.handle(new Request('http://localhost/now'));
    expect(extended).toEqual([]);
    const answer = app.handle(new Request('http://localhost/wait'));
    await clock.advance(10_000);
    extended.length = 0;
    release.resolve(1);
    await answer;
    expect(extended).toEqual([limits.keepAliveMs / 1_000]);
  });

  test('a stream that begins late may be silent for as long as it likes, and gives the time back at its end', async () => {
    const clock = new FakeClock();
    const begun = Promise.withResolvers<void>();
    let end = () => {};
    const stream = get('/stream', async (context) => {
      await begun.promise;
      ({ end } = context.openStream(() => undefined));
      return new Response('');
    });
    const extended: number[] = [];
    const app = testApp({ routes: [stream], clock, extendIdle: (_request, seconds) => void extended.push(seconds) });
    const answer = app.handle(new Request('http://localhost/stream'));
    await clock.advance(10_000);
    begun.resolve();
    await answer;
    await clock.advance(60_000);
    expect(extended.at(-1)).toBe(0);
    end();
    expect(extended.at(-1)).toBe(limits.keepAliveMs / 1_000);
  });

  test('room for an answer that comes when its request has ended is given back', async () => {
    const clock = new FakeClock();
    const hold = (path: string, afterMs: number) =>
      get(path, async ({ caller }) => {
        await pause(clock, afterMs);
        await caller.holdAnswer(80);
        return path === '/now' ? 1 : new Promise<never>(() => undefined);
      });
    const bounds = { ...limits, answersInFlightBytesMax: 100, requestDeadlineMs: 10_000, answerWaitMs: 5_000 };
    const app = testApp({ routes: [hold('/waits', 8_000), hold('/holds', 0), hold('/now', 0)], clock, limits: bounds });
    const given = ['/waits', '/holds'].map((path) => app.handle(new Request(`http://localhost${path}`)));
    await clock.advance(11_000);
    for (const answer of given) expect(await messageOf(answer)).toStartWith('503 deadline_exceeded');
    const next = app.handle(new Request('http://localhost/now'));
    await clock.advance(6_000);
    expect((await next).status).toBe(200);
  });

  test('what a drain gives up is answered', async () => {
    const { route } = waiting();
    const app = testApp({ routes: [route] });
    await app.prepareCalls();
    const answer = app.handle(new Request('http://localhost/wait'));
    app.inFlight.expireAll();
    expect(await messageOf(answer)).toStartWith('503 unavailable');
  });

  test('what was given up before its handler began is never begun', async () => {
    const begun: string[] = [];
    const late = Promise.withResolvers<Session>();
    const authenticator = { identify: () => late.promise, sessionNow: () => undefined };
    const wait = get('/wait', () => void begun.push('password'), { access: 'authenticated' });
    const body = { kind: 'bytes', bytesMax: 1_000 } as const;
    const read = defineRoute({
      ...described,
      method: 'POST',
      path: '/read',
      body,
      handler: () => void begun.push('body'),
    });
    const app = testApp({ routes: [wait, read], authenticator });
    await app.prepareCalls();
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const answers = [
      app.handle(new Request('http://localhost/wait')),
      app.handle(new Request('http://localhost/read', { method: 'POST', body: readable })),
    ];
    app.inFlight.expireAll();
    for (const answer of answers) expect(await messageOf(answer)).toStartWith('503 unavailable');
    late.resolve({ principal: everyone, rowFilter: undefined });
    await new Blob(['late'])
      .stream()
      .pipeTo(writable)
      .catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toEqual([]);
  });

  test('an answer that cannot be sent is a fault, and is answered', async () => {
    const broken = () => reply(200, 1, { 'x-broken': 'two\nlines' });
    const app = testApp({ routes: [get('/now', broken), get('/later', () => Promise.resolve().then(broken))] });
    for (const path of ['/now', '/later'])
      expect(await messageOf(app.handle(new Request(`http://localhost${path}`)))).toStartWith('500 internal');
    expect(app.inFlight.count).toBe(0);
  });

  test('bodies together are bounded', async () => {
    const { release, route } = waiting();
    const upload = { ...route, method: 'POST' as const, body: { kind: 'bytes' as const, bytesMax: 100 } };
    const app = testApp({ routes: [upload], limits: { ...limits, bodiesInFlightBytesMax: 100 } });
    const first = app.handle(post('/wait', 'x'.repeat(60)));
    expect(await messageOf(app.handle(post('/wait', 'x'.repeat(60))))).toStartWith('503 unavailable');
    release.resolve(1);
    await first;
    expect((await app.handle(post('/wait', 'x'.repeat(60)))).status).toBe(200);
  });

  test('a body of unknown length is counted as it comes', async () => {
    const { release, route } = waiting();
    const upload = { ...route, method: 'POST' as const, body: { kind: 'bytes' as const, bytesMax: 100 } };
    const app = testApp({ routes: [upload], limits: { ...limits, bodiesInFlightBytesMax: 100 } });
    const first = app.handle(post('/wait', 'x'.repeat(60)));
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(60)) });
    expect(await messageOf(app.handle(new Request('http://localhost/wait', { method: 'POST', body })))).toStartWith(
      '503 unavailable',
    );
    release.resolve(1);
    expect((await first).status).toBe(200);
  });

  test('a packed body is counted before it is inflated', async () => {
    const counted: number[] = [];
    const packed = Bun.gzipSync(new Uint8Array(5_000));
    packed.fill(0xff, 10, packed.length - 8);
    const request = new Request('http://localhost/', {
      method: 'POST',
      body: packed,
      headers: { 'content-encoding': 'gzip' },
    });
    const options = { bytesMax: 10_000, gzip: true, deadlineMs: 1_000, bytesPerSecondMin: 1, clock: new FakeClock() };
    const count = (bytes: number) => void counted.push(bytes);
    await expect(readBody(request, packed.length, { ...options, count, onReceived: () => undefined })).rejects.toThrow(
      'not valid gzip',
    );
    expect(counted).toEqual([5_000]);
  });

  test('a packed body that has more than it states is counted as the largest before it is inflated further', async () => {
    const counted: number[] = [];
    const packed = Buffer.concat([Bun.gzipSync(Buffer.alloc(8_000, 'a')), Bun.gzipSync(Buffer.from('b'))]);
    const body = (bytesMax: number) =>
      readBody(
        new Request('http://localhost/', { method: 'POST', body: packed, headers: { 'content-encoding': 'gzip' } }),
        packed.length,
        {
          bytesMax,
          gzip: true,
          deadlineMs: 1_000,
          bytesPerSecondMin: 1,
          clock: new FakeClock(),
          count: (bytes) => void counted.push(bytes),
          onReceived: () => undefined,
        },
      );
    expect(Buffer.from(await body(10_000)).toString()).toBe(`${'a'.repeat(8_000)}b`);
    expect(counted).toEqual([1, 10_000]);
    await expect(body(8_000)).rejects.toThrow('larger than 8000 bytes');
  });

  test('the observation has the pattern of the route, not its path', async () => {
    const seen: RequestObservation[] = [];
    const app = testApp({ routes: [get('/t/:table', () => 1)], observe: (observation) => void seen.push(observation) });
    await app.handle(new Request('http://localhost/t/secret'));
    await app.handle(new Request('http://localhost/other/secret'));
    expect(seen.map(({ route, status }) => [route, status])).toEqual([
      ['/t/:table', 200],
      ['unmatched', 404],
    ]);
  });

  test('a client that leaves is no failure of the server; a bug that it does not wait for is one', async () => {
    const seen: number[] = [];
    const logger = keepingLogger();
    const left = new AbortController();
    const throwing = (thrown: unknown) => () => {
      left.abort();
      throw thrown;
    };
    const routes = [
      get('/cancelled', throwing(new ServiceError('query_timeout', 'the query was cancelled'))),
      get('/aborted', throwing(new DOMException('The operation was aborted.', 'AbortError'))),
      get('/broken', throwing(new TypeError('x is undefined'))),
    ];
    const app = testApp({ routes, logger, observe: ({ status }) => void seen.push(status) });
    for (const path of ['cancelled', 'aborted', 'broken']) {
      await app.handle(new Request(`http://localhost/${path}`, { signal: left.signal }));
    }
    expect(seen).toEqual([499, 499, 500]);
    expect(logger.lines).toMatchObject([{ level: 'error', error: { message: 'x is undefined' } }]);
  });
});
