import { expect, test } from 'bun:test';
import { serverCaller } from '../../../src/access/principal.ts';
import type { RestoreJob } from '../../../src/backup/restore/restore-job.ts';
import { RestoreService } from '../../../src/backup/restore/restore-service.ts';
import { type RestoreState, restoreKind } from '../../../src/backup/restore/restore-state.ts';
import type { JobRunner } from '../../../src/jobs/job-runner.ts';
import type { JobRecord } from '../../../src/storage/catalog/catalog-records.ts';

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
  'a cancellation that a restore begins under stops it as any other: its job was "%s" then',
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
