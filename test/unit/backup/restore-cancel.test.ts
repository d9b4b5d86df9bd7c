import { expect, test } from 'bun:test';
import { serverCaller } from '../../../src/access/principal.ts';
import { RestoreJob } from '../../../src/backup/restore/restore-job.ts';
import { RestoreService } from '../../../src/backup/restore/restore-service.ts';
import { type RestoreState, restoreKind } from '../../../src/backup/restore/restore-state.ts';
import { FolderStore } from '../../../src/backup/stores/folder-store.ts';
import { JobRunner } from '../../../src/jobs/job-runner.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import type { JobChange, JobRecord } from '../../../src/storage/catalog/catalog-records.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';
import { memoryStore } from '../../support/memory-job-store.ts';

const state: RestoreState = {
  nonce: 'n',
  scope: 'cluster',
  backupId: 'b',
  location: 'file:///b',
  connection: 'disk',
  mode: 'overwrite',
  cancelRequested: false,
};

test.each(['queued', 'running'] as const)(
  'a restore that begins while it is being cancelled is stopped; its job was "%s" at that time',
  async (phase) => {
    let running: RestoreState | undefined;
    const stored: JobRecord = {
      jobId: 1,
      kind: restoreKind,
      principal: '',
      idempotencyKey: null,
      requestHash: '',
      attempt: 0,
      phase,
      state: JSON.stringify(state),
      createdMs: 0,
      updatedMs: 0,
      expiresMs: null,
    };
    const thrownAway: number[] = [];
    const jobs = {
      handle: () => undefined,
      get: () => stored,
      // The restore begins, with the state from before the note.
      note: async (_: number, noted: RestoreState) => {
        running = { ...state };
        stored.state = JSON.stringify(noted);
        return true;
      },
      cancel: async (jobId: number) => void thrownAway.push(jobId),
    } as unknown as JobRunner;
    const job = {
      stateOf: () => running,
      cancel: async () => {
        if (running) running.cancelRequested = true;
        return running !== undefined;
      },
    } as unknown as RestoreJob;
    const service = new RestoreService({ jobs, job, tables: {} as never, locations: {} as never });
    const { state: shown } = await service.cancel('1', serverCaller('r', new AbortController().signal));
    expect(shown.cancelRequested).toBe(true);
    expect(running).toMatchObject({ cancelRequested: true });
    // It takes away what it has built, and a group of tables that is half published goes on.
    expect(thrownAway).toEqual([]);
  },
);

/** A restore whose location cannot be read, behind the first of its attempts. */
async function unreachable() {
  const { store } = memoryStore();
  const clock = new FakeClock();
  const failures: number[] = [];
  const onFailed = (_: unknown, attempt: number) => void failures.push(attempt);
  const jobs = new JobRunner({ store, clock, keptMs: 1_000, onFailed });
  const open = () => {
    throw new ServiceError('location_unavailable', 'nobody is there');
  };
  const locations = { open } as never;
  const job = new RestoreJob({ locations, clock, tables: {}, directory: {}, log: {}, onFailed: () => {} } as never);
  const service = new RestoreService({ jobs, job, tables: {} as never, locations });
  const stopping = new AbortController();
  const ended = jobs.run(stopping.signal);
  const { jobId } = await jobs.submit({ kind: restoreKind, principal: '', state });
  await settle();
  expect(failures).toEqual([1]);
  const stop = async () => {
    stopping.abort();
    await ended;
  };
  return { service, jobs, jobId, stop };
}

const caller = serverCaller('r', new AbortController().signal);

test('a restore that is cancelled between two attempts ends at once', async () => {
  const { service, jobs, jobId, stop } = await unreachable();
  await service.cancel(String(jobId), caller);
  // No time has passed.
  await settle();
  expect(jobs.get(jobId)).toMatchObject({ phase: 'cancelled', attempt: 2 });
  await stop();
});

test('a cancellation that cannot be noted is refused, and can be asked for again', async () => {
  const { store } = memoryStore();
  const jobs = new JobRunner({ store, clock: new FakeClock(), keptMs: 1_000, onFailed: () => undefined });
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<never>();
  const locations = {
    open: () => {
      reached.resolve();
      return { store: { read: () => opened.promise } };
    },
  } as never;
  const job = new RestoreJob({ locations, clock: new FakeClock(), tables: {}, onFailed: () => {} } as never);
  const service = new RestoreService({ jobs, job, tables: {} as never, locations });
  const stopping = new AbortController();
  const ended = jobs.run(stopping.signal);
  const { jobId } = await jobs.submit({ kind: restoreKind, principal: '', state });
  await reached.promise;
  const { change } = store;
  store.change = () => Promise.reject(new ServiceError('insufficient_storage', 'the disk is full'));
  const refused = service.cancel(String(jobId), caller);
  await expect(refused).rejects.toMatchObject({ code: 'insufficient_storage' });
  expect(service.get(String(jobId), caller).state.cancelRequested).toBe(false);
  store.change = change;
  expect((await service.cancel(String(jobId), caller)).state.cancelRequested).toBe(true);
  opened.reject(new Error('called off'));
  await settle();
  expect(jobs.get(jobId)).toMatchObject({ phase: 'cancelled' });
  stopping.abort();
  await ended;
});

test('a cancellation while a table is published takes nothing back that is noted of it', async () => {
  using place = new BackupPlace();
  {
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/books', {});
    await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
  }
  const { store } = memoryStore();
  const clock = new FakeClock();
  const jobs = new JobRunner({ store, clock, keptMs: 1_000, onFailed: () => undefined });
  const staged = { id: 5, name: 'staged', ranges: [] };
  const noted = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  const tables = {
    all: () => [],
    findStaged: async () => staged,
    dropStaged: async () => undefined,
    async publish(_table: unknown, _name: string, { job }: { job(): JobChange }) {
      await store.change(job());
      noted.resolve();
      // The answer of the thread that writes is on its way.
      await answered.promise;
      return true;
    },
  };
  const locations = { open: () => ({ store: new FolderStore(place.path, place.path) }) } as never;
  const job = new RestoreJob({ locations, clock, tables, onFailed: () => undefined } as never);
  const service = new RestoreService({ jobs, job, tables: {} as never, locations });
  const stopping = new AbortController();
  const ended = jobs.run(stopping.signal);
  const waiting = [{ name: 'books', status: 'waiting' as const, loadedTableId: staged.id }];
  const { jobId } = await jobs.submit({ kind: restoreKind, principal: '', state: { ...state, tables: waiting } });
  const inCatalog = () => JSON.parse(jobs.get(jobId)?.state ?? '') as RestoreState;
  await noted.promise;
  const cancelling = service.cancel(String(jobId), caller);
  await settle();
  // A crash here finds the table published.
  expect(inCatalog().tables).toMatchObject([{ name: 'books', status: 'published' }]);
  answered.resolve();
  expect((await cancelling).state).toMatchObject({ cancelRequested: true });
  await settle();
  expect(inCatalog()).toMatchObject({ cancelRequested: true, tables: [{ name: 'books', status: 'published' }] });
  stopping.abort();
  await ended;
});
