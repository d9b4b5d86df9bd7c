import type { JobHandler, JobOutcome, RunningJob } from '../../jobs/job.ts';
import { must } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Table } from '../../tables/table.ts';
import { type BackupChain, openChain } from '../backup-chain.ts';
import type { Location, Locations } from '../location.ts';
import type { ObjectStore } from '../stores/object-store.ts';
import { restoreOrder } from './restore-order.ts';
import {
  groupsIn,
  isHalfPublished,
  type RestoredTable,
  type RestoreState,
  restoreKind,
  restoreSteps,
  stagedName,
} from './restore-state.ts';
import { buildStaged, publishStaged, type RestoreDeps } from './restore-table.ts';

interface RestoreJobDeps extends RestoreDeps {
  readonly locations: Locations;
  onFailed(jobId: number, table: string | undefined, error: unknown): void;
}

/** A restore under way. */
interface Running {
  readonly job: RunningJob;
  readonly state: RestoreState;
  readonly stop: AbortController;
  readonly signal: AbortSignal;
  /** Settles when what a transaction says of the state is in the state: none says anything else meanwhile. */
  noted: Promise<void>;
}

/** Failed attempts, this one among them, after which a fault that may pass counts as one that stays. */
const failuresMax = 5;

/** Thrown between two tables, or in the middle of one that is not published, after a cancellation. */
class Cancelled extends Error {}

/**
 * Restores tables one after the other: each is built where nobody sees it, compared with the backup, indexed, and published in
 * one transaction that also notes it in the job. Tables that name each other's rows are all built before the first of them is
 * published, and a cancellation does not come between them. After a kill the next process goes on with the table under way;
 * a table that is published is not touched again.
 */
export class RestoreJob implements JobHandler {
  readonly kind = restoreKind;
  readonly #deps: RestoreJobDeps;
  readonly #running = new Map<number, Running>();

  constructor(deps: RestoreJobDeps) {
    this.#deps = deps;
  }

  /** The state of a running restore; undefined for one that does not run. */
  stateOf(jobId: number): RestoreState | undefined {
    return this.#running.get(jobId)?.state;
  }

  /** Has a running restore stop where it can; false when it does not run. */
  async cancel(jobId: number): Promise<boolean> {
    const running = this.#running.get(jobId);
    if (!running) return false;
    running.state.cancelRequested = true;
    try {
      await running.noted;
      await running.job.save(running.state);
    } catch (error) {
      // It could not be noted, and the restore goes on.
      running.state.cancelRequested = false;
      throw error;
    }
    running.stop.abort(new Cancelled());
    return true;
  }

  async run(job: RunningJob): Promise<void> {
    const state = JSON.parse(job.record.state) as RestoreState;
    const stop = new AbortController();
    const signal = AbortSignal.any([job.signal, stop.signal]);
    const running: Running = { job, state, stop, signal, noted: Promise.resolve() };
    this.#running.set(job.record.jobId, running);
    try {
      job.endAs(await this.#restore(running));
    } finally {
      this.#running.delete(job.record.jobId);
    }
  }

  async #restore(running: Running): Promise<JobOutcome> {
    const { job, state } = running;
    const { jobId } = job.record;
    if (state.cancelRequested && !groupsIn(state.tables ?? []).some(isHalfPublished)) {
      return await this.#cancelled(running);
    }
    const { store } = this.#location(state);
    try {
      const chain = await openChain(store, state.backupId);
      if (!state.tables) {
        state.tables = await this.#plan(state, chain);
        await job.save(state);
      }
      const groups = groupsIn(state.tables);
      // First what an earlier attempt has begun to publish.
      groups.sort((left, right) => Number(isHalfPublished(right)) - Number(isHalfPublished(left)));
      for (const group of groups) await this.#restoreGroup(running, group, chain, store);
    } catch (error) {
      if (job.signal.aborted) throw error;
      if (error instanceof Cancelled || running.stop.signal.aborted) return await this.#cancelled(running);
      if (mayPass(error) && job.failures + 1 < failuresMax) throw error;
      this.#deps.onFailed(jobId, undefined, error);
      Object.assign(state, diagnosis(error));
      await this.#clean(running);
      await job.save(state);
      return outcome('fatal');
    }
    await this.#clean(running);
    const failed = state.tables.find(({ status }) => status === 'failed');
    if (failed) {
      Object.assign(state, { code: failed.code, error: failed.error });
      await job.save(state);
    }
    return outcome(failed ? 'fatal' : 'all published');
  }

