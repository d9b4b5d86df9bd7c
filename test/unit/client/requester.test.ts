import { describe, expect, spyOn, test } from 'bun:test';
import { clientOver, connect, SundewError, type Transaction } from '../../../src/client/client.ts';
import { FakeClock } from '../../support/fake-clock.ts';

type Answer = () => Response | Promise<Response>;

const json =
  (status: number, body: object, headers: Record<string, string> = {}) =>
  () =>
    new Response(JSON.stringify(body), { status, headers });
const refused = (code: string, retry_after_ms?: number) =>
  json(503, { code, message: 'later', retryable: true, ...(retry_after_ms && { retry_after_ms }) });
const cut: Answer = () => Promise.reject(new TypeError('socket closed'));

/** A client whose requests get these answers in turn. */
function answering(...answers: Answer[]) {
  const clock = new FakeClock();
  const requests: Request[] = [];
  let keys = 0;
  const client = clientOver({
    transport: async (request) => {
      requests.push(request);
      const answer = answers.shift();
      if (answer === undefined) throw new Error('no more answers');
      return await answer();
    },
    url: 'http://test',
    headers: {},
    clock,
    freshKey: () => `key-${++keys}`,
  });
  return { clock, requests, client, table: client.table('t') };
}

const failure = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error as SundewError);
const written = json(200, { status: 'committed', inserted: 1, deleted: 0, transformed: 0 });

describe('a request is sent again', () => {
  test('after the time that the server has named', async () => {
    const { clock, requests, table } = answering(refused('unavailable', 700), json(200, { a: 1 }));
    const found = table.get('k');
    await clock.advance(699);
    expect(requests).toHaveLength(1);
    await clock.advance(1);
    expect(await found).toEqual({ a: 1 });
    expect(requests).toHaveLength(2);
  });

  test('as a write under the key of the first attempt, also where its answer was lost', async () => {
    const { clock, requests, table } = answering(cut, refused('deadline_exceeded', 5), written);
    const writing = table.put('k', {});
    await clock.advance(200);
    await clock.advance(5);
    await writing;
    expect(requests.map(({ headers }) => headers.get('idempotency-key'))).toEqual(['key-1', 'key-1', 'key-1']);
    expect(await Promise.all(requests.map((request) => request.text()))).toEqual(
      Array.from({ length: 3 }, () => '{"inserts":{"k":{}}}'),
    );
  });

  test('no more often than it is told to, and then throws the last answer', async () => {
    const answers = Array.from({ length: 4 }, () => refused('backpressure', 1));
    const { clock, requests, table } = answering(...answers);
    const failing = failure(table.get('k'));
    for (let round = 0; round < 4; round++) await clock.advance(1);
    expect(await failing).toMatchObject({ code: 'backpressure', status: 503, retryable: true, retryAfterMs: 1 });
    expect(requests).toHaveLength(3);
  });

  test.each([
    ['an error that stays', json(400, { code: 'invalid_query', message: 'no', retryable: false })],
    ['a conflict', json(409, { code: 'transaction_conflict', message: 'changed', retryable: true })],
    ['a wait of minutes', refused('model_loading', 120_000)],
  ])('not after %s', async (_name, answer) => {
    const { requests, table } = answering(answer);
    expect(await failure(table.query({}))).toBeInstanceOf(SundewError);
    expect(requests).toHaveLength(1);
  });

  test('not where it may have taken effect and has no key', async () => {
    const lost = answering(cut);
    expect(await failure(lost.table.drop())).toMatchObject({ code: 'connection_failed', status: 0 });
    const late = answering(refused('deadline_exceeded'));
    expect(await failure(late.table.drop())).toMatchObject({ code: 'deadline_exceeded' });
    const starting = answering(refused('unavailable', 10), () => new Response(null, { status: 204 }));
    const dropping = starting.table.drop();
    await starting.clock.advance(10);
    await dropping;
    expect(starting.requests).toHaveLength(2);
  });

  test('not once it is aborted', async () => {
    const { clock, requests, table } = answering(refused('unavailable', 1_000), written);
    const leaving = new AbortController();
    const failing = failure(table.get('k', { signal: leaving.signal }));
    await clock.advance(1);
    leaving.abort(new Error('left'));
    expect(String(await failing)).toContain('left');
    expect(requests).toHaveLength(1);
  });
});

