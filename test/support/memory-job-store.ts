import type { JobStore } from '../../src/jobs/job-runner.ts';
import type { JobRecord } from '../../src/storage/catalog/catalog-records.ts';

/** A store in memory that outlives a runner, as the catalog does. */
export function memoryStore() {
  const jobs = new Map<number, JobRecord>();
  let ids = 0;
  const store: JobStore = {
    async add({ state, ...job }) {
      ids += 1;
      const record: JobRecord = {
        ...job,
        state,
        jobId: ids,
        attempt: 0,
        phase: 'queued',
        updatedMs: 0,
        expiresMs: null,
      };
      jobs.set(record.jobId, record);
      return record;
    },
    async change({ jobId, ...change }) {
      const job = jobs.get(jobId);
      if (!job || (change.phase !== undefined && !isUnfinished(job))) return false;
      jobs.set(jobId, { ...job, ...change });
      return true;
    },
    async removeExpired(nowMs) {
      for (const { jobId, expiresMs } of jobs.values())
        if (expiresMs !== null && expiresMs <= nowMs) jobs.delete(jobId);
    },
    get: (jobId) => jobs.get(jobId),
    list: (kind, beforeId, limit) =>
      [...jobs.values()]
        .filter((job) => job.kind === kind && job.jobId < beforeId)
        .reverse()
        .slice(0, limit),
    unfinished: () => [...jobs.values()].filter(isUnfinished),
  };
  return { jobs, store };
}

function isUnfinished({ phase }: JobRecord): boolean {
  return phase === 'queued' || phase === 'running';
}
