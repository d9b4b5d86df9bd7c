import { afterAll, beforeEach, describe, expect, test } from 'bun:test';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { startTestServer } from '../../support/test-server.ts';

/** The clock stands still: nothing that was written becomes visible unless somebody waits for it. */
const clock = new FakeClock();
const server = await startTestServer({ clock });
afterAll(() => server[Symbol.asyncDispose]());

interface Result {
  hits: { total: { value: number; relation: string }; hits: { _id: string; _score: number }[]; max_score: number };
  aggregations?: { by: { buckets: { key: string; doc_count: number }[] }; n: { value: number } };
  partial?: boolean;
}

const batch = (body: object) => server.send('POST', '/db/v1/tables/t/batch', body);
const query = async (body: object) =>
  (await server.send<{ responses: [Result] }>('POST', '/db/v1/tables/t/query', body)).body.responses[0];
const aggregations = { by: { type: 'terms', field: 'kind' }, n: { type: 'sum', field: 'n' } };

beforeEach(async () => {
  await server.send('DELETE', '/db/v1/tables/t');
  await server.send('POST', '/db/v1/tables/t', { num_shards: 2 });
  const inserts = {
    best: { text: 'amber amber amber', kind: 'a', n: 1 },
    second: { text: 'amber and other words here', kind: 'a', n: 10 },
    third: { text: 'amber and other words here, in a text that is longer than the second one', kind: 'b', n: 100 },
  };
  expect((await batch({ inserts, sync_level: 'full_index' })).status).toBe(201);
});

describe('between a write and its index', () => {
  const amber = { full_text_search: { match: 'amber', field: 'text' } };

  test('a page without the deleted row has neither its score nor an exact total', async () => {
    const before = await query(amber);
    expect(before.hits.total).toEqual({ value: 3, relation: 'exact' });
    await batch({ deletes: ['best'] });
    const { hits, partial } = await query(amber);
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['second', 'third']);
    expect(hits.max_score).toBe(hits.hits[0]?._score ?? 0);
    expect(hits.total).toEqual({ value: 2, relation: 'gte' });
    expect(partial).toBeUndefined();
  });

  test('aggregations agree with the page, for a row that is gone and for one that has changed', async () => {
    await batch({ deletes: ['best'] });
    const gone = await query({ ...amber, aggregations });
    expect(gone.hits.hits.map(({ _id }) => _id)).toEqual(['second', 'third']);
    expect(gone.hits.total).toEqual({ value: 2, relation: 'exact' });
    expect(gone.aggregations?.n.value).toBe(110);
    await batch({ inserts: { second: { text: 'amber', kind: 'b', n: 20 } } });
    const changed = await query({ ...amber, aggregations });
    expect(changed.aggregations?.by.buckets).toMatchObject([{ key: 'b', doc_count: 2 }]);
    expect(changed.aggregations?.n.value).toBe(120);
  });

  test('a count is exact, and of everything that was written before it', async () => {
    await batch({ deletes: ['best', 'third'] });
    const { hits } = await query({ count: true });
    expect(hits.total).toEqual({ value: 1, relation: 'exact' });
  });

  test.each([{}, { aggregations }])('a page is full however many hits before it are gone, with %j', async (more) => {
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`gone${n}`, { text: 'soup', kind: 'a', n }]),
    );
    await batch({ inserts: { ...many, last: { text: 'soup', kind: 'a', n: 300 } }, sync_level: 'full_text' });
    await batch({ deletes: Object.keys(many) });
    const soup = { full_text_search: { match: 'soup', field: 'text' }, order_by: [{ field: 'n' }], limit: 1 };
    const { hits, partial } = await query({ ...soup, ...more });
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['last']);
    expect(hits.total).toEqual({ value: 1, relation: 'exact' });
    expect(partial).toBeUndefined();
  });

  test('an offset counts no hits that have gone', async () => {
    await batch({ deletes: ['best'] });
    const { hits, partial } = await query({ ...amber, offset: 1 });
    expect(hits.hits.map(({ _id }) => _id)).toEqual(['third']);
    expect(hits.total).toEqual({ value: 2, relation: 'exact' });
    expect(partial).toBeUndefined();
  });

  test('a page that cannot see new rows yet claims no exact total', async () => {
    await batch({ inserts: { fourth: { text: 'amber', kind: 'c' } } });
    expect((await query(amber)).hits.total).toEqual({ value: 3, relation: 'gte' });
    expect((await query({ ...amber, wait_for_index_ms: 0 })).hits.total).toEqual({ value: 3, relation: 'gte' });
    const waited = await query({ ...amber, wait_for_index_ms: 10_000 });
    expect(waited.hits.total).toEqual({ value: 4, relation: 'exact' });
    expect(waited.hits.hits).toHaveLength(4);
  });

  test.each([-1, 60_001, 1.5, 'soon'])('wait_for_index_ms may not be %p', async (wait) => {
    const answer = await server.send('POST', '/db/v1/tables/t/query', { wait_for_index_ms: wait });
    expect(answer.body).toMatchObject({ code: 'invalid_query', message: expect.stringContaining('wait_for_index_ms') });
  });

  test('the index says that it is not complete, and everything it says agrees', async () => {
    const status = async () =>
      (await server.send<{ status: Record<string, unknown> }>('GET', '/db/v1/tables/t/indexes/full_text_index_v0')).body
        .status;
    await until(async () => (await status()).runtime_fresh === true);
    await batch({ inserts: { fourth: { text: 'amber' } } });
    expect(await status()).toMatchObject({
      readiness: { state: 'queryable_partial', queryable: true, complete: false },
      milestones: { queryable: { reached: true, blockers: [] }, complete: { reached: false } },
      runtime_fresh: false,
      runtime_freshness: 'stale',
      replay_catch_up_required: true,
      backfill_active: true,
      backfill_state: 'running',
      async_indexing: { pending_entries: 1, phase: 'replay' },
    });
    const { milestones, target_revision, published_revision } = await status();
    expect(milestones).toMatchObject({ complete: { blockers: expect.arrayContaining(['replay']) } });
    expect(published_revision).toBe(Number(target_revision) - 1);
    await until(async () => {
      await clock.advance(200);
      return (await status()).runtime_fresh === true;
    });
    expect(await status()).toMatchObject({
      readiness: { state: 'ready', complete: true, pending_reasons: [] },
      runtime_fresh: true,
      backfill_active: false,
      backfill_progress: 1,
      async_indexing: { pending_entries: 0, phase: 'idle' },
    });
  });
});