test('a scan whose connection breaks goes on behind the last key', async () => {
  const lines = (keys: string[], isCut: boolean) => () => {
    const text = keys.map((key) => `${JSON.stringify({ _id: key, n: 1 })}\n`).join('');
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text));
      },
      pull(controller) {
        if (isCut) controller.error(new Error('cut'));
        else controller.close();
      },
    });
    return new Response(body);
  };
  const { requests, table } = answering(lines(['a', 'b'], true), lines(['c'], true), lines(['d'], false));
  const keys: string[] = [];
  for await (const { key, document } of table.scan({ limit: 10 })) {
    keys.push(key);
    expect(document).toEqual({ n: 1 });
  }
  expect(keys).toEqual(['a', 'b', 'c', 'd']);
  const bodies = await Promise.all(requests.map((request) => request.json() as Promise<object>));
  expect(bodies).toEqual([
    { fields: ['*'], limit: 10, single_key: true },
    { fields: ['*'], limit: 8, from: 'b', inclusive_from: false, single_key: true },
    { fields: ['*'], limit: 7, from: 'c', inclusive_from: false, single_key: true },
  ]);
});

test('a scan that ends within a line goes on behind the last whole one', async () => {
  const half = () => new Response(`${JSON.stringify({ _id: 'a' })}\n{"_id":"b`);
  const { table } = answering(half, json(200, { _id: 'b' }));
  const keys: string[] = [];
  for await (const { key } of table.scan()) keys.push(key);
  expect(keys).toEqual(['a', 'b']);
});

test('a damaged document of a scan is an error, not a document', async () => {
  const _error = { code: 'data_corrupted', message: 'it is damaged' };
  const { table } = answering(...[{ _id: 'a', key: 'a', _error }, { _error }].map((line) => json(200, line)));
  expect(await failure(table.scan().next())).toMatchObject({ code: 'data_corrupted' });
  expect(await failure(table.scan().next())).toMatchObject({ code: 'data_corrupted' });
});

test('a document of a scan may have a field "_error" of its own', async () => {
  const document = { n: 1, _error: { code: 'data_corrupted', message: 'of the program' } };
  const { table } = answering(json(200, { _id: 'a', ...document }));
  expect((await table.scan().next()).value as object).toEqual({ key: 'a', document });
});

test('what is no document is refused before anything is sent, and never taken for a deletion', async () => {
  const { requests, client, table } = answering();
  const none = undefined as unknown as Record<string, unknown>;
  const batch = { inserts: { a: {}, b: none } };
  const writer = table.writer();
  const refused = await Promise.all([
    failure(table.put('b', none)),
    failure(table.put('b', (() => 1) as unknown as typeof none)),
    failure(table.batch(batch)),
    failure(table.merge({ records: batch.inserts })),
    failure(client.commit({ read_set: [], tables: { t: batch } })),
    failure(writer.put('b', none)),
  ]);
  for (const error of refused) {
    expect(error).toMatchObject({ code: 'invalid_request', status: 0 });
    expect(String(error)).toContain('"b"');
  }
  await writer.flush();
  expect([requests.length, writer.written]).toEqual([0, 0]);
});

