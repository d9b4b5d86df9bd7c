import type { JobRecord } from '../../storage/catalog/catalog-records.ts';

export const restoreKind = 'restore';

export type RestoreMode = 'fail_if_exists' | 'skip_if_exists' | 'overwrite';

/** Where a table of a restore stands. One that is `published` is not restored again, whatever happens. */
export interface RestoredTable {
  name: string;
  status: 'waiting' | 'published' | 'skipped' | 'failed';
  /** Tables of one number name each other's rows: they are published one behind the other. */
  group?: number;
  /**
   * The staged table that has all of its documents, and whose ranges no longer tell how
   * far they were loaded; one that is staged later is another.
   */
  loadedTableId?: number;
  /** Of one that failed. */
  code?: string;
  error?: string;
}

/** The saved state of a restore, in its job. */
export interface RestoreState {
  /** Tells the job that a request has made from one that it has found. */
  nonce: string;
  scope: 'cluster' | 'table';
  /** Of the scope `table`. */
  tableName?: string;
  backupId: string;
  location: string;
  connection: string;
  mode: RestoreMode;
  /** All of the backup unless given. */
  tableNames?: readonly string[];
  cancelRequested: boolean;
  /** Known once the backup was read. */
  tables?: RestoredTable[];
  /** In place of `tables` where some of them exist and may not: those are `failed`, and nothing was begun. */
  refused?: RestoredTable[];
  /** Why the restore as a whole has failed. */
  code?: string;
  error?: string;
}

/** Why a restore that was cancelled has no table more. */
export const cancelled = { code: 'cancelled', error: 'the restore was cancelled' };

type RestorePhase = JobRecord['phase'];
type RestoreEvent = 'started' | 'cancel' | 'boundary' | 'table failed' | 'all published' | 'fatal';

/**
 * The next step of a restore: it goes on as it is, or is in another phase from
 * then on. `ignore`: the event means nothing there.
 */
type Step = RestorePhase | 'stay' | 'ignore';

/**
 * The phases of a restore (specification, section 3). A cancellation ends a restore that waits at once, one that runs at the
 * next table that names no published one, and one that has published its last table no more. `boundary`: between two
 * tables, after a cancellation.
 */
export const restoreSteps: Readonly<Record<RestorePhase, Readonly<Record<RestoreEvent, Step>>>> = {
  queued: {
    started: 'running',
    cancel: 'cancelled',
    boundary: 'ignore',
    'table failed': 'ignore',
    'all published': 'ignore',
    fatal: 'failed',
  },
  running: {
    started: 'stay',
    cancel: 'stay',
    boundary: 'cancelled',
    'table failed': 'stay',
    'all published': 'succeeded',
    fatal: 'failed',
  },
  succeeded: ended(),
  failed: ended(),
  cancelled: ended(),
};

function ended(): Record<RestoreEvent, Step> {
  return {
    started: 'ignore',
    cancel: 'ignore',
    boundary: 'ignore',
    'table failed': 'ignore',
    'all published': 'ignore',
    fatal: 'ignore',
  };
}

/** The tables group by group. */
export function groupsIn(tables: readonly RestoredTable[]): RestoredTable[][] {
  const groups = new Map<number | string, RestoredTable[]>();
  for (const table of tables) {
    const key = table.group ?? table.name;
    groups.set(key, [...(groups.get(key) ?? []), table]);
  }
  return [...groups.values()];
}

/** Some tables of a group are published and others are not: what would be left now names rows that are gone. */
export function isHalfPublished(group: readonly RestoredTable[]): boolean {
  return group.some(({ status }) => status === 'published') && group.some(({ status }) => status === 'waiting');
}

/** A cancellation is noted in every phase, but for those that it has not reached in time to mean anything. */
export function notesCancellation(phase: RestorePhase): boolean {
  return phase !== 'failed' && phase !== 'cancelled';
}

/** The name of a table that nobody sees yet; no table of a user can have it. */
export function stagedName(jobId: number, table: string): string {
  return `restore:${jobId}:${table}`;
}

/** The job that a staged table belongs to. */
export function jobOfStaged(name: string): number | undefined {
  const found = /^restore:(\d+):/.exec(name);
  return found ? Number(found[1]) : undefined;
}
