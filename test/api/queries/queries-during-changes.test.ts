import { expect, spyOn, test } from 'bun:test';
import { nativeAddon } from '../../../src/engine/native-addon.ts';
import { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { until } from '../../support/fault/until.ts';
import { hitKeys, startTestServer } from '../../support/test-server.ts';

test('a query whose index is replaced before the engine has it is answered by the one that serves now', async () => {
  await using server = await startTestServer();
  const path = '/db/v1/tables/t';
  await server.send('POST', path, {});
  await server.send('POST', `${path}/batch`, { inserts: { a: { title: 'soup' } }, sync_level: 'full_text' });
  let version = 0;
  const replaceIndex = async () => {
    const field = { type: 'string', 'x-service-types': ['text'] };
    const properties = { title: field, [`more${version}`]: field };
    await server.send('PUT', `${path}/schema`, { document_schemas: { doc: { schema: { properties } } } });
    await until(async () => !('migration' in (await server.send('GET', path)).body));
    // Its files go when it is closed.
    const left = new Bun.Glob(`ranges/*/*/indexes/full_text_index_v${version}@*`);
    await until(async () => [...left.scanSync({ cwd: server.directory, onlyFiles: false })].length === 0);
    version += 1;
  };
  const addon = nativeAddon() as { query: (...parts: unknown[]) => unknown };
  const { query } = addon;
  const timesMs: number[] = [];
  addon.query = (...parts) => {
    timesMs.push((JSON.parse(String(parts[2])) as { timeout_ms: number }).timeout_ms);
    return timesMs.length > 1 ? query(...parts) : replaceIndex().then(() => query(...parts));
  };
  try {
    const request = { full_text_search: { query: 'soup' }, timeout_ms: 25_000 };
    const answer = await server.send('POST', `${path}/query`, request);
    expect([answer.status, hitKeys(answer), timesMs.length]).toEqual([200, ['a'], 2]);
    // The second attempt has what the first has left.
    expect(timesMs[1]).toBeLessThan(timesMs[0] ?? 0);
    // One whose every attempt meets a change may be sent again.
    addon.query = (...parts) => replaceIndex().then(() => query(...parts));
    const refused = await server.send('POST', `${path}/query`, request);
    expect([refused.status, refused.body.code]).toEqual([503, 'unavailable']);
  } finally {
    addon.query = query;
  }
});

test('a failure at the right side of a join is looked for in the indexes of that side alone', async () => {
  await using server = await startTestServer();
  const schema = { document_schemas: { row: { schema: { properties: { of: { type: 'integer' } } } } } };
  const rows = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`r${at}`, { of: at }]));
  for (const [table, inserts] of Object.entries({ left: { l: { of: 7 } }, right: rows })) {
    await server.send('POST', `/db/v1/tables/${table}`, { schema });
    await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level: 'full_text' });
  }
  const addon = nativeAddon() as { query: (...parts: unknown[]) => unknown };
  const { query } = addon;
  const looked: number[] = [];
  using searchFailed = spyOn(IndexedRange.prototype, 'searchFailed');
  searchFailed.mockImplementation(async function (this: IndexedRange) {
    looked.push(this.rangeId);
    return true;
  });
  addon.query = (...parts) => {
    if (!String(parts[2]).includes('"value":7')) return query(...parts);
    throw Object.assign(new Error('provoked'), { code: 'engine_panic' });
  };
  try {
    const join = { right_table: 'right', on: { left_field: 'of', right_field: 'of' }, strategy_hint: 'index_lookup' };
    const answer = await server.send('POST', '/db/v1/tables/left/query', { join });
    expect(answer).toMatchObject({ status: 500, body: { code: 'engine_panic' } });
    expect(looked.length).toBeGreaterThan(0);
    expect(new Set(looked).size).toBe(1);
  } finally {
    addon.query = query;
  }
});

