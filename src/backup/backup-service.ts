import { type Caller, requireAdmin, requireTable, seesTable } from '../access/principal.ts';
import type { Clock } from '../lib/clock.ts';
import { failpoint } from '../lib/failpoint.ts';
import { isErrorCode } from '../protocol/error-codes.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { RangeLog } from '../replication/range-log.ts';
import type { Storage } from '../storage/open-storage.ts';
import { type Table, tableNotFound } from '../tables/table.ts';
import type { TableService } from '../tables/table-service.ts';
import {
  archiveFormat,
  type BackupFormat,
  backupIdOf,
  type ClusterManifest,
  checkBackupId,
  clusterManifestName,
  encodeManifest,
  readClusterManifest,
  sha256Of,
  type TableManifest,
  tableManifestName,
  tableNumberOf,
} from './archive/manifest.ts';
import { BackupBase } from './backup-base.ts';
import { type AttemptTarget, BackupRun } from './backup-run.ts';
import type { Copier } from './copy/copier.ts';
import type { Location, LocationRequest, Locations } from './location.ts';
import { AttemptStore } from './stores/attempt-store.ts';
import type { ObjectStore } from './stores/object-store.ts';

interface BackupRequest extends LocationRequest {
  backupId: string;
  /** `portable` unless given. */
  format?: BackupFormat | undefined;
  /** All tables unless given. */
  tableNames?: readonly string[] | undefined;
  /** A backup at the same location: only what has changed since is copied. */
  baseBackupId?: string | undefined;
}

/** The outcome for one table. */
interface BackedUpTable {
  name: string;
  status: 'completed' | 'failed';
  /** With an outcome that is not `completed`. */
  error?: string;
  code?: string;
  retryable?: boolean;
  backupId: string;
  /** The folder that the table's files have below the backup's. */
  artifactBackupId: string;
}

export interface BackupOutcome {
  backupId: string;
  /** `completed` alone says that there is a backup. */
  status: 'completed' | 'partial' | 'failed';
  tables: BackedUpTable[];
}

export interface ListedBackup {
  manifest: ClusterManifest;
  location: string;
}

/** The tables of an attempt, and what failed, by table. */
interface AttemptOutcome {
  readonly names: readonly string[];
  readonly failures: ReadonlyMap<string, unknown>;
}

interface BackupDeps {
  readonly storage: Storage;
  readonly tables: TableService;
  readonly log: RangeLog;
  readonly locations: Locations;
  readonly copier: Copier;
  readonly clock: Clock;
  readonly version: string;
  onFailed(table: string, error: unknown): void;
}

/** Makes and lists backups. */
export class BackupService {
  readonly #deps: BackupDeps;

  constructor(deps: BackupDeps) {
    this.#deps = deps;
  }

  /**
   * Backs tables up as they are at one instant. The outcome says what failed, table by table; nothing is there to be
   * restored unless all are completed. Throws `forbidden` and `table_not_found` by the access of the caller,
   * `invalid_request` where no table is selected, `backup_already_exists`, `backup_not_found` for a base that is not
   * there, and `backup_corrupted` for one that cannot be restored itself.
   */
  async create(request: BackupRequest, caller: Caller): Promise<BackupOutcome> {
    requireBackup(request, caller);
    const backupId = checkBackupId(request.backupId);
    const { store } = this.#deps.locations.open(request, 'backup.write');
    const names = this.#select(request, caller);
    if (await readClusterManifest(store, backupId)) throw alreadyExists(backupId);
    const base = request.baseBackupId === undefined ? undefined : await BackupBase.open(store, request.baseBackupId);
    const { format = 'portable' } = request;
    const generation = crypto.randomUUID();
    const attempt = new AttemptStore(store, `${backupId}/${generation}/`);
    const { copier } = this.#deps;
    const target = { store: attempt, copier, backupId, generation, format };
    let outcome: AttemptOutcome;
    try {
      outcome = await this.#attempt(target, names, base, caller, request.tableNames === undefined);
    } catch (error) {
      await attempt.discard();
      throw error;
    }
    const { failures } = outcome;
    // The manifest may have been written all the same: the files that it names stay.
    if (failures.size > 0 && ![...failures.values()].some(isUnknown)) await attempt.discard();
    for (const [table, error] of failures) this.#deps.onFailed(table, error);
    return outcomeOf(outcome, target);
  }