  /**
   * The location, which the configuration allowed when the restore was asked for. A process of another configuration, such as a
   * command on the data directory, leaves the restore as it is to one that allows it again.
   */
  #location(state: RestoreState): Location {
    try {
      return this.#deps.locations.open(state, 'restore.read');
    } catch (cause) {
      if (!(cause instanceof ServiceError)) throw cause;
      throw new ServiceError('unavailable', `the restore waits for its connection: ${cause.message}`, { cause });
    }
  }

  /** The plan of each table. Throws where the restore may not begin, with the tables that stand against it in `state.refused`. */
  async #plan(state: RestoreState, chain: BackupChain): Promise<RestoredTable[]> {
    const { mode, tableNames } = state;
    const { cluster } = chain;
    const available = cluster.tables.map(({ name }) => name);
    const ordered = await restoreOrder(tableNames ?? available, chain);
    const existing = new Set(this.#deps.tables.all().map(({ name }) => name));
    const tables = ordered.map(({ name, group }): RestoredTable => {
      if (!available.includes(name)) {
        const error = `the backup "${cluster.backup_id}" has no table "${name}"`;
        return { name, group, status: 'failed', code: 'table_not_found', error };
      }
      return { name, group, status: mode === 'skip_if_exists' && existing.has(name) ? 'skipped' : 'waiting' };
    });
    const taken = tables.filter(({ name }) => existing.has(name));
    if (mode !== 'fail_if_exists' || taken[0] === undefined) return tables;
    for (const table of taken) Object.assign(table, { status: 'failed', ...diagnosis(exists(table.name)) });
    state.refused = tables;
    throw exists(taken[0].name);
  }

  async #restoreGroup(
    running: Running,
    group: readonly RestoredTable[],
    chain: BackupChain,
    store: ObjectStore,
  ): Promise<void> {
    const { job } = running;
    const built = new Map<RestoredTable, Table>();
    for (const table of group) {
      if (table.status !== 'waiting') continue;
      const signal = this.#signalFor(running, group);
      await this.#attempt(running, table, signal, async () => {
        const backedUp = must(await chain.table(table.name), 'a table that the manifest names');
        const place = { name: stagedName(job.record.jobId, table.name), loadedTableId: table.loadedTableId };
        const staged = await buildStaged(this.#deps, place, store, backedUp, signal);
        built.set(table, staged);
        table.loadedTableId = staged.id;
      });
    }
    for (const [table, staged] of built) {
      const signal = this.#signalFor(running, group);
      await this.#attempt(running, table, signal, () => this.#publish(running, table, staged, signal));
    }
  }

  async #publish(running: Running, table: RestoredTable, staged: Table, signal: AbortSignal): Promise<void> {
    const { job, state } = running;
    const noted = Promise.withResolvers<void>();
    const publication = {
      replaces: state.mode === 'overwrite',
      isRestored: restoredBy(state),
      job: () => {
        running.noted = noted.promise;
        const { loadedTableId: _, ...rest } = table;
        const done: RestoredTable = { ...rest, status: 'published' };
        const tables = state.tables?.map((each) => (each === table ? done : each));
        const updatedMs = this.#deps.clock.nowMs();
        return { jobId: job.record.jobId, state: JSON.stringify({ ...state, tables }), updatedMs };
      },
      signal,
    };
    try {
      const published = publishStaged(this.#deps, staged, table.name, publication);
      if (!(await published.catch((error) => this.#overtaken(staged, error)))) {
        if (state.mode !== 'skip_if_exists') throw exists(table.name);
        table.status = 'skipped';
      } else table.status = 'published';
    } finally {
      noted.resolve();
    }
  }

  /**
   * Another table has the name since, with versions that the staged one would
   * give again: the next attempt builds it above them.
   */
  async #overtaken(staged: Table, error: unknown): Promise<never> {
    if (error instanceof ServiceError && error.code === 'transaction_conflict') {
      await this.#deps.tables.dropStaged(staged.name);
    }
    throw error;
  }

  /** The signal that stops the work on a group. Throws where a cancellation has come already. */
  #signalFor({ job, state, signal }: Running, group: readonly RestoredTable[]): AbortSignal {
    if (isHalfPublished(group)) return job.signal;
    if (state.cancelRequested) throw new Cancelled();
    return signal;
  }

  /** A step of the work on a table. What fails for good is noted; what may pass, and what stops, is thrown. */
  async #attempt(
    { job, state }: Running,
    table: RestoredTable,
    signal: AbortSignal,
    work: () => Promise<void>,
  ): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (signal.aborted || (mayPass(error) && job.failures + 1 < failuresMax)) throw error;
      this.#deps.onFailed(job.record.jobId, table.name, error);
      Object.assign(table, { status: 'failed', ...diagnosis(error) });
      await this.#deps.tables.dropStaged(stagedName(job.record.jobId, table.name));
    }
    // A cancellation may have come meanwhile.
    await job.save(state);
  }

  async #cancelled(running: Running): Promise<JobOutcome> {
    await this.#clean(running);
    await running.job.save(running.state);
    return outcome('boundary');
  }

  /** Takes away what was built and not published. */
  async #clean({ job, state }: Running): Promise<void> {
    for (const { name } of state.tables ?? []) await this.#deps.tables.dropStaged(stagedName(job.record.jobId, name));
  }
}

function outcome(event: 'boundary' | 'all published' | 'fatal'): JobOutcome {
  const step = restoreSteps.running[event];
  return step === 'succeeded' || step === 'cancelled' ? step : 'failed';
}

/** Whether a table is one that the restore has brought or will bring. */
function restoredBy({ tables = [] }: RestoreState): (name: string) => boolean {
  const restored = tables.filter(({ status }) => status === 'waiting' || status === 'published');
  const names = new Set(restored.map(({ name }) => name));
  return (name) => names.has(name);
}

/** Whether a later attempt may be better off. */
function mayPass(error: unknown): boolean {
  return error instanceof ServiceError && error.retryable;
}

function exists(name: string): ServiceError {
  return new ServiceError('already_exists', `there is a table "${name}" already; nothing was restored over it`);
}

function diagnosis(error: unknown): { code: string; error: string } {
  if (error instanceof ServiceError) return { code: error.code, error: error.message };
  return { code: 'internal', error: 'a fault of the server; the log has the details' };
}
