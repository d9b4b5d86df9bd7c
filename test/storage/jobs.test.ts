import { expect, setDefaultTimeout, test } from 'bun:test';
import { failure, openTestStorage, temporaryDirectory } from './storage-fixture.ts';

setDefaultTimeout(120_000);

const job = { kind: 'backup', principal: 'ann', idempotencyKey: 'k', requestHash: 'h', state: '{}', createdMs: 5 };

test('jobs are kept over a restart, with where they stand', async () => {
  using directory = temporaryDirectory();
  let storage = await openTestStorage(directory.path);
  const { jobId } = await storage.jobs.add(job);
  const other = await storage.jobs.add({ ...job, idempotencyKey: 'other' });
  expect(await storage.jobs.change({ jobId, phase: 'running', attempt: 1, state: '{"at":3}', updatedMs: 6 })).toBe(
    true,
  );
  await storage.close();
  storage = await openTestStorage(directory.path);
  expect(storage.jobs.unfinished().map((each) => each.jobId)).toEqual([jobId, other.jobId]);
  expect(storage.jobs.get(jobId)).toEqual({
    ...job,
    jobId,
    phase: 'running',
    attempt: 1,
    state: '{"at":3}',
    updatedMs: 6,
    expiresMs: null,
  });
  await storage.jobs.change({ jobId, phase: 'succeeded', updatedMs: 7, expiresMs: 10 });
  expect(storage.jobs.unfinished().map((each) => each.jobId)).toEqual([other.jobId]);
  expect(await storage.jobs.change({ jobId, phase: 'cancelled', updatedMs: 7, expiresMs: 20 })).toBe(false);
  expect(await storage.jobs.change({ jobId, state: '{"at":4}', updatedMs: 8 })).toBe(true);
  await storage.jobs.removeExpired(9);
  expect(storage.jobs.get(jobId)).toMatchObject({ phase: 'succeeded', state: '{"at":4}' });
  await storage.jobs.removeExpired(10);
  expect(storage.jobs.get(jobId)).toBeUndefined();
  expect(await storage.jobs.change({ jobId, updatedMs: 8 })).toBe(false);
  await storage.close();
});

test('a repeated request is the same job; its key with another body is a conflict', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const first = await storage.jobs.add(job);
  expect(await storage.jobs.add({ ...job, state: '{"later":true}' })).toEqual(first);
  const conflict = await failure(storage.jobs.add({ ...job, requestHash: 'other' }));
  expect(conflict).toMatchObject({ code: 'idempotency_conflict' });
  const ids = [
    (await storage.jobs.add({ ...job, principal: 'bob' })).jobId,
    (await storage.jobs.add({ ...job, kind: 'restore' })).jobId,
    (await storage.jobs.add({ ...job, idempotencyKey: null })).jobId,
    (await storage.jobs.add({ ...job, idempotencyKey: null })).jobId,
  ];
  expect(new Set([first.jobId, ...ids]).size).toBe(5);
  await storage.close();
});
