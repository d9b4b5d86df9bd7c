import { afterAll, beforeAll, expect, test } from 'bun:test';
import { nativeAddon } from '../../../src/engine/native-addon.ts';
import { NativeIndex } from '../../../src/engine/native-index.ts';
import { queryIndexes } from '../../../src/engine/native-query.ts';
import { FrameBuilder, rowKind } from '../../../src/lib/document-frame.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Result {
  hits: { total: { value: number; relation: string }; hits: { _id: string; _source: Record<string, unknown> }[] };
  partial?: boolean;
}

let server: TestServer;

async function ask(table: string, request: object): Promise<Result> {
  const answer = await server.send<{ responses: Result[] }>('POST', `/db/v1/tables/${table}/query`, request);
  expect(answer).toMatchObject({ status: 200 });
  const [result] = answer.body.responses;
  if (!result) throw new Error('no result');
  return result;
}

async function insert(table: string, inserts: Record<string, unknown>): Promise<void> {
  const answer = await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level: 'full_text' });
  expect(answer.status).toBe(201);
}

beforeAll(async () => {
  server = await startTestServer();
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** An index in memory whose documents share one word. */
async function largeIndex(documents: number): Promise<NativeIndex> {
  const options = {
    kind: 'full_text',
    name: 'large',
    incarnation: 1,
    partId: 1,
    memOnly: true,
    schema: undefined,
  } as const;
  const index = await NativeIndex.open('unused', options, false);
  const builder = new FrameBuilder();
  for (let at = 0; at < documents; at += 1) {
    const body = new TextEncoder().encode(JSON.stringify({ text: `fox w${at} v${at % 997}`, n: at }));
    builder.setOrdinal(builder.append(rowKind.put, `k${at}`, body), at);
  }
  await index.apply(builder.finish());
  await index.commit(documents);
  return index;
}

function planOf(members: object): string {
  return JSON.stringify({ query: { kind: 'match', text: 'fox' }, limit: 10, exact_total: true, ...members });
}

test('a query stops inside the engine when its caller is gone, and in part when its time is over', async () => {
  const index = await largeIndex(20_000);
  const gone = new AbortController();
  const slow = { kind: 'wildcard', pattern: '*7*' };
  const shoulds = Array.from({ length: 200 }, () => slow);
  const plan = planOf({ query: { kind: 'bool', should: shoulds, min_should: 1 }, sort: [{ field: 'n' }] });
  const running = queryIndexes([index.handle], plan, gone);
  gone.abort();
  await expect(running).rejects.toMatchObject({ code: 'query_timeout' });
  const short = JSON.stringify({ ...JSON.parse(plan), timeout_ms: 1, allows_partial: true });
  const hits = await queryIndexes([index.handle], short, new AbortController());
  expect([hits.isPartial, hits.totalIsExact]).toEqual([true, false]);
  const strict = JSON.stringify({ ...JSON.parse(plan), timeout_ms: 1 });
  const failing = queryIndexes([index.handle], strict, new AbortController());
  await expect(failing).rejects.toMatchObject({ code: 'query_timeout' });
  await index.close();
});

test('a request whose client has gone ends its native call', async () => {
  await server.send('POST', '/db/v1/tables/gone', {});
  await insert('gone', { a: { t: 'soup' } });
  const addon = nativeAddon();
  const { query, cancel } = addon;
  const started = Promise.withResolvers<number>();
  const cancelled = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<void>();
  // Holds the answer back until the caller has gone, as a long query would.
  addon.query = async (handles, vectorHandles, plan, vectors, operation, isAlone) => {
    started.resolve(operation);
    await cancelled.promise;
    ended.resolve();
    return query(handles, vectorHandles, plan, vectors, operation, isAlone);
  };
  addon.cancel = (operation) => {
    cancelled.resolve(operation);
    cancel(operation);
  };
  try {
    const leaving = new AbortController();
    const url = `${server.url}/db/v1/tables/gone/query`;
    const request = fetch(url, { method: 'POST', body: '{}', signal: leaving.signal });
    const operation = await started.promise;
    leaving.abort();
    await expect(request).rejects.toMatchObject({ name: 'AbortError' });
    expect(await cancelled.promise).toBe(operation);
    await ended.promise;
  } finally {
    Object.assign(addon, { query, cancel });
  }
  expect((await ask('gone', { count: true })).hits.total).toEqual({ value: 1, relation: 'exact' });
});

test('a page of ten thousand hits lets the event loop run', async () => {
  await server.send('POST', '/db/v1/tables/wide', { num_shards: 2 });
  const text = 'soup '.repeat(100);
  for (let start = 0; start < 10_000; start += 2_500) {
    const batch = Array.from({ length: 2_500 }, (_, at) => [
      `${at % 2 === 0 ? 'b' : 't'}${start + at}`,
      { n: start + at, text },
    ]);
    await insert('wide', Object.fromEntries(batch));
  }
  const running = { query: true };
  let turns = 0;
  const turn = () => {
    turns += 1;
    if (running.query) setImmediate(turn);
  };
  setImmediate(turn);
  const result = await ask('wide', { order_by: [{ field: 'n' }], limit: 10_000 });
  running.query = false;
  expect(result.hits.hits).toHaveLength(10_000);
  // 79 slices are rendered and 40 are read; other work comes in between each two.
  expect(turns).toBeGreaterThan(100);
});

test('pages are whole, and show only what matches, while documents are written', async () => {
  await server.send('POST', '/db/v1/tables/busy', { num_shards: 2 });
  const stable = Object.fromEntries(
    Array.from({ length: 60 }, (_, at) => [`${at % 2 === 0 ? 'b' : 't'}s${at}`, { kind: 'soup', rank: 100 + at }]),
  );
  const moving = Array.from({ length: 40 }, (_, at) => `${at % 2 === 0 ? 'b' : 't'}m${at}`);
  await insert('busy', stable);
  const writing = { goesOn: true };
  const writer = async () => {
    for (let round = 0; writing.goesOn; round += 1) {
      const kind = round % 2 === 0 ? 'stew' : 'soup';
      const inserts = Object.fromEntries(moving.map((key, at) => [key, { kind, rank: at }]));
      await server.send('POST', '/db/v1/tables/busy/batch', { inserts, sync_level: 'write' });
    }
  };
  const writers = writer();
  for (let round = 0; round < 150; round += 1) {
    const request = { full_text_search: { query: 'kind:soup' }, order_by: [{ field: 'rank' }], limit: 50 };
    const { hits } = await ask('busy', request);
    expect(hits.hits).toHaveLength(50);
    expect(new Set(hits.hits.map((hit) => hit._id)).size).toBe(50);
    for (const { _source } of hits.hits) expect(_source.kind).toBe('soup');
  }
  writing.goesOn = false;
  await writers;
});

test('a field that no index can have is refused, in every kind of node', async () => {
  await server.send('POST', '/db/v1/tables/unnamed', {});
  await insert('unnamed', { a: { n: 1, t: 'one' } });
  const field = 'n\u0000';
  const nodes = [
    { field, min: 0 },
    { field, min: 'a', max: 'z' },
    { field, start: '2020-01-01' },
    { term: 1, field },
    { match: 'one', field },
    { exists: { field } },
  ];
  for (const filter_query of nodes) {
    const answer = await server.send('POST', '/db/v1/tables/unnamed/query', { filter_query });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
  }
  // A query string reads no name with the character in it, but a word.
  expect((await ask('unnamed', { filter_query: { query: `${field}:>0` } })).hits.total.value).toBe(0);
});
