import { describe, expect, test } from 'bun:test';
import { renderIndexDetails } from '../../../src/http/database/index-details.ts';
import { countsOfDocuments } from '../../../src/index-kinds/index-kind.ts';
import { progressOf, type RangeIndexReport, readinessOf } from '../../../src/indexing/index-report.ts';

const stats = {
  appliedSequence: 0,
  checkpointSequence: 0,
  docCount: 0,
  vectorCount: 0,
  termCount: 0,
  segmentCount: 0,
  diskBytes: 0,
  memoryBytes: 0,
};
const shown: RangeIndexReport = {
  rangeId: 1,
  head: 1_000_000,
  firstSequence: 1,
  documents: 0,
  state: 'live',
  rebuilding: false,
  applied: 1_000_000,
  published: 1_000_000,
  replayTarget: 0,
  hasReplayed: true,
  isWhole: true,
  checkpointed: 0,
  backfilledRows: 0,
  skippedCount: 0,
  queuedBytes: 0,
  error: undefined,
  stats,
};
const queued = { ...shown, published: 999_998, applied: 999_998 };
const uncommitted = { ...shown, published: 999_999 };

const cases: [what: string, reports: RangeIndexReport[], state: string, reasons: string[]][] = [
  ['everything is shown', [shown, shown], 'ready', []],
  ['rows of a live index wait to be read', [shown, queued], 'queryable_partial', ['replay']],
  ['rows wait for their commit', [uncommitted], 'queryable_partial', ['publication', 'replay']],
  ['it is being built', [{ ...queued, rebuilding: true, state: 'catching_up' }], 'queryable_partial', ['backfill']],
  ['it is not open', [{ ...queued, state: 'opening', stats: undefined }], 'pending', ['replay']],
  ['it has failed', [{ ...shown, state: 'failed', stats: undefined }], 'failed', ['load_failure']],
];

describe('an index of which', () => {
  test.each(cases)('%s', (_, reports, state, reasons) => {
    expect(readinessOf(reports, true)).toMatchObject({ state, complete: state === 'ready', reasons });
  });

  test('nobody is answered yet is not ready, though it is built', () => {
    const reasons = ['publication'];
    expect(readinessOf([shown], false)).toEqual({ state: 'pending', queryable: false, complete: false, reasons });
  });

  test.each(cases)('%s says the same in every member of its details', (_, ranges, state) => {
    const config = { name: 'i', type: 'full_text', description: '', version: 0, enrichments: [] };
    const { status } = renderIndexDetails({
      config,
      incarnation: '1',
      counts: countsOfDocuments,
      ranges,
      serves: true,
    });
    const complete = state === 'ready';
    expect(status).toMatchObject({
      readiness: { complete },
      milestones: { complete: { reached: complete } },
      runtime_fresh: complete,
      backfill_active: !complete && state !== 'failed',
      catch_up_active: !complete,
      async_indexing: { phase: complete ? 'idle' : 'replay' },
    });
    const isBehind = ranges.some(({ published, head }) => published < head);
    expect(status.replay_catch_up_required).toBe(isBehind);
    expect(status.async_indexing.pending_entries > 0).toBe(isBehind);
    expect(status.replay_applied_sequence < status.replay_target_sequence).toBe(isBehind);
    expect(status.backfill_progress < 1).toBe(!complete);
    expect(status.milestones.complete.blockers).toEqual(status.readiness.pending_reasons);
    expect(status.fresh_groups + status.stale_groups + status.missing_groups).toBe(ranges.length);
  });
});

test('progress is never 1 while anything is missing', () => {
  const span = 2 ** 53 - 2;
  expect(progressOf({ ...shown, head: span, published: span - 1 })).toBeLessThan(1);
  expect(progressOf({ ...shown, head: span, published: span })).toBe(1);
  expect(progressOf({ ...shown, head: 0, published: 0 })).toBe(1);
});
