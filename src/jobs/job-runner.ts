import { type Backoff, backoffMs } from '../lib/backoff.ts';
import { type Clock, pause } from '../lib/clock.ts';
import type { Service } from '../lib/concurrency/supervise.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { JobChange, JobRecord, NewJob } from '../storage/catalog/catalog-records.ts';
import type { JobHandler, JobOutcome, JobRequest } from './job.ts';

/** Where jobs are kept: the catalog. */
export interface JobStore {
  /** The job, or the one that has the request's key already. Fails with `idempotency_conflict`. */
  add(job: NewJob): Promise<JobRecord>;
  /** False when the job is gone; with a phase also when it has ended, which it does once. */
  change(change: JobChange): Promise<boolean>;
  removeExpired(nowMs: number): Promise<void>;
  get(jobId: number): JobRecord | undefined;
  /** Jobs that have not ended, in the order in which they were asked for. */
  unfinished(): JobRecord[];
  /** Jobs of a kind, newest first, from before a job. */
  list(kind: string, beforeId: number, limit: number): JobRecord[];
}

interface JobRunnerDeps {
  store: JobStore;
  clock: Clock;
  /** How long a job that has ended is kept, milliseconds. */
  keptMs: number;
  onFailed(job: JobRecord, attempt: number, error: unknown): void;
}

interface Active {
  stop: AbortController;
  ended: Promise<void>;
  /** Ends the pause behind an attempt that has failed. */
  hurry: () => void;
}

/** Jobs that run side by side. */
const runningMax = 2;
/** Failures of a job in one process after which it has failed, unless the last one has met what may pass, such as a full disk. */
const failuresMax = 10;
const retries: Backoff = { firstMs: 1_000, maxMs: 5 * 60_000 };
/** The longest pause behind an attempt that has met what may pass. */
const passingMaxMs = 15_000;
const expiryCheckMs = 60 * 60_000;

/**
 * Runs jobs: work that outlives the request that asked for it, and the process. A job and where it stands are in the
 * catalog; after a kill the next process takes up what has not ended, from the state that was saved last.
 */
export class JobRunner implements Service {
  readonly name = 'jobs';
  readonly #deps: JobRunnerDeps;
  readonly #handlers = new Map<string, JobHandler>();
  readonly #active = new Map<number, Active>();
  #wake: () => void = () => undefined;

  constructor(deps: JobRunnerDeps) {
    this.#deps = deps;
  }

  /** Jobs of a kind without a handler wait for a process that has one. */
  handle(handler: JobHandler): void {
    this.#handlers.set(handler.kind, handler);
    this.#wake();
  }

