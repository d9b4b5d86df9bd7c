import { expect, test } from 'bun:test';
import { PublishSchedule } from '../../../src/indexing/applier/publish-schedule.ts';

const bounds = {
  visibilityMs: 200,
  busyVisibilityMs: 2_000,
  visibilityBytes: 800,
  checkpointMs: 30_000,
  checkpointBytes: 10_000,
};

test('a commit is due when somebody waits, after the delay, or when many bytes wait', () => {
  const schedule = new PublishSchedule(bounds);
  expect([schedule.isCommitDue(0, true, true), schedule.restMs(0)]).toEqual([false, undefined]);
  schedule.applied(10, 1_000);
  expect(schedule.isCommitDue(1_000, true, true)).toBe(true);
  expect(schedule.isCommitDue(1_199, true, false)).toBe(false);
  expect(schedule.isCommitDue(1_200, true, false)).toBe(true);
  expect(schedule.isCommitDue(1_000, false, true)).toBe(false);
  schedule.applied(90, 1_000);
  expect(schedule.isCommitDue(1_000, false, true)).toBe(true);
  expect(schedule.isCommitDue(1_000, false, false)).toBe(false);
  schedule.applied(700, 1_000);
  expect(schedule.isCommitDue(1_000, false, false)).toBe(true);
});

test('while rows keep coming, commits that nobody waits for take a tenth of the time, up to a bound', () => {
  const schedule = new PublishSchedule(bounds);
  schedule.committed(100);
  schedule.applied(1, 0);
  expect([schedule.isCommitDue(999, false, false), schedule.isCommitDue(1_000, false, false)]).toEqual([false, true]);
  expect(schedule.isCommitDue(200, true, false)).toBe(true);
  schedule.committed(1_000);
  schedule.applied(1, 0);
  expect([schedule.isCommitDue(1_999, false, false), schedule.isCommitDue(2_000, false, false)]).toEqual([false, true]);
});

test('rows that a checkpoint came too early for are kept by the next one', () => {
  const schedule = new PublishSchedule(bounds);
  schedule.applied(10, 0);
  schedule.committed(1);
  schedule.applied(10, 20_000);
  expect(schedule.isCheckpointDue(30_000)).toBe(true);
  schedule.checkpointed();
  expect([schedule.hasUndurable, schedule.isCheckpointDue(30_000)]).toEqual([true, false]);
  schedule.committed(1);
  expect(schedule.restMs(40_000)).toBe(10_000);
  expect(schedule.isCheckpointDue(50_000)).toBe(true);
  schedule.checkpointed();
  expect([schedule.hasUndurable, schedule.restMs(50_000)]).toEqual([false, undefined]);
});