  /**
   * Throws where the attempt as a whole cannot go on. A table that is dropped meanwhile is missing from a backup of all tables,
   * as it is from one that begins later.
   */
  async #attempt(
    target: AttemptTarget,
    names: readonly string[],
    base: BackupBase | undefined,
    caller: Caller,
    isOfAll: boolean,
  ): Promise<AttemptOutcome> {
    using run = new BackupRun(this.#deps, target, base);
    for (const name of names) {
      const table = this.#find(name, caller);
      if (table) await run.copy(table, caller);
      else run.failures.set(name, new ServiceError('table_not_found', `there is no table ${JSON.stringify(name)}`));
    }
    const manifests = await run.finish(caller);
    const dropped = [...run.failures].flatMap(([name, error]) => (isOfAll && isDropped(error) ? [name] : []));
    if (dropped.length === names.length) throw noTables();
    for (const name of dropped) run.failures.delete(name);
    const kept = names.filter((name) => !dropped.includes(name));
    if (run.failures.size > 0) return { names: kept, failures: run.failures };
    if (dropped.length > 0) {
      const numbers = new Set(manifests.map(({ number }) => number));
      await target.store.discard((name) => !numbers.has(tableNumberOf(name)));
    }
    return { names: kept, failures: await this.#publish(target, manifests, base?.id ?? null) };
  }

  /**
   * Backups of a location by their ids, with the cursor of the next page. Only what is complete is listed. Throws `forbidden`
   * where the caller is no administrator: a manifest names every table.
   */
  async list(
    request: LocationRequest,
    { limit, cursor = '' }: { limit: number; cursor?: string | undefined },
    caller: Caller,
  ): Promise<{ backups: ListedBackup[]; nextCursor: string | undefined }> {
    requireAdmin(caller);
    const { location, store } = this.#deps.locations.open(request, 'restore.read');
    const backups: ListedBackup[] = [];
    let after = cursor;
    for (;;) {
      const page = await store.list({ prefix: '', after, limit: 1_000 });
      for (const name of page.names) {
        const id = backupIdOf(name);
        if (id !== undefined) {
          if (backups.length === limit) return { backups, nextCursor: after };
          // One that is damaged is not a backup that can be restored; `verify` says what is wrong with it.
          const manifest = await readClusterManifest(store, id).catch(ifCorrupted);
          if (manifest) backups.push({ manifest, location });
        }
        after = name;
      }
      if (!page.more) return { backups, nextCursor: undefined };
    }
  }

  /** The place of a backup, for reading. Throws as `Locations.open`. */
  open(request: LocationRequest): Location {
    return this.#deps.locations.open(request, 'restore.read');
  }

  #select({ tableNames }: BackupRequest, caller: Caller): readonly string[] {
    const { tables } = this.#deps;
    const names = tableNames ?? tables.list(undefined, undefined, caller).map(({ name }) => name);
    if (names.length === 0) throw noTables();
    if (new Set(names).size < names.length) {
      throw new ServiceError('invalid_request', '"table_names" has a name twice');
    }
    return names;
  }

  #find(name: string, caller: Caller): Table | undefined {
    const exists = seesTable(caller, name) && this.#deps.tables.all().some((table) => table.name === name);
    return exists ? this.#deps.tables.get(name, caller, 'admin') : undefined;
  }

  /** Table manifests, then the one that makes them a backup, last and exclusively. Returns what failed. */
  async #publish(
    { store, backupId, generation, format }: AttemptTarget,
    manifests: readonly { number: number; manifest: TableManifest }[],
    baseBackupId: string | null,
  ): Promise<ReadonlyMap<string, unknown>> {
    const tables: ClusterManifest['tables'] = [];
    const failures = new Map<string, unknown>();
    for (const { number, manifest } of manifests) {
      const bytes = encodeManifest(manifest);
      const name = tableManifestName(backupId, generation, number);
      try {
        // The name is of this attempt alone: what stands there is not what was sent.
        if ((await store.create(name, bytes)) === 'exists') throw unreadable();
        tables.push({ name: manifest.name, manifest: name, sha256: sha256Of(bytes) });
      } catch (error) {
        failures.set(manifest.name, isUnknown(error) ? notPublished(error) : error);
      }
    }
    if (failures.size > 0) return failures;
    const cluster: ClusterManifest = {
      format_version: archiveFormat,
      kind: 'cluster',
      backup_id: backupId,
      generation,
      timestamp: new Date(this.#deps.clock.nowMs()).toISOString(),
      service_version: this.#deps.version,
      format,
      base_backup_id: baseBackupId,
      expected_table_count: manifests.length,
      completed_table_count: tables.length,
      tables,
    };
    failpoint('backup.before-manifest');
    try {
      const creation = await store.create(clusterManifestName(backupId), encodeManifest(cluster));
      failpoint('backup.after-manifest');
      if (creation === 'created' || (await generationOf(store, backupId)) === generation) return failures;
    } catch (error) {
      return new Map(tables.map(({ name }) => [name, error]));
    }
    throw alreadyExists(backupId);
  }
}

