import { expect, test } from 'bun:test';
import type { JobOutcome } from '../../../src/jobs/job.ts';
import type { JobRecord } from '../../../src/storage/catalog/catalog-records.ts';
import { AlgorithmJob } from '../../../src/tables/graph/algorithm-job.ts';
import type { Table } from '../../../src/tables/table.ts';
import type { TableLookup } from '../../../src/tables/table-lookup.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('a job neither reads nor writes a table that has taken the name of the one that it was asked for', async () => {
  const tables: TableLookup = { get: () => ({ name: 'pages', id: 2 }) as Table, all: () => [] };
  const batches: string[] = [];
  const batch = async (table: string) => batches.push(table);
  const job = new AlgorithmJob({ tables, writes: { batch } as never, clock: new FakeClock() });
  const asked = { name: 'degree', writeField: 'degree' };
  const state = JSON.stringify({ table: 'pages', tableId: 1, index: 'g', asked, step: 'waiting', written: 0 });
  const [saved, outcomes]: [unknown[], JobOutcome[]] = [[], []];
  await job.run({
    record: { jobId: 1, state } as JobRecord,
    signal: new AbortController().signal,
    save: async (each) => void saved.push(each),
    failures: 0,
    endAs: (outcome) => void outcomes.push(outcome),
  });
  expect(outcomes).toEqual(['failed']);
  expect(saved).toEqual([expect.objectContaining({ code: 'table_not_found', step: 'waiting' })]);
  expect(batches).toEqual([]);
});
