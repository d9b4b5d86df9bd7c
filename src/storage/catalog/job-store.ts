import type { WorkerChannel } from '../../runtime/worker-channel.ts';
import { openReader } from '../connection.ts';
import type { StorageCalls } from '../storage-calls.ts';
import { reading } from '../storage-error.ts';
import type { JobChange, JobRecord, NewJob } from './catalog-records.ts';
import { JobReading } from './job-table.ts';

const source = { name: 'the catalog' };

/** The jobs of this node, as the catalog keeps them: reads on the calling thread, changes through the writer. */
export class CatalogJobStore {
  readonly #channel: WorkerChannel<StorageCalls>;
  readonly #reading: JobReading;
  readonly #close: () => void;

  constructor(path: string, channel: WorkerChannel<StorageCalls>) {
    const database = openReader(path);
    this.#channel = channel;
    this.#reading = new JobReading(database);
    this.#close = () => {
      this.#reading.close();
      database.close();
    };
  }

  /** The job, or the one that has the request's key already. Fails with `idempotency_conflict`. */
  add(job: NewJob): Promise<JobRecord> {
    return this.#channel.call('addJob', job);
  }

  /** False when the job is gone; with a phase also when it has ended, which it does once. */
  async change(change: JobChange): Promise<boolean> {
    return (await this.#channel.call('changeJob', change)).changed;
  }

  /** Forgets jobs whose time is over. */
  async removeExpired(nowMs: number): Promise<void> {
    await this.#channel.call('removeExpiredJobs', { nowMs });
  }

  get(jobId: number): JobRecord | undefined {
    return reading(source, () => this.#reading.get(jobId));
  }

  /** Jobs that have not ended, in the order in which they were asked for. */
  unfinished(): JobRecord[] {
    return reading(source, () => this.#reading.unfinished());
  }

  /** Jobs of a kind, newest first, from before a job. */
  list(kind: string, beforeId: number, limit: number): JobRecord[] {
    return reading(source, () => this.#reading.list(kind, beforeId, limit));
  }

  close(): void {
    this.#close();
  }
}