/** The attempt that a backup is of. What cannot be read may be of any: `isUnknown` is in the details of what is thrown then. */
async function generationOf(store: ObjectStore, backupId: string): Promise<string> {
  const manifest = await readClusterManifest(store, backupId).catch((cause: unknown) => {
    throw unreadable(cause);
  });
  if (!manifest) throw unreadable();
  return manifest.generation;
}

function unreadable(cause?: unknown): ServiceError {
  const message = 'the location gives another manifest back than it was given';
  return new ServiceError('location_unavailable', message, { cause, details: { isUnknown: true } });
}

function isDropped(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'table_not_found';
}

function noTables(): ServiceError {
  return new ServiceError('invalid_request', 'there are no tables to back up');
}

function isUnknown(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.details?.isUnknown === true;
}

/** Without the manifest of a table there is no backup, whether the store has that manifest or not. */
function notPublished(error: ServiceError): ServiceError {
  return new ServiceError(error.code, error.message, { cause: error });
}

function ifCorrupted(error: unknown): undefined {
  if (error instanceof ServiceError && error.code === 'backup_corrupted') return undefined;
  throw error;
}

function alreadyExists(backupId: string): ServiceError {
  const message = `there is a backup "${backupId}" already, which was left as it is; take another id`;
  return new ServiceError('backup_already_exists', message);
}

function outcomeOf({ names, failures }: AttemptOutcome, { backupId, generation }: AttemptTarget): BackupOutcome {
  const tables = names.map((name): BackedUpTable => {
    const head = { name, backupId, artifactBackupId: generation };
    return failures.has(name)
      ? { ...head, status: 'failed', ...diagnosis(failures.get(name)) }
      : { ...head, status: 'completed' };
  });
  if (failures.size === 0) return { backupId, status: 'completed', tables };
  return { backupId, status: failures.size === names.length ? 'failed' : 'partial', tables };
}

/** A backup of tables by name needs each of them; one of every table needs an administrator. */
function requireBackup({ tableNames }: BackupRequest, caller: Caller): void {
  if (tableNames === undefined) requireAdmin(caller);
  for (const name of tableNames ?? []) requireTable(caller, name, 'admin', tableNotFound);
}

/** Internal errors are not described to the caller; the log has them. */
function diagnosis(error: unknown): Required<Pick<BackedUpTable, 'error' | 'code' | 'retryable'>> {
  if (!(error instanceof ServiceError)) {
    return { error: 'a fault of the server; the log has the details', code: 'internal', retryable: false };
  }
  const { code, message, retryable } = error;
  if (!isUnknown(error)) return { error: message, code, retryable };
  const advice = `${message}; it is not known whether the backup was published: list the backups before another attempt`;
  return { error: advice, code: 'backup_outcome_ambiguous', retryable: isErrorCode(code) && retryable };
}
