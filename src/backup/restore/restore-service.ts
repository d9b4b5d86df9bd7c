import { covers, coversEverything } from '../../access/grants.ts';
import { type Caller, ownerOf, requireAdmin, requireTable, rowFiltersOf } from '../../access/principal.ts';
import type { JobRunner } from '../../jobs/job-runner.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { JobRecord } from '../../storage/catalog/catalog-records.ts';
import type { TableService } from '../../tables/table-service.ts';
import { checkBackupId } from '../archive/manifest.ts';
import type { LocationRequest, Locations } from '../location.ts';
import type { RestoreJob } from './restore-job.ts';
import { jobOfStaged, notesCancellation, type RestoreMode, type RestoreState, restoreKind } from './restore-state.ts';

interface RestoreRequest extends LocationRequest {
  backupId: string;
  mode?: RestoreMode | undefined;
  tableNames?: readonly string[] | undefined;
  /** Of a restore of one table. */
  tableName?: string | undefined;
  idempotencyKey?: string | undefined;
}

/** A job of a restore, and what it keeps. */
export interface ShownRestore {
  record: JobRecord;
  state: RestoreState;
}

interface RestoreServiceDeps {
  readonly jobs: JobRunner;
  readonly job: RestoreJob;
  readonly tables: TableService;
  readonly locations: Locations;
}

interface ListRequest {
  limit: number;
  cursor?: string | undefined;
  phase?: string | undefined;
  scope?: string | undefined;
}

const listPage = 100;

/** Asks for restores, and shows and cancels them. */
export class RestoreService {
  readonly #deps: RestoreServiceDeps;

  constructor(deps: RestoreServiceDeps) {
    this.#deps = deps;
    deps.jobs.handle(deps.job);
  }

  /** Takes away what restores have built that are over: a crash may have come before they could. */
  async start(): Promise<void> {
    const { jobs, tables } = this.#deps;
    for (const name of tables.stagedNames()) {
      const phase = jobs.get(jobOfStaged(name) ?? 0)?.phase;
      if (phase !== 'queued' && phase !== 'running') await tables.dropStaged(name);
    }
  }

  /**
   * Asks for a restore; the job is durable when this resolves. `isNew` is false for a repetition of an earlier request. Throws
   * `forbidden`, what `Locations.open` does, and `idempotency_conflict`.
   */
  async submit(request: RestoreRequest, caller: Caller): Promise<ShownRestore & { isNew: boolean }> {
    const { backupId, location, mode = 'fail_if_exists', tableNames, tableName, idempotencyKey } = request;
    if (tableName === undefined) requireAdmin(caller);
    else requireTable(caller, tableName, 'admin');
    checkBackupId(backupId);
    const { connection } = this.#deps.locations.open(request, 'restore.read');
    if (tableNames?.length === 0) throw new ServiceError('invalid_request', '"table_names" is empty');
    if (tableNames && new Set(tableNames).size < tableNames.length) {
      throw new ServiceError('invalid_request', '"table_names" has a name twice');
    }
    const scope = tableName === undefined ? 'cluster' : 'table';
    const names = tableName === undefined ? tableNames : [tableName];
    const asked = { scope, backupId, location, connection: request.connection ?? null, mode, names: names ?? null };
    const state: RestoreState = {
      nonce: crypto.randomUUID(),
      scope,
      ...(tableName === undefined ? {} : { tableName }),
      backupId,
      location,
      connection,
      mode,
      ...(names === undefined ? {} : { tableNames: names }),
      cancelRequested: false,
    };
    const target = scope === 'cluster' ? 'cluster' : `table/${tableName}`;
    const record = await this.#deps.jobs.submit({
      kind: restoreKind,
      principal: ownerOf(caller.principal),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey: `${target}:${idempotencyKey}` }),
      requestHash: new Bun.CryptoHasher('sha256').update(JSON.stringify(asked)).digest('hex'),
      state,
    });
    const shown = this.#shown(record);
    return { ...shown, isNew: shown.state.nonce === state.nonce };
  }

  /** Throws `invalid_request` for what is no id, and `job_not_found`, also for a job that the caller may not see. */
  get(jobId: string, caller: Caller): ShownRestore {
    if (!/^[1-9]\d{0,15}$/.test(jobId)) {
      throw new ServiceError('invalid_request', 'the id of a job is a number of up to 16 digits');
    }
    const record = this.#deps.jobs.get(Number(jobId));
    if (!record) throw notFound(jobId);
    const shown = record.kind === restoreKind ? this.#shown(record) : undefined;
    if (!shown || !maySee(shown, caller)) throw notFound(jobId);
    return shown;
  }

  /** Those that the caller may see, newest first, with the cursor of the next page. */
  list({ limit, cursor, phase, scope }: ListRequest, caller: Caller): { jobs: ShownRestore[]; nextCursor?: string } {
    const found: ShownRestore[] = [];
    for (let before = cursor === undefined ? Number.MAX_SAFE_INTEGER : readCursor(cursor); ; ) {
      const page = this.#deps.jobs.list(restoreKind, before, listPage);
      for (const record of page) {
        const shown = this.#shown(record);
        before = record.jobId;
        const matches =
          (phase === undefined || record.phase === phase) && (scope === undefined || shown.state.scope === scope);
        if (!matches || !maySee(shown, caller)) continue;
        const last = found.at(-1);
        if (found.length === limit && last) return { jobs: found, nextCursor: String(last.record.jobId) };
        found.push(shown);
      }
      if (page.length < listPage) return { jobs: found };
    }
  }

  /**
   * Asks a restore to stop. One that waits ends at once; one that runs before its next table is published; one that has published
   * its last table is done, and only notes the request.
   */
  async cancel(jobId: string, caller: Caller): Promise<ShownRestore> {
    const { record, state } = this.get(jobId, caller);
    const { jobs, job } = this.#deps;
    if (!notesCancellation(record.phase) || state.cancelRequested) return { record, state };
    if (!(await job.cancel(record.jobId))) {
      await jobs.note(record.jobId, { ...state, cancelRequested: true });
      // It may have begun meanwhile, before the note was there, or have ended: then it is left as it is.
      const isRunning = await job.cancel(record.jobId);
      if (!isRunning && record.phase === 'queued') await jobs.cancel(record.jobId);
      // Between two attempts: the next one takes away what was built, and ends the job.
      else if (!isRunning) jobs.hurry(record.jobId);
    }
    return this.get(jobId, caller);
  }

  #shown(record: JobRecord): ShownRestore {
    const state = this.#deps.job.stateOf(record.jobId) ?? (JSON.parse(record.state) as RestoreState);
    return { record, state };
  }
}

/**
 * Whether the caller could have asked for the restore. That it was its own says nothing: another key of the same user
 * may be allowed less, and the user less than then.
 */
function maySee({ state: { tableName } }: ShownRestore, caller: Caller): boolean {
  const { principal, rowFilter } = caller;
  if (principal.kind === 'everyone') return true;
  if (tableName === undefined) return rowFilter === undefined && coversEverything(principal.grants);
  return covers(principal.grants, 'table', tableName, 'admin') && rowFiltersOf(caller, tableName).length === 0;
}

function readCursor(cursor: string): number {
  const before = Number(cursor);
  if (Number.isSafeInteger(before) && before > 0) return before;
  throw new ServiceError('invalid_request', '"cursor" is the "next_cursor" of the page before');
}

function notFound(jobId: string): ServiceError {
  return new ServiceError('job_not_found', `there is no restore job "${jobId.slice(0, 32)}"`);
}
