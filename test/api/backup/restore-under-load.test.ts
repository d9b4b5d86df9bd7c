import { describe, expect, mock, spyOn, test } from 'bun:test';
import { RangePool } from '../../../src/indexing/range-pool.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { endOfRestore, restore } from '../../support/restore-jobs.ts';
import { hitKeys, type TestServer } from '../../support/test-server.ts';

const keys = Array.from({ length: 200 }, (_, n) => `${'0hqz'.charAt(n % 4)}${n}`);
/** Answers while one table takes the place of another: the request is sent again. */
const retryable = 503;

async function write(server: TestServer, generation: string): Promise<void> {
  const inserts = Object.fromEntries(keys.map((key) => [key, { generation }]));
  await server.send('POST', '/db/v1/tables/t/batch', { inserts, sync_level: 'full_text' });
}

/** Counts each generation by one query until it is told to stop; returns every pair of counts that an answer had. */
async function watch(server: TestServer, stop: AbortSignal): Promise<Set<string>> {
  const seen = new Set<string>();
  while (!stop.aborted) {
    // Without a port nothing else gives the jobs of the process their turn.
    await new Promise((resolve) => setImmediate(resolve));
    const { status, body } = await server.send('POST', '/db/v1/query', {
      table: 't',
      filter_query: { match_all: {} },
      limit: 1_000,
      fields: ['generation'],
    });
    if (status === retryable) continue;
    const [answer] = (body as { responses: { hits: { hits: { _source: { generation: string } }[] } }[] }).responses;
    const generations = answer?.hits.hits.map(({ _source }) => _source.generation) ?? [];
    const of = (word: string) => generations.filter((each) => each === word).length;
    seen.add(`${status}: ${of('first')} of the first, ${of('second')} of the second`);
  }
  return seen;
}

describe('a table that is restored over while it is read', () => {
  test('is the old one or the new one in every answer, never empty and never a mixture', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/t', { num_shards: 3 });
    await write(server, 'first');
    await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
    await write(server, 'second');
    const stop = new AbortController();
    const watching = [1, 2, 3].map(() => watch(server, stop.signal));
    const body = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    const asked = await server.send<{ job_id: string }>('POST', '/db/v1/restore', body);
    expect(await endOfRestore(server, asked.body.job_id)).toMatchObject({ phase: 'succeeded' });
    stop.abort();
    const seen = new Set((await Promise.all(watching)).flatMap((each) => [...each]));
    const allowed = ['200: 200 of the first, 0 of the second', '200: 0 of the first, 200 of the second'];
    expect([...seen].filter((each) => !allowed.includes(each))).toEqual([]);
    const found = await server.send('POST', '/db/v1/query', {
      table: 't',
      full_text_search: { query: 'first' },
      limit: 500,
    });
    expect(hitKeys(found)).toHaveLength(keys.length);
  });

  test('is named by the lists of tables and ranges while it is replaced', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/other');
    await server.send('POST', '/db/v1/tables/t');
    await write(server, 'first');
    await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location, table_names: ['t'] });
    const { discard } = RangePool.prototype;
    const told: unknown[] = [];
    spyOn(RangePool.prototype, 'discard').mockImplementation(async function (this: RangePool, rangeId) {
      const head = await discard.call(this, rangeId);
      for (const path of ['tables/t', 'tables', 'cluster']) {
        const { status, body } = await server.send<unknown>('GET', `/db/v1/${path}`);
        told.push([status, JSON.stringify(body)]);
      }
      return head;
    });
    try {
      const body = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
      expect(await restore(server, body)).toMatchObject({ phase: 'succeeded' });
    } finally {
      mock.restore();
    }
    expect(told).toEqual([
      [retryable, expect.stringContaining('is being replaced by a restore')],
      [200, expect.stringMatching(/"name":"other".*"name":"t"/)],
      [200, expect.stringMatching(/"t"/)],
    ]);
  });
});
