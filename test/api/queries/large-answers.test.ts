import { describe, expect, test } from 'bun:test';
import { limits } from '../../../src/config/limits.ts';
import { rawJson } from '../../../src/http/listener/reply.ts';
import { defineRoute, type Route } from '../../../src/http/routing/route.ts';
import { MiB } from '../../../src/lib/units.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { testListener } from '../../support/test-listener.ts';
import { startTestServer } from '../../support/test-server.ts';

/** More than sockets take for a client that does not read. */
const answerBytes = 32 * MiB;
const bounds = { ...limits, answersInFlightBytesMax: answerBytes + MiB };
const json = JSON.stringify('é'.repeat(answerBytes / 2));

const described = { access: 'open', summary: 'Tests', tag: 'test', responses: { 200: { description: 'Ok' } } } as const;
const get = (path: string, handler: Route['handler']) =>
  defineRoute({ ...described, method: 'GET', path, handler }) as Route;
const large = get('/large', () => rawJson(200, json));
const small = get('/small', () => rawJson(200, '1'));

/** A client that asks, reads the first bytes of its answer, and no more. */
async function stalled(port: number, path: string): Promise<{ leave(): void }> {
  const begun = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(own) {
        own.pause();
        begun.resolve();
      },
    },
  });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: h\r\n\r\n`);
  await begun.promise;
  return { leave: () => socket.terminate() };
}

const textOf = async (url: string) => (await fetch(url)).text();

describe('large answers together are bounded', () => {
  test('one that does not fit waits for the others, and is whole; a small one never waits', async () => {
    await using server = testListener({ routes: [large, small], limits: bounds });
    const first = await stalled(server.port, '/large');
    const second = textOf(`${server.url}/large`);
    expect(await textOf(`${server.url}/small`)).toBe('1');
    await settle();
    first.leave();
    expect((await second) === json).toBe(true);
    expect((await textOf(`${server.url}/large`)) === json).toBe(true);
    await until(async () => server.app.inFlight.count === 0);
  });

  test('one that waits too long is answered 503 with a time to retry', async () => {
    const clock = new FakeClock();
    await using server = testListener({ routes: [large], limits: bounds, clock });
    const first = await stalled(server.port, '/large');
    const second = fetch(`${server.url}/large`);
    await until(async () => server.app.inFlight.count === 2);
    await clock.advance(limits.answerWaitMs);
    const answer = await second;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await answer.json()).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('ask again, or for less at a time'),
    });
    first.leave();
    await until(async () => server.app.inFlight.count === 0);
  });

  test('one alone is sent, however large it is', async () => {
    await using server = testListener({ routes: [large], limits: { ...limits, answersInFlightBytesMax: MiB } });
    expect((await textOf(`${server.url}/large`)) === json).toBe(true);
    expect((await textOf(`${server.url}/large`)) === json).toBe(true);
  });

  test('a client that leaves before its answer has begun holds nothing', async () => {
    const work = Promise.withResolvers<void>();
    const slow = get('/slow', async ({ caller }) => {
      await caller.holdAnswer(answerBytes);
      await work.promise;
      return rawJson(200, json);
    });
    await using server = testListener({ routes: [slow, large], limits: bounds });
    const left = new AbortController();
    const gone = fetch(`${server.url}/slow`, { signal: left.signal }).catch(() => 'gone');
    await until(async () => server.app.inFlight.count === 1);
    left.abort();
    expect(await gone).toBe('gone');
    await settle();
    work.resolve();
    await until(async () => server.app.inFlight.count === 0);
    expect((await textOf(`${server.url}/large`)) === json).toBe(true);
  });

  test('a handler that fails, an answer to HEAD, and one that became small hold nothing', async () => {
    const failing = get('/failing', async ({ caller }) => {
      await caller.holdAnswer(answerBytes);
      throw new Error('broken');
    });
    const shrunk = get('/shrunk', async ({ caller }) => {
      await caller.holdAnswer(answerBytes);
      return 1;
    });
    await using server = testListener({ routes: [large, failing, shrunk], limits: bounds });
    for (const [method, path] of [
      ['GET', '/failing'],
      ['HEAD', '/large'],
      ['GET', '/shrunk'],
    ] as const) {
      await (await fetch(`${server.url}${path}`, { method })).text();
      expect((await textOf(`${server.url}/large`)) === json).toBe(true);
    }
  });

  test('a handler that takes more after its request was given up gets nothing', async () => {
    const clock = new FakeClock();
    const work = Promise.withResolvers<void>();
    const refused = Promise.withResolvers<unknown>();
    const slow = get('/slow', async ({ caller }) => {
      await work.promise;
      try {
        await caller.holdAnswer(answerBytes);
      } catch (error) {
        refused.resolve(error);
      }
      return 1;
    });
    await using server = testListener({ routes: [slow, large], limits: bounds, clock });
    const answer = fetch(`${server.url}/slow`);
    await until(async () => server.app.inFlight.count === 1);
    await clock.advance(limits.requestDeadlineMs);
    expect((await answer).status).toBe(503);
    work.resolve();
    expect(await refused.promise).toMatchObject({ code: 'unavailable' });
    expect((await textOf(`${server.url}/large`)) === json).toBe(true);
  });

  test('a stop cuts answers that nobody reads short, and those that wait are answered', async () => {
    const clock = new FakeClock();
    await using server = testListener({ routes: [large], limits: bounds, clock });
    const first = await stalled(server.port, '/large');
    const second = fetch(`${server.url}/large`);
    await until(async () => server.app.inFlight.count === 2);
    server.app.inFlight.refuseNew();
    server.app.inFlight.expireAll();
    expect((await second).status).toBe(503);
    await until(async () => server.app.inFlight.count === 0);
    first.leave();
  });

  test('a program of the same process has its answer at once', async () => {
    await using server = testListener({ routes: [large], limits: bounds });
    const call = () => server.app.handle(new Request('http://h/large'));
    const kept = [await call(), await call()];
    expect(kept.map(({ status }) => status)).toEqual([200, 200]);
    expect((await kept[0]?.text()) === json).toBe(true);
  });
});

test('pages of large documents are whole, one beside the other and several in a request', async () => {
  await using server = await startTestServer({ file: 'limits:\n  answers_memory: 1MiB\n' });
  const blob = 'x'.repeat(100_000);
  await server.send('POST', '/db/v1/tables/notes', {});
  const inserts = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`k${at}`, { title: 'soup', at, blob }]));
  await server.send('POST', '/db/v1/tables/notes/batch', { inserts, sync_level: 'full_index' });
  const query = {
    table: 'notes',
    full_text_search: { match: 'soup', field: 'title' },
    order_by: [{ field: 'at' }],
    limit: 30,
  };
  type Results = { responses: { status: number; hits: { hits: { _source: { at: number; blob: string } }[] } }[] };
  const seen = ({ responses }: Results) =>
    responses.map(({ status, hits }) => [status, hits.hits.filter(({ _source }) => _source.blob === blob).length]);
  const asked = Array.from({ length: 4 }, () => server.send<Results>('POST', '/db/v1/query', query));
  for (const { body } of await Promise.all(asked)) expect(seen(body)).toEqual([[200, 30]]);
  const several = await server.send<Results>('POST', '/db/v1/query', [query, { ...query, limit: 1 }, query]);
  expect(seen(several.body)).toEqual([
    [200, 30],
    [200, 1],
    [200, 30],
  ]);
  const lines = await server.send<string>('POST', '/db/v1/query', [query, query], { accept: 'application/x-ndjson' });
  expect(lines.headers.get('content-type')).toBe('application/x-ndjson');
  const parsed = lines.body.trimEnd().split('\n');
  expect(seen({ responses: parsed.map((line) => JSON.parse(line)) })).toEqual([
    [200, 30],
    [200, 30],
  ]);
});
