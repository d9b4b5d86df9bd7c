import type { Clock } from '../../lib/clock.ts';
import { armFailpoint } from '../../lib/failpoint.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { CallOf, ChannelServer, IncomingCall } from '../../runtime/worker-channel.ts';
import { CatalogFile } from '../catalog/catalog-file.ts';
import { catalogMigrations } from '../catalog/catalog-migrations.ts';
import type { TableRecord } from '../catalog/catalog-records.ts';
import { DataDirectory } from '../directory/data-directory.ts';
import { raiseDataFormat } from '../directory/data-format.ts';
import { hasHeader } from '../directory/file-header.ts';
import { HeldFile } from '../directory/held-file.ts';
import { sequenceAt } from '../sequence-at.ts';
import type { StartReport, StorageCalls, StorageEvent, TablePublication, WriterStart } from '../storage-calls.ts';
import { insufficientStorage, isFullDisk, isReadOnly, isSqliteError, translateStorageError } from '../storage-error.ts';
import { WalMaintenance } from '../wal/wal-maintenance.ts';
import type { RangeId, RefusedFile } from '../write-request.ts';
import { AcknowledgedHeads } from './acknowledged-heads.ts';
import { AppendRunner } from './append-runner.ts';
import { CommitTimings } from './commit-timings.ts';
import { DiskSpace } from './disk-space.ts';
import { LogRoom } from './log-room.ts';
import { RangeCuts } from './range-cuts.ts';
import { RedoRunner } from './redo-runner.ts';
import { RefusedFiles } from './refused-files.ts';
import { WritableRanges } from './writable-ranges.ts';

type StorageCall = IncomingCall<StorageCalls>;
type AppendCall = CallOf<StorageCalls, 'append'>;
type ControlName = Exclude<keyof StorageCalls & string, 'append'>;

/** Rows of the change feed that one purge transaction looks at. */
const purgeRows = 2_000;

/** Rows of a part whose definition was dropped that one transaction removes; each has a few kilobytes. */
const partRows = 256;

/** Time to the next look at a disk that takes no writes, or is too full for the reserve, in milliseconds. */
const retryMs = 1_000;

/** Calls that free space, or say how a job that does has ended, for which a full disk gives its reserve. */
const freeingCalls: ReadonlySet<ControlName> = new Set([
  'dropTable',
  'dropPart',
  'purge',
  'checkpoint',
  'walCheckpointed',
  'copyLog',
  'closeRange',
  'changeJob',
]);

interface Running {
  directory: DataDirectory;
  catalog: CatalogFile;
  ranges: WritableRanges;
  redo: RedoRunner;
  refused: RefusedFiles;
  runner: AppendRunner;
  space: DiskSpace;
  room: LogRoom;
  heads: AcknowledgedHeads;
  cuts: RangeCuts;
}

/** Owns every SQLite write of a data directory. Lives in a worker thread; its calls arrive in order. */
export class StorageWriter {
  readonly #server: ChannelServer<StorageEvent>;
  readonly #clock: Clock;
  readonly #commits: CommitTimings;
  #running: Running | undefined;
  /** Set once the disk has failed a sync: the contents of the page cache are unknown from then on. */
  #failure: ServiceError | undefined;

  constructor(server: ChannelServer<StorageEvent>, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
    this.#commits = new CommitTimings(clock, (commits) => server.emit({ kind: 'commits', commits }));
  }

  handle(batch: readonly StorageCall[]): void {
    let position = 0;
    while (position < batch.length) {
      const appends: AppendCall[] = [];
      for (let call = batch[position]; call?.name === 'append'; call = batch[position]) {
        appends.push(call);
        position += 1;
      }
      if (appends.length > 0) this.#append(appends);
      const call = batch[position];
      if (call && call.name !== 'append') {
        this.#control(call);
        position += 1;
      }
    }
    this.#maintainLogs((wal) => wal.isOverdue);
    this.#commits.flushWhenDue();
  }

  /** Work that no request waits for. */
  maintain(): void {
    this.#maintainLogs((wal) => wal.isDue);
  }

  #maintainLogs(chosen: (wal: WalMaintenance) => boolean): void {
    if (!this.#running || this.#failure) return;
    const { catalog, ranges, directory } = this.#running;
    if (chosen(catalog.wal)) this.#maintainLog(catalog.wal, directory.catalogFile);
    for (const range of ranges.all()) if (chosen(range.wal)) this.#maintainLog(range.wal, range.path);
  }

