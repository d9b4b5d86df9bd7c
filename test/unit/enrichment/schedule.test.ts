import { describe, expect, test } from 'bun:test';
import { BackfillLane } from '../../../src/enrichment/following/backfill-lane.ts';
import { backfillProgress, coveredThrough, nextWork } from '../../../src/enrichment/following/schedule.ts';

const cursor = { fingerprint: 'f', liveAfter: 20, backfillAfter: 5, backfillUntil: 15 };
const now = { head: 20, nowMs: 1_000, retryAtMs: undefined };

describe('what a follower does next', () => {
  test('is what was just written, then what is due again, then what was there before', () => {
    expect(nextWork(cursor, { ...now, head: 21, retryAtMs: 900 })).toBe('live');
    expect(nextWork(cursor, { ...now, retryAtMs: 1_000 })).toBe('retry');
    expect(nextWork(cursor, { ...now, retryAtMs: 1_001 })).toBe('backfill');
    expect(nextWork({ ...cursor, backfillAfter: 15 }, now)).toBeUndefined();
  });

  test('everything is covered only behind both cursors', () => {
    expect(coveredThrough(cursor)).toBe(5);
    expect(coveredThrough({ ...cursor, backfillAfter: 15 })).toBe(20);
  });

  test('the share of a backfill counts from the first sequence of the range', () => {
    expect(backfillProgress(cursor, 1)).toBeCloseTo(5 / 15);
    expect(backfillProgress({ ...cursor, backfillAfter: 15 }, 1)).toBe(1);
    expect(backfillProgress({ ...cursor, backfillAfter: 0, backfillUntil: 0 }, 1)).toBe(1);
  });
});

const staying = new AbortController().signal;

test('the lane of backfills lets a bounded number work at one time, in their order', async () => {
  const lane = new BackfillLane(2);
  const log: string[] = [];
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const all = gates.map((gate, at) =>
    lane.run(staying, async () => {
      log.push(`begins ${at}`);
      await gate.promise;
      if (at === 1) throw new Error('a batch that fails passes its place on');
    }),
  );
  const settled = Promise.allSettled(all);
  await Promise.resolve();
  expect(log).toEqual(['begins 0', 'begins 1']);
  gates[1]?.resolve();
  await all[1]?.catch(() => undefined);
  await Promise.resolve();
  expect(log).toEqual(['begins 0', 'begins 1', 'begins 2']);
  for (const gate of gates) gate.resolve();
  await settled;
  expect(log.at(-1)).toBe('begins 3');
});

test('a task that is called off before its turn gives up its place in the lane and never runs', async () => {
  const lane = new BackfillLane(1);
  const gate = Promise.withResolvers<void>();
  const working = lane.run(staying, () => gate.promise);
  const leaving = new AbortController();
  let began = false;
  const left = lane.run(leaving.signal, async () => {
    began = true;
  });
  const behind = lane.run(staying, async () => 'behind');
  leaving.abort(new Error('the range is being closed'));
  await expect(left).rejects.toThrow('being closed');
  await expect(lane.run(leaving.signal, async () => 'late')).rejects.toThrow('being closed');
  gate.resolve();
  await working;
  expect([await behind, began]).toEqual(['behind', false]);
  expect(await lane.run(staying, async () => 'free again')).toBe('free again');
});