test('what a text index will compare by words is refused while it is built again, waited for, and answered when it is ready', async () => {
  await using server = await startTestServer();
  const path = '/db/v1/tables/again';
  const index = `${path}/indexes/full_text_index_v0`;
  await server.send('POST', path, { indexes: { v: { type: 'embeddings', external: true, dimension: 2 } } });
  const document = { t: 'leek soup', n: 1, _embeddings: { v: [1, 0] } };
  await server.send('POST', `${path}/batch`, { inserts: { a: document }, sync_level: 'full_index' });
  const ask = (request: object) => server.send('POST', `${path}/query`, request);
  const byWords = { filter_query: { match: { field: 't', text: 'soup' } } };
  const keysOf = async (request: object) => hitKeys(await ask(request));
  await server.send('DELETE', index);
  // By then an index of whole values serves.
  await until(async () => (await keysOf(byWords)).length === 0);
  const nearest = { embeddings: { v: [1, 0] } };
  expect(await keysOf({ ...byWords, ...nearest })).toEqual([]);
  const addon = nativeAddon() as { applyFrame: (...parts: unknown[]) => unknown };
  const { applyFrame } = addon;
  const built = Promise.withResolvers<void>();
  addon.applyFrame = (...parts) => built.promise.then(() => applyFrame(...parts));
  try {
    expect((await server.send('POST', index, { type: 'full_text' })).status).toBe(201);
    const search = { full_text_search: { query: 't:soup' } };
    const inTime = { ...byWords, wait_for_index_ms: 60_000, timeout_ms: 20 };
    const short = { ...byWords, wait_for_index_ms: 1 };
    for (const request of [byWords, search, short, inTime, { ...byWords, ...nearest }]) {
      expect(await ask(request)).toMatchObject({ status: 503, body: { code: 'unavailable', retryable: true } });
    }
    // A query without words waits for none.
    for (const waits of [{}, { wait_for_index_ms: 60_000 }]) {
      const byValues = { filter_query: { term: { t: 'leek soup' } }, order_by: [{ field: 'n' }], ...waits };
      expect(await keysOf(byValues)).toEqual(['a']);
    }
    expect(await keysOf({ ...nearest, wait_for_index_ms: 60_000 })).toEqual(['a']);
    const details = (await server.send<{ status: object }>('GET', index)).body.status;
    expect(details).toMatchObject({ readiness: { state: 'pending', queryable: false, complete: false } });
    const waiting = [byWords, search].map((request) => keysOf({ ...request, wait_for_index_ms: 30_000 }));
    built.resolve();
    expect(await Promise.all(waiting)).toEqual([['a'], ['a']]);
    expect(await keysOf(byWords)).toEqual(['a']);
  } finally {
    built.resolve();
    addon.applyFrame = applyFrame;
  }
});

test('a sorted page shows what is stored before the index does, in that order, and goes on where it would have', async () => {
  await using server = await startTestServer();
  const path = '/db/v1/tables/sorted';
  await server.send('POST', path, {});
  const write = (documents: Record<string, number>, more: object) =>
    server.send('POST', `${path}/batch`, {
      inserts: Object.fromEntries(Object.entries(documents).map(([key, n]) => [key, { n }])),
      ...more,
    });
  const page = async (request: object) => {
    const { body } = await server.send<Responses>('POST', `${path}/query`, { order_by: [{ field: 'n' }], ...request });
    return body.responses[0]?.hits.hits ?? [];
  };
  await write({ a: 1, b: 2, c: 3, d: 4, e: 5 }, { sync_level: 'full_text' });
  // Held back until the end: no index shows the writes that follow.
  const addon = nativeAddon() as { applyFrame: (...parts: unknown[]) => unknown };
  const { applyFrame } = addon;
  const shown = Promise.withResolvers<void>();
  addon.applyFrame = (...parts) => shown.promise.then(() => applyFrame(...parts));
  try {
    await write({ a: 9, d: 0 }, { sync_level: 'write' });
    const first = await page({ limit: 3 });
    expect(first.map((hit) => [hit._id, hit._source.n, hit._sort[0]])).toEqual([
      ['b', 2, 2],
      ['c', 3, 3],
      ['a', 9, 9],
    ]);
    const next = await page({ limit: 3, search_after: first.at(-1)?._sort });
    expect(next.map((hit) => [hit._id, hit._sort[0]])).toEqual([
      ['d', 0],
      ['e', 5],
    ]);
    const back = await page({ limit: 3, search_before: next[0]?._sort });
    expect(back.map((hit) => hit._id)).toEqual(['b', 'c', 'a']);
  } finally {
    addon.applyFrame = applyFrame;
    shown.resolve();
  }
});

interface Responses {
  responses: { hits: { hits: { _id: string; _source: { n: number }; _sort: unknown[] }[] } }[];
}