  #maintainLog(wal: WalMaintenance, path: string): void {
    try {
      wal.maintain(this.#running?.space.spareBytes());
    } catch (error) {
      // A full or read-only disk is met again, and answered, by the next write.
      this.#report(error, path);
    }
  }

  #append(calls: readonly AppendCall[]): void {
    if (this.#running && !this.#failure) this.#running.runner.run(calls);
    else for (const call of calls) call.reject(this.#failure ?? notRunning());
  }

  #control<Name extends ControlName>(call: { [Each in Name]: CallOf<StorageCalls, Each> }[Name]): void {
    const attempt = (): unknown => {
      try {
        if (this.#failure && call.name !== 'close') throw this.#failure;
        call.resolve(this.#handlers[call.name](call.request));
        return undefined;
      } catch (error) {
        return this.#report(error, this.#running?.directory.catalogFile);
      }
    };
    let failure = attempt();
    if (this.#running && freeingCalls.has(call.name)) failure = this.#running.room.retry(failure, attempt);
    if (failure !== undefined) call.reject(failure);
  }

  readonly #handlers: { [Name in ControlName]: (request: StorageCalls[Name][0]) => StorageCalls[Name][1] } = {
    start: (request) => this.#start(request),
    openRange: ({ rangeId, ttl, packsBodies }) => {
      const { ranges, catalog } = this.#live();
      const range = ranges.get(rangeId);
      range.ttl = ttl;
      range.file.packsBodies = packsBodies;
      if (ttl.durationMs !== undefined) range.file.indexTtlBases();
      const goneParts = range.file.state.partIds.filter((id) => !catalog.queries.hasPart(rangeId, id));
      return {
        snapshot: range.file.snapshot(),
        warnings: range.warnings,
        missingChanges: range.missingChanges,
        goneParts,
      };
    },
    looksSound: ({ rangeId, generation }) => {
      const { ranges, directory } = this.#live();
      return { isSound: ranges.find(rangeId) !== undefined || hasHeader(directory.documentsFile(rangeId, generation)) };
    },
    setTtl: ({ rangeId, ttl }) => {
      const range = this.#live().ranges.get(rangeId);
      range.ttl = ttl;
      if (ttl.durationMs !== undefined) range.file.indexTtlBases();
    },
    copyLog: ({ rangeId }) => ({ isWhole: this.#live().ranges.get(rangeId).wal.copyUnsynced() }),
    closeRange: ({ rangeId, isSynced }) => {
      this.#live().ranges.close(rangeId, isSynced);
    },
    leaveRange: ({ rangeId }) => {
      this.#live().ranges.leave(rangeId);
    },
    purge: ({ rangeId, throughSequence }) => {
      const { file, wal } = this.#live().ranges.get(rangeId);
      const report = file.purge(throughSequence, purgeRows);
      wal.wrote(0, report.removed);
      return report;
    },
    dropPart: ({ rangeId, partId }) => {
      const { file, wal } = this.#live().ranges.get(rangeId);
      const { removed, done } = file.dropPart(partId, partRows);
      wal.wrote(0, removed);
      return { done };
    },
    noteWallClock: ({ nowMs }) => {
      this.#live().catalog.noteWallClock(nowMs);
    },
    createTable: (table) => {
      const { catalog, ranges, space } = this.#live();
      if (space.isSpent) throw insufficientStorage();
      return catalog.createTable(table, (rangeId, firstSequence) => ranges.create(rangeId, 1, firstSequence));
    },
    adoptRange: ({ rangeId, folder }) => {
      this.#live().ranges.adopt(rangeId, folder);
    },
    dropTable: (request) => ({ removed: this.#dropTable(this.#live(), request) }),
    publishTable: (publication) => this.#publishTable(this.#live(), publication),
    cut: ({ rangeIds }) => this.#live().cuts.open(rangeIds),
    cutRemovedTargets: (request) => this.#live().cuts.removedTargets(request),
    cutPage: (request) => this.#live().cuts.page(request),
    endCut: ({ cutId }) => {
      this.#live().cuts.close(cutId);
    },
    saveRangeFacts: ({ facts }) => {
      this.#live().catalog.saveRangeFacts(facts);
    },
    changeTable: (change) => this.#live().catalog.changeTable(change),
    addJob: (job) => this.#live().catalog.addJob(job),
    changeJob: (change) => ({ changed: this.#live().catalog.changeJob(change) }),
    removeExpiredJobs: ({ nowMs }) => {
      this.#live().catalog.removeExpiredJobs(nowMs);
    },
    changeAccess: (change) => {
      this.#live().catalog.changeAccess(change);
    },
    walCheckpointed: ({ path, failure }) => {
      this.#walCheckpointed(this.#live(), path, failure);
    },
    upkeep: () => ({ nextMs: this.#upkeep(this.#live()) }),
    checkpoint: ({ rangeId }) => {
      this.#checkpoint(this.#live(), rangeId);
    },
    close: () => {
      this.#close(this.#live());
    },
  };

  #live(): Running {
    if (this.#running) return this.#running;
    throw notRunning();
  }

  #start({ root, failpoint, reserveBytes }: WriterStart): StartReport {
    armFailpoint(failpoint);
    const directory = new DataDirectory(root);
    const space = new DiskSpace(directory, reserveBytes, (condition) => this.#server.emit({ kind: 'disk', condition }));
    space.spendWhenFull();
    raiseDataFormat(directory);
    const { wal, database, warnings } = WalMaintenance.open(directory.catalogFile, 'the catalog', catalogMigrations);
    const catalog = new CatalogFile(directory.catalogFile, database, wal);
    const onLong = (path: string) => this.#server.emit({ kind: 'long-wal', path });
    wal.onLong = () => onLong(directory.catalogFile);
    if (wal.unemptied) noteDisk(space, wal.unemptied);
    const ranges = new WritableRanges(directory, catalog.queries, {
      onLong,
      onUnemptied: (error) => noteDisk(space, error),
    });
    const report = (error: unknown, path: string) => this.#report(error, path);
    const redo = new RedoRunner(ranges, catalog, report, (write) => this.#server.emit({ kind: 'redone', write }));
    const heads = new AcknowledgedHeads(this.#clock, (changed) => this.#saveHeads(changed));
    const lock = new HeldFile(directory.lockFile);
    const room = new LogRoom({ ranges, catalog, space, report });
    const onChange = (file: RefusedFile, reason?: string) => this.#server.emit({ kind: 'refusal', file, reason });
    const refused = new RefusedFiles({ ranges, catalog, redo, report, onChange });
    catalog.onFailed = (error) => refused.noteCatalog(error);
    const runner = new AppendRunner({
      ranges,
      catalog,
      commits: this.#commits,
      redo,
      refused,
      space,
      room,
      heads,
      lock,
      report,
    });
    const cuts = new RangeCuts(ranges, catalog.queries, redo);
    this.#running = { directory, catalog, ranges, redo, refused, runner, space, room, heads, cuts };
    const finished = redo.finishAtStart();
    const lastRangeId = catalog.queries.counter('range_id');
    return { ...finished, lastRangeId, warnings: [...warnings, ...finished.warnings] };
  }

  #saveHeads(heads: ReadonlyMap<RangeId, number>): void {
    if (!this.#running || this.#failure) return;
    const { catalog } = this.#running;
    try {
      catalog.noteHeads(heads);
    } catch (error) {
      // The next bundle says it again, or a later one.
      this.#report(error, catalog.path);
    }
  }

  /** Returns when to come again. */
  #upkeep(running: Running): number | undefined {
    const { redo, space, room } = running;
    // One log in each step, because writes wait for it.
    const gaveBack = space.condition === 'full' && (room.giveBack(1) || (room.lacksRoom && room.spendReserve()));
    redo.catchUpAll();
    while (redo.isPending && !gaveBack && room.spendReserve()) redo.catchUpAll();
    running.refused.tryAll();
    const nextMs = this.#recover(running);
    // There may be more to give back.
    if (gaveBack && space.condition === 'full') return 0;
    return running.refused.isEmpty ? nextMs : (nextMs ?? retryMs);
  }

  #recover({ redo, space, catalog }: Running): number | undefined {
    if (redo.isPending) return retryMs;
    try {
      if (space.condition !== 'writable') {
        if (!space.hasRoom()) return retryMs;
        catalog.tryWrite();
        space.recover();
      }
      if (space.fillStep()) return 0;
    } catch (error) {
      this.#report(error, catalog.path);
      return retryMs;
    }
    return space.lacksReserve ? retryMs : undefined;
  }

  #dropTable({ catalog, ranges }: Running, { tableId, nowMs, heads }: StorageCalls['dropTable'][0]): string[] {
    const table = catalog.queries.tableById(tableId);
    if (!table) throw new ServiceError('table_not_found', 'the table does not exist any more');
    catalog.dropTable(tableId, sequenceMark(ranges, table, heads, nowMs));
    return removed(ranges, table);
  }

  #publishTable({ catalog, ranges }: Running, publication: TablePublication) {
    const { replaces, heads, nowMs } = publication;
    const old = replaces === undefined ? undefined : catalog.queries.tableById(replaces);
    if (old) refuseOlder(catalog.queries.tableById(publication.tableId), lastSequence(ranges, old, heads));
    const table = catalog.publishTable(publication, old ? sequenceMark(ranges, old, heads, nowMs) : 0);
    return { table, removed: old ? removed(ranges, old) : [] };
  }

  #walCheckpointed({ directory, catalog, ranges }: Running, path: string, failure: string | undefined): void {
    // Pages that could not be synced into a file may be lost later.
    if (failure === 'storage_failed') throw new ServiceError('storage_failed', `${path}: ${failure}`);
    if (failure === 'insufficient_storage') this.#live().room.spendReserve();
    const range = [...ranges.all()].find((open) => open.path === path);
    const wal = path === directory.catalogFile ? catalog.wal : range?.wal;
    wal?.copied(failure !== undefined);
  }

  #checkpoint({ ranges, catalog }: Running, rangeId: number | undefined): void {
    if (rangeId === undefined) {
      catalog.wal.checkpoint();
      for (const range of ranges.all()) range.wal.checkpoint();
    } else {
      const { wal } = ranges.get(rangeId);
      wal.checkpoint();
      wal.checkPlace();
    }
  }

  #close({ ranges, catalog, runner, heads, cuts }: Running): void {
    if (!this.#failure) heads.flush();
    if (!this.#failure) runner.forgetApplied();
    this.#running = undefined;
    // After a failed sync nothing is written any more, not even a checkpoint.
    if (this.#failure) return;
    cuts.closeAll();
    for (const range of [...ranges.all()]) ranges.close(range.file.rangeId);
    catalog.wal.finish();
    catalog.close();
  }

  /** The error for the caller; the end of this writer when the disk has failed. */
  #report(error: unknown, path: string | undefined): unknown {
    const reported = path === undefined ? error : translateStorageError(error, path);
    if (!(reported instanceof ServiceError)) return reported;
    if (this.#running) noteDisk(this.#running.space, reported);
    if (reported.code === 'storage_failed' && !this.#failure) {
      this.#failure = reported;
      const reason = reported.cause instanceof Error ? reported.cause.message : reported.message;
      // An error that was not translated names its file by itself.
      this.#server.emit({ kind: 'fatal', message: reported === error ? reason : `${path}: ${reason}` });
    }
    return reported;
  }
}

/** Notes the condition of the disk where the failure tells it. */
function noteDisk(space: DiskSpace, failure: ServiceError): void {
  if (isFullDisk(failure)) space.note('full');
  if (isReadOnly(failure)) space.note('read_only');
}

/** Takes the files of a table away that the catalog has no more. Where a file cannot be closed, the next start removes them. */
function removed(ranges: WritableRanges, table: TableRecord): string[] {
  return table.ranges.flatMap(({ rangeId }) => {
    try {
      return [ranges.remove(rangeId)];
    } catch {
      return [];
    }
  });
}

/** Above every sequence that a table has given: no later table of its name gives one again. */
function sequenceMark(
  ranges: WritableRanges,
  table: TableRecord,
  heads: ReadonlyMap<RangeId, number>,
  nowMs: number,
): number {
  return Math.max(sequenceAt(nowMs), lastSequence(ranges, table, heads));
}

function lastSequence(ranges: WritableRanges, table: TableRecord, heads: ReadonlyMap<RangeId, number>): number {
  return Math.max(...table.ranges.map(({ rangeId }) => heads.get(rangeId) ?? headOrZero(ranges, rangeId)));
}

/** A version that the table which goes has given must not be given again by the one that takes its place. */
function refuseOlder(table: TableRecord | undefined, mark: number): void {
  if (table?.ranges.every(({ firstSequence }) => firstSequence > mark) !== false) return;
  const message = 'the table that is replaced was written so often meanwhile that its versions would come again';
  throw new ServiceError('transaction_conflict', message);
}

/** A damaged range can be dropped, too; the time of the drop stands in for its head. */
function headOrZero(ranges: WritableRanges, rangeId: RangeId): number {
  try {
    return ranges.get(rangeId).file.snapshot().head;
  } catch (error) {
    if (isSqliteError(error) || (error instanceof ServiceError && error.code === 'data_corrupted')) return 0;
    throw error;
  }
}

function notRunning(): ServiceError {
  return new ServiceError('unavailable', 'the storage is not running');
}
