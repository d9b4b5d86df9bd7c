import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../support/fault/until.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

interface Details {
  config: { name: string };
  status: { readiness: { state: string; incarnation: string; complete: boolean }; doc_count: number };
  shard_status: Record<string, { doc_count: number }>;
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', { num_shards: 2 });
  await server.send('POST', '/db/v1/tables/t/batch', {
    inserts: { a: { n: 1 }, z: { n: 2 } },
    sync_level: 'full_text',
  });
});
afterAll(() => server[Symbol.asyncDispose]());

const details = async (index: string) => (await server.send<Details>('GET', `/db/v1/tables/t/indexes/${index}`)).body;

describe('indexes', () => {
  test('the primary one is there, ready, and counts over its ranges', async () => {
    const { body } = await server.send<Details[]>('GET', '/db/v1/tables/t/indexes');
    expect(body.map(({ config }) => config.name)).toContain('full_text_index_v0');
    const primary = await details('full_text_index_v0');
    expect(primary.status.readiness).toMatchObject({ state: 'ready', complete: true });
    expect(primary.status.doc_count).toBe(2);
    expect(Object.values(primary.shard_status).map((shard) => shard.doc_count)).toEqual([1, 1]);
  });

  test('status has every field of the interface', async () => {
    const { status } = await details('full_text_index_v0');
    const names = `index_type readiness incarnation target_revision published_revision milestones error total_indexed
      disk_usage rebuilding repair backfill_active backfill_progress backfill_items_processed backfill_state doc_count
      term_count replay_applied_sequence replay_target_sequence catch_up_applied_sequence catch_up_target_sequence
      projection_checkpoint_applied_sequence projection_checkpoint_generation checkpoint_replay_tail_sequence_count
      repair_scan_issue_count edge_count node_count repair_issue_count expected_groups reported_groups fresh_groups
      stale_groups missing_groups unknown_remote_groups replay_catch_up_required runtime_present runtime_fresh
      catch_up_active repair_degraded repair_summary_ready repair_issue_count_estimated runtime_source
      runtime_freshness catch_up_phase projection_checkpoint_status projection_checkpoint_config_fingerprint text_merge
      async_indexing resolution promotion`.split(/\s+/);
    expect(Object.keys(status).sort()).toEqual(names.sort());
  });

  test('an added one indexes what is there already; dropped and created again it is another incarnation', async () => {
    const create = () => server.send('POST', '/db/v1/tables/t/indexes/extra', { type: 'full_text', mem_only: true });
    const created = await create();
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({ name: 'extra', description: '', version: 0, enrichments: [] });
    expect((await create()).status).toBe(200);
    const other = await server.send('POST', '/db/v1/tables/t/indexes/extra', { type: 'full_text' });
    expect(other.body).toMatchObject({ code: 'already_exists' });
    await until(async () => (await details('extra')).status.readiness.state === 'ready');
    const first = (await details('extra')).status;
    expect(first.doc_count).toBe(2);
    expect((await server.send('DELETE', '/db/v1/tables/t/indexes/extra')).status).toBe(204);
    expect((await server.send('GET', '/db/v1/tables/t/indexes/extra')).body).toMatchObject({ code: 'index_not_found' });
    await create();
    expect((await details('extra')).status.readiness.incarnation).not.toBe(first.readiness.incarnation);
  });

  test.each([
    ['g', { type: 'graph' }, 'not_implemented'],
    ['x', { type: 'fulltext' }, 'invalid_request'],
    ['x', { type: 'full_text', mem_olny: true }, 'invalid_request'],
    ['x', { type: 'full_text', name: 'y' }, 'invalid_request'],
    ['full_text_index_v9', { type: 'full_text' }, 'invalid_name'],
    ['_x', { type: 'full_text' }, 'invalid_name'],
  ])('refuses %s %j', async (name, config, code) => {
    const answer = await server.send('POST', `/db/v1/tables/t/indexes/${name}`, config);
    expect(answer.body).toMatchObject({ code });
  });

  test('the primary one cannot be dropped', async () => {
    const answer = await server.send('DELETE', '/db/v1/tables/t/indexes/full_text_index_v0');
    expect(answer.body).toMatchObject({ code: 'index_in_use' });
  });
});

test('after a clean stop everything is there, and a memory-only index is built again', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sundew-restart-'));
  try {
    {
      await using first = await startTestServer({ directory });
      await first.send('POST', '/db/v1/tables/t', { indexes: { ram: { type: 'full_text', mem_only: true } } });
      await first.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { s: 'dew' } }, sync_level: 'full_index' });
    }
    await using second = await startTestServer({ directory });
    const found = await second.send('POST', '/db/v1/query', { table: 't', full_text_search: { query: 's:dew' } });
    expect(found.body).toMatchObject({ responses: [{ hits: { total: { value: 1 } } }] });
    await until(
      async () =>
        (await second.send<Details>('GET', '/db/v1/tables/t/indexes/ram')).body.status.readiness.state === 'ready',
    );
    expect((await second.send<Details>('GET', '/db/v1/tables/t/indexes/ram')).body.status.doc_count).toBe(1);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
