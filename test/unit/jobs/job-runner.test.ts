import { describe, expect, test } from 'bun:test';
import type { RunningJob } from '../../../src/jobs/job.ts';
import { JobRunner, type JobStore } from '../../../src/jobs/job-runner.ts';
import { supervise } from '../../../src/lib/concurrency/supervise.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { memoryStore } from '../../support/memory-job-store.ts';

function startRunner(store: JobStore, work: (job: RunningJob) => Promise<void>) {
  const clock = new FakeClock();
  const failures: [attempt: number, message: string][] = [];
  const runner = new JobRunner({
    store,
    clock,
    keptMs: 3_600_000,
    onFailed: (_, attempt, error) => failures.push([attempt, (error as Error).message]),
  });
  runner.handle({ kind: 'count', run: work });
  const stopping = new AbortController();
  const ended = runner.run(stopping.signal);
  const stop = async () => {
    stopping.abort();
    await ended;
  };
  return { runner, clock, failures, stop };
}

const request = { kind: 'count', principal: 'ann', state: { done: 0 } };

describe('a job', () => {
  test('runs, succeeds, and is forgotten when its time is over', async () => {
    const { jobs, store } = memoryStore();
    const { runner, clock, stop } = startRunner(store, async ({ save }) => save({ done: 7 }));
    const { jobId } = await runner.submit(request);
    await settle();
    expect(runner.get(jobId)).toMatchObject({ phase: 'succeeded', attempt: 1, state: '{"done":7}' });
    await clock.advance(3_600_000);
    await runner.submit(request);
    await settle();
    expect(jobs.has(jobId)).toBe(false);
    await stop();
  });

  test('that throws is tried again, later each time, from what it has saved', async () => {
    const { store } = memoryStore();
    const begunWith: string[] = [];
    const { runner, clock, failures, stop } = startRunner(store, async ({ record, save }) => {
      begunWith.push(record.state);
      await save({ done: begunWith.length });
      if (begunWith.length < 4) throw new Error('no');
    });
    const { jobId } = await runner.submit(request);
    await settle();
    expect(begunWith).toEqual(['{"done":0}']);
    await clock.advance(1_000);
    await clock.advance(1_999);
    expect(begunWith).toHaveLength(2);
    await clock.advance(1);
    await clock.advance(4_000);
    expect(begunWith).toEqual(['{"done":0}', '{"done":1}', '{"done":2}', '{"done":3}']);
    expect(failures.map(([attempt]) => attempt)).toEqual([1, 2, 3]);
    expect(runner.get(jobId)).toMatchObject({ phase: 'succeeded', attempt: 4 });
    await stop();
  });

  test('is tried again at once when it is told to hurry', async () => {
    const { store } = memoryStore();
    let attempts = 0;
    const { runner, failures, stop } = startRunner(store, async () => {
      attempts += 1;
      if (attempts < 4) throw new Error('no');
    });
    const { jobId } = await runner.submit(request);
    await settle();
    runner.hurry(jobId);
    await settle();
    expect(attempts).toBe(2);
    runner.hurry(jobId + 1);
    await settle();
    expect(attempts).toBe(2);
    runner.hurry(jobId);
    await settle();
    runner.hurry(jobId);
    await settle();
    expect([attempts, failures.length, runner.get(jobId)?.phase]).toEqual([4, 3, 'succeeded']);
    await stop();
  });

  test('has failed after ten attempts', async () => {
    const { store } = memoryStore();
    const { runner, clock, failures, stop } = startRunner(store, () => Promise.reject(new Error('never')));
    const { jobId } = await runner.submit(request);
    await settle();
    await clock.advance(3_600_000 / 2);
    expect([failures.length, runner.get(jobId)?.phase]).toEqual([10, 'failed']);
    await stop();
  });

  test('waits as long as it takes for what may pass, and goes on', async () => {
    const { store } = memoryStore();
    let isFull = true;
    const { runner, clock, failures, stop } = startRunner(store, async () => {
      if (isFull) throw new ServiceError('insufficient_storage', 'the disk is full');
    });
    const { jobId } = await runner.submit(request);
    await settle();
    await clock.advance(3_600_000);
    expect([failures.length > 10, runner.get(jobId)?.phase]).toEqual([true, 'running']);
    isFull = false;
    await clock.advance(15_000);
    expect(runner.get(jobId)).toMatchObject({ phase: 'succeeded' });
    await stop();
  });

  test('that stops of the process have ended ten times has not failed for that', async () => {
    const { store } = memoryStore();
    const until = ({ signal }: RunningJob) =>
      new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    const first = startRunner(store, until);
    const { jobId } = await first.runner.submit(request);
    await settle();
    await first.stop();
    for (let stops = 1; stops < 10; stops += 1) {
      const next = startRunner(store, until);
      await settle();
      await next.stop();
    }
    const failed: number[] = [];
    const last = startRunner(store, async ({ failures }) => {
      failed.push(failures);
      if (failures === 0) throw new Error('no');
    });
    await settle();
    await last.clock.advance(1_000);
    expect([failed, store.get(jobId)?.phase, store.get(jobId)?.attempt]).toEqual([[0, 1], 'succeeded', 12]);
    await last.stop();
  });

  test('that was running when the process ended is taken up by the next one', async () => {
    const { store } = memoryStore();
    const first = startRunner(store, async ({ signal, save }) => {
      await save({ done: 3 });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    const { jobId } = await first.runner.submit(request);
    await settle();
    await first.stop();
    expect(store.get(jobId)).toMatchObject({ phase: 'running', state: '{"done":3}' });
    const seen: string[] = [];
    const second = startRunner(store, async ({ record }) => void seen.push(record.state));
    await settle();
    expect([seen, store.get(jobId)?.phase, store.get(jobId)?.attempt]).toEqual([['{"done":3}'], 'succeeded', 2]);
    await second.stop();
  });

  test('can be cancelled where it stands, and then stays so', async () => {
    const { store } = memoryStore();
    let aborted = false;
    const { runner, stop } = startRunner(store, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      aborted = true;
    });
    const { jobId } = await runner.submit(request);
    await settle();
    await runner.cancel(jobId);
    expect([aborted, runner.get(jobId)?.phase]).toEqual([true, 'cancelled']);
    await runner.cancel(jobId);
    await expect(runner.cancel(99)).rejects.toMatchObject({ code: 'job_not_found' });
    await stop();
    expect(runner.get(jobId)?.phase).toBe('cancelled');
  });

  test('that begins while it is cancelled is stopped, and stays cancelled', async () => {
    const { store } = memoryStore();
    const [release, noted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow: JobStore = {
      ...store,
      change: async (change) => {
        if (change.phase === 'cancelled') await noted.promise;
        return store.change(change);
      },
    };
    const stopped: number[] = [];
    const { runner, stop } = startRunner(slow, async ({ record: { jobId }, signal }) => {
      if (jobId <= 2) return release.promise;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      stopped.push(jobId);
    });
    for (let job = 0; job < 3; job += 1) await runner.submit(request);
    await settle();
    const cancelled = runner.cancel(3);
    release.resolve();
    await settle();
    expect(runner.get(3)?.phase).toBe('running');
    noted.resolve();
    await cancelled;
    expect([stopped, runner.get(3)?.phase]).toEqual([[3], 'cancelled']);
    await stop();
    expect(runner.get(3)?.phase).toBe('cancelled');
  });

  test('that ends while it is cancelled has ended as it did', async () => {
    const { store } = memoryStore();
    const noted = Promise.withResolvers<void>();
    const slow: JobStore = {
      ...store,
      change: async (change) => {
        if (change.phase === 'succeeded') await noted.promise;
        return store.change(change);
      },
    };
    const { runner, stop } = startRunner(slow, async () => {});
    const { jobId } = await runner.submit(request);
    await settle();
    const cancelled = runner.cancel(jobId);
    noted.resolve();
    await cancelled;
    expect(runner.get(jobId)?.phase).toBe('succeeded');
    await stop();
  });

  test('waits while two others run, and until there is somebody for its kind', async () => {
    const { store } = memoryStore();
    const release = Promise.withResolvers<void>();
    let running = 0;
    const { runner, stop } = startRunner(store, async () => {
      running += 1;
      await release.promise;
    });
    await runner.submit({ ...request, kind: 'nobody does this' });
    for (let job = 0; job < 3; job += 1) await runner.submit(request);
    await settle();
    expect(running).toBe(2);
    release.resolve();
    await settle();
    expect([running, store.unfinished().map(({ kind }) => kind)]).toEqual([3, ['nobody does this']]);
    await stop();
  });
});

describe('a supervised service', () => {
  test('that throws is run again after a pause that grows, until it is stopped', async () => {
    const clock = new FakeClock();
    const stopping = new AbortController();
    let runs = 0;
    const failures: [string, number][] = [];
    const run = async () => {
      runs += 1;
      throw new Error('broken');
    };
    const ended = supervise(
      { name: 'sweeper', run },
      { clock, signal: stopping.signal, onFailed: (name, _, attempt) => void failures.push([name, attempt]) },
    );
    await settle();
    expect(runs).toBe(1);
    await clock.advance(1_000);
    expect(runs).toBe(2);
    await clock.advance(1_999);
    expect(runs).toBe(2);
    await clock.advance(1);
    expect([runs, failures]).toEqual([
      3,
      [
        ['sweeper', 1],
        ['sweeper', 2],
        ['sweeper', 3],
      ],
    ]);
    stopping.abort();
    await ended;
  });

  test('that has nothing more to do is not run again', async () => {
    const parts = { clock: new FakeClock(), signal: new AbortController().signal, onFailed: () => undefined };
    await supervise({ name: 'once', run: async () => undefined }, parts);
  });
});
