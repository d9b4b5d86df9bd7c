import type { JobRecord } from '../storage/catalog/catalog-records.ts';

/** The handler of a kind of job. A run that throws is repeated after a pause, from the state that was saved last. */
export interface JobHandler {
  readonly kind: string;
  run(job: RunningJob): Promise<void>;
}

/** How a job has ended. */
export type JobOutcome = 'succeeded' | 'failed' | 'cancelled';

export interface RunningJob {
  readonly record: JobRecord;
  /** Runs that have thrown in this process. The `attempt` of the record also counts those that a stop or a kill has ended. */
  readonly failures: number;
  /** Aborted when the job is cancelled or the server stops; a job that stops is resumed by the next process. */
  readonly signal: AbortSignal;
  /** Keeps where the work stands, durably. A later run begins with it. */
  save(state: unknown): Promise<void>;
  /** How the job ends when the run returns; `succeeded` unless said. */
  endAs(outcome: JobOutcome): void;
}

export interface JobRequest {
  kind: string;
  /** By whom it was asked for, as `ownerOf` writes it; empty for the server itself. */
  principal: string;
  /** A request with the same key, kind and principal is the same job. */
  idempotencyKey?: string;
  /** Tells requests with one key apart: another hash is refused with `idempotency_conflict`. */
  requestHash?: string;
  /** JSON value that the handler starts from. */
  state: unknown;
}