test('a transaction stages no document that JSON would leave out', async () => {
  const begun = json(201, { transaction_id: 'x' });
  const ended = json(200, { status: 'aborted' });
  const { requests, client } = answering(begun, ended, begun, ended);
  const none = undefined as unknown as Record<string, unknown>;
  const staging = [
    (open: Transaction) => open.table('t').stage({ inserts: { a: {}, b: none } }),
    (open: Transaction) => open.table('t').put('b', none),
  ];
  for (const work of staging) {
    const error = await failure(client.transaction(work));
    expect(error).toMatchObject({ code: 'invalid_request', status: 0 });
    expect(String(error)).toContain('"b"');
  }
  expect(requests.map(({ url }) => url.replace(/.*\//, ''))).toEqual(['begin', 'abort', 'begin', 'abort']);
});

test('what an address or a request cannot carry is not sent', async () => {
  const { requests, client, table } = answering();
  const refused = [
    client.table('.').query({}),
    client.table('..').drop(),
    table.index('..').drop(),
    client.request('DELETE', '/db/v1/tables/a/%2E%2e'),
    client.request('GET', '@example.org/db/v1/tables'),
    client.request('GET', '/db/v1/tables', { prefix: 'a' }),
  ];
  for (const work of refused) expect(await failure(work)).toMatchObject({ code: 'invalid_request', status: 0 });
  for (const key of ['', '.', '..', '\ud800']) {
    expect(await failure(table.get(key))).toMatchObject({ code: 'invalid_key', status: 0 });
  }
  expect(requests).toEqual([]);
});

test('an answer that is cut off is asked for again', async () => {
  const half = () =>
    new Response(
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"a":')),
        pull: (controller) => controller.error(new Error('cut')),
      }),
    );
  const { clock, requests, table } = answering(half, json(200, { a: 1 }), half, half, half);
  const reading = table.get('k');
  await clock.advance(200);
  expect(await reading).toEqual({ a: 1 });
  expect(requests).toHaveLength(2);
  const failing = failure(table.getVersioned('k'));
  for (const ms of [200, 400]) await clock.advance(ms);
  expect(await failing).toMatchObject({ code: 'connection_failed' });
});

test('an answer of a proxy whose server gives none is no answer', async () => {
  const proxied = () => new Response('<h1>Bad Gateway</h1>', { status: 502 });
  const { clock, requests, table } = answering(proxied, json(200, { a: 1 }), proxied);
  const reading = table.get('k');
  await clock.advance(200);
  expect(await reading).toEqual({ a: 1 });
  // The server behind it may have done what was asked.
  expect(await failure(table.drop())).toMatchObject({ code: 'connection_failed', status: 502, retryable: true });
  expect(requests).toHaveLength(3);
});

test('a long line of a scan is looked through once, in however many pieces it comes', async () => {
  const line = JSON.stringify({ _id: 'a', text: 'x'.repeat(500_000) });
  const pieces = (line.match(/.{1,1000}/g) ?? []).values();
  const body = new ReadableStream({
    pull(controller) {
      const { value, done } = pieces.next();
      if (done) controller.close();
      else controller.enqueue(new TextEncoder().encode(value));
    },
  });
  const { table } = answering(() => new Response(body));
  const split = spyOn(String.prototype, 'split');
  try {
    expect((await table.scan().next()).value).toEqual({ key: 'a', document: { text: 'x'.repeat(500_000) } } as never);
    const looked = split.mock.contexts.reduce<number>((sum, text) => sum + String(text).length, 0);
    expect(looked).toBeLessThan(2 * line.length);
  } finally {
    split.mockRestore();
  }
});

test('a chat that ends before its last event is cut off, not whole', async () => {
  const { client } = answering(() => new Response('data: {"choices":[]}\n\n'));
  const stream = client.inference.chatStream({ model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  expect((await stream.next()).value).toEqual({ choices: [] } as never);
  expect(await failure(stream.next())).toMatchObject({ code: 'connection_failed' });
});

test('a failed connection says why, also where the runtime says so in the cause', async () => {
  const { client } = answering(() => Promise.reject(new TypeError('fetch failed', { cause: new Error('refused') })));
  const error = await failure(client.request('DELETE', '/db/v1/tables/t'));
  expect(error).toMatchObject({ code: 'connection_failed', message: 'the database could not be reached: refused' });
});

test('writes have keys of their own also where a browser makes no UUIDs, as for a page without TLS', async () => {
  const uuid = spyOn(crypto, 'randomUUID').mockImplementation(() => {
    throw new TypeError('crypto.randomUUID is not a function');
  });
  try {
    const keys: (string | null)[] = [];
    const transport = async ({ headers }: Request) => {
      keys.push(headers.get('idempotency-key'));
      return written();
    };
    const table = connect('http://test', { fetch: transport }).table('t');
    await table.put('a', {});
    await table.put('a', {});
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(keys[0]).not.toBe(keys[1]);
  } finally {
    uuid.mockRestore();
  }
});

test('retries are a number of attempts', () => {
  for (const retries of [-1, Number.NaN, 'many' as unknown as number]) {
    expect(() => connect('http://test', { retries })).toThrow('"retries" must be a number from 0');
  }
  connect('http://test', { retries: 0 });
  connect('http://test', { retries: Number.POSITIVE_INFINITY });
  connect('http://test', { retries: undefined, apiKey: undefined });
});

test('errors of the inference plane have their code, and so has the error of a stream', async () => {
  const body = { error: 'model_not_found: no such model', message: 'no such model', reason: 'model_not_found' };
  const events =
    'event: message\r\ndata: {"choices":[]}\r\n\r\n: still there\n\n' +
    'event: error\ndata: {"error":{"message":"inference_failed: odd","code":"inference_failed"}}\n\n';
  const { client } = answering(json(404, { ...body, retryable: false }), () => new Response(events));
  const chat = { model: 'm', messages: [{ role: 'user' as const, content: 'hi' }] };
  expect(await failure(client.inference.chat(chat))).toMatchObject({ code: 'model_not_found', status: 404 });
  const stream = client.inference.chatStream(chat);
  expect((await stream.next()).value).toEqual({ choices: [] } as never);
  expect(await failure(stream.next())).toMatchObject({ code: 'inference_failed' });
});

test('a writer waits for room, keeps the order of a key, and stops at the first failure', async () => {
  const gates = [0, 1].map(() => Promise.withResolvers<Response>());
  const { requests, table } = answering(
    ...gates.map(
      ({ promise }) =>
        () =>
          promise,
    ),
    json(400, { code: 'validation_failed', message: 'no', retryable: false }),
  );
  const writer = table.writer({ keysMax: 2 });
  await writer.put('a', { n: 1 });
  await writer.put('b', { n: 1 });
  // The first batch is on its way; the next one fills.
  await writer.put('a', { n: 2 });
  let hasRoom = false;
  const waiting = writer.delete('b').then(() => {
    hasRoom = true;
  });
  await Bun.sleep(0);
  expect([requests.length, hasRoom, writer.written]).toEqual([1, false, 0]);
  gates[0]?.resolve(await written());
  await waiting;
  expect([requests.length, writer.written]).toEqual([2, 2]);
  expect(await Promise.all(requests.map((request) => request.clone().text()))).toEqual([
    '{"inserts":{"a":{"n":1},"b":{"n":1}},"deletes":[]}',
    '{"inserts":{"a":{"n":2}},"deletes":["b"]}',
  ]);
  gates[1]?.resolve(await written());
  await writer.put('c', {});
  expect(await failure(writer.flush())).toMatchObject({ code: 'validation_failed' });
  expect(await failure(writer.put('d', {}))).toMatchObject({ code: 'validation_failed' });
});

test('a writer whose bounds leave no room sends each document by itself', async () => {
  for (const bounds of [{ keysMax: 0 }, { charsMax: 0 }, { keysMax: Number.NaN }]) {
    const { requests, table } = answering(written, written);
    const writer = table.writer(bounds);
    for (const key of ['a', 'b']) await writer.put(key, {});
    await writer.flush();
    expect([requests.length, writer.written]).toEqual([2, 2]);
  }
});

test('a writer counts a key that is put again once', async () => {
  const { requests, table } = answering(written);
  const writer = table.writer({ charsMax: 20 });
  for (let count = 0; count < 40; count += 1) await writer.put('a-key', { n: 1 });
  await writer.flush();
  expect([requests.length, writer.written]).toEqual([1, 1]);
});

test.each([
  ['unavailable', { partial: true }],
  ['data_corrupted', { damaged: 1 }],
])('all hits are asked for, so an answer that lacks some throws %s', async (code, lack) => {
  const hits = Array.from({ length: 100 }, (_, at) => ({ _id: `k${at}`, _score: 1, _sort: [`k${at}`] }));
  const page = (more: object) => json(200, { responses: [{ hits: { hits }, status: 200, ...more }] });
  const { table } = answering(page({}), page(lack));
  const seen: string[] = [];
  const failed = await failure(
    (async () => {
      for await (const { _id } of table.hits({})) seen.push(_id);
    })(),
  );
  expect(failed?.code).toBe(code as SundewError['code']);
  expect(seen).toHaveLength(100);
});