  /** Asks for a job; durable when it resolves. A repeated request gets the job that it has made before. */
  async submit({ kind, principal, idempotencyKey, requestHash = '', state }: JobRequest): Promise<JobRecord> {
    const createdMs = this.#deps.clock.nowMs();
    const job = await this.#deps.store.add({
      kind,
      principal,
      idempotencyKey: idempotencyKey ?? null,
      requestHash,
      state: JSON.stringify(state),
      createdMs,
    });
    this.#wake();
    return job;
  }

  get(jobId: number): JobRecord | undefined {
    return this.#deps.store.get(jobId);
  }

  /** Jobs of a kind, newest first, from before a job. */
  list(kind: string, beforeId: number, limit: number): JobRecord[] {
    return this.#deps.store.list(kind, beforeId, limit);
  }

  /** Notes something in a job that does not run. False when it is gone. */
  note(jobId: number, state: unknown): Promise<boolean> {
    const updatedMs = this.#deps.clock.nowMs();
    return this.#deps.store.change({ jobId, state: JSON.stringify(state), updatedMs });
  }

  /** Ends a job where it stands. One that has ended already is left as it is. Fails with `job_not_found`. */
  async cancel(jobId: number): Promise<void> {
    const job = this.get(jobId);
    if (!job) throw new ServiceError('job_not_found', `there is no job ${jobId}`);
    if (job.phase !== 'queued' && job.phase !== 'running') return;
    await this.#stop(jobId);
    await this.#end(jobId, 'cancelled');
    // One that has waited may have begun meanwhile.
    await this.#stop(jobId);
  }

  async #stop(jobId: number): Promise<void> {
    const active = this.#active.get(jobId);
    active?.stop.abort();
    await active?.ended;
  }

  /** Where an attempt has failed, the next one begins now. */
  hurry(jobId: number): void {
    this.#active.get(jobId)?.hurry();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#deps.store.removeExpired(this.#deps.clock.nowMs());
      const ready = this.#deps.store
        .unfinished()
        .filter((job) => this.#handlers.has(job.kind) && !this.#active.has(job.jobId));
      for (const job of ready.slice(0, runningMax - this.#active.size)) this.#start(job, signal);
      await this.#sleep(signal);
    }
    await Promise.all([...this.#active.values()].map(({ ended }) => ended));
  }

  #start(job: JobRecord, stopping: AbortSignal): void {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, stopping]);
    const active: Active = { stop, ended: Promise.resolve(), hurry: () => undefined };
    this.#active.set(job.jobId, active);
    active.ended = this.#attempts(job, active, signal).finally(() => {
      this.#active.delete(job.jobId);
      this.#wake();
    });
  }

  async #attempts(job: JobRecord, active: Active, signal: AbortSignal): Promise<void> {
    const { store, clock, onFailed } = this.#deps;
    let failures = 0;
    for (let attempt = job.attempt + 1; !signal.aborted; attempt += 1) {
      try {
        const change = { jobId: job.jobId, phase: 'running' as const, attempt, updatedMs: clock.nowMs() };
        if (!(await store.change(change))) return;
        const outcome = await this.#work(job.jobId, failures, signal);
        if (!signal.aborted) await this.#end(job.jobId, outcome);
        return;
      } catch (error) {
        if (signal.aborted) return;
        onFailed(job, attempt, error);
        failures += 1;
        if (failures >= failuresMax && !mayPass(error) && (await this.#ended(job.jobId, 'failed'))) return;
        const pauseMs = backoffMs(failures, mayPass(error) ? { ...retries, maxMs: passingMaxMs } : retries);
        const hurried = new AbortController();
        active.hurry = () => hurried.abort();
        await pause(clock, pauseMs, AbortSignal.any([signal, hurried.signal]));
      }
    }
  }

  async #work(jobId: number, failures: number, signal: AbortSignal): Promise<JobOutcome> {
    const { store, clock } = this.#deps;
    const record = store.get(jobId);
    const handler = record && this.#handlers.get(record.kind);
    if (!record || !handler) return 'failed';
    const save = async (state: unknown) => {
      await store.change({ jobId, state: JSON.stringify(state), updatedMs: clock.nowMs() });
    };
    let outcome: JobOutcome = 'succeeded';
    const endAs = (wanted: JobOutcome) => {
      outcome = wanted;
    };
    await handler.run({ record, failures, signal, save, endAs });
    return outcome;
  }

  #end(jobId: number, phase: JobOutcome): Promise<boolean> {
    const nowMs = this.#deps.clock.nowMs();
    return this.#deps.store.change({ jobId, phase, updatedMs: nowMs, expiresMs: nowMs + this.#deps.keptMs });
  }

  /** A catalog that cannot be written leaves the job as it is, to be tried again. */
  #ended(jobId: number, phase: 'failed'): Promise<boolean> {
    return this.#end(jobId, phase).then(
      () => true,
      () => false,
    );
  }

  /** Resolves when a job was asked for or has ended, when expired ones are to be looked for, or at the end. */
  #sleep(signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    return pause(this.#deps.clock, expiryCheckMs, AbortSignal.any([signal, woken.signal]));
  }
}

function mayPass(error: unknown): boolean {
  return error instanceof ServiceError && error.retryable;
}
