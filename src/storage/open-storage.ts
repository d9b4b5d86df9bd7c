import { existsSync, mkdirSync } from 'node:fs';
import { type Clock, systemClock } from '../lib/clock.ts';
import { Health } from '../observability/health.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { openChannel, type WorkerChannel } from '../runtime/worker-channel.ts';
import { CatalogAccessStore } from './catalog/access-store.ts';
import { CatalogStore } from './catalog/catalog-store.ts';
import { CatalogJobStore } from './catalog/job-store.ts';
import { holdsChanges } from './check/range-check.ts';
import { DataDirectory, type NamedRange } from './directory/data-directory.ts';
import { DataDirectoryError } from './directory/data-directory-error.ts';
import { checkDataFormat, writeDataFormat } from './directory/data-format.ts';
import { DataLock } from './directory/data-lock.ts';
import { type DirectorySecrets, openSecrets } from './directory/directory-secrets.ts';
import { bytesBelow, fileBytes, fileStamp } from './directory/disk-usage.ts';
import { watchLock } from './directory/lock-watch.ts';
import { Removals } from './directory/removals.ts';
import { syncPath } from './directory/synced-file.ts';
import { RangeReader } from './reader/range-reader.ts';
import type {
  CutPageRequest,
  CutRange,
  CutRemovedTargets,
  CutReport,
  StorageCalls,
  StorageEvent,
} from './storage-calls.ts';
import { StorageFaults } from './storage-faults.ts';
import { WalCheckpointer } from './wal/wal-checkpointer.ts';
import type { AppliedWrite, EntryListener, FeedPage, RangeId, RangeTtl, WriteRequest } from './write-request.ts';
import type { CommitReport } from './writer/commit-timings.ts';
import { startWriterThread, type WriterThread } from './writer/writer-thread.ts';
import { WriterUpkeep } from './writer-upkeep.ts';

interface StorageOptions {
  directory: string;
  /** Whether a missing directory is made; it is unless this says otherwise. */
  creates?: boolean;
  clock: Clock;
  /** Name of the failpoint to arm in the writer, for crash tests. */
  failpoint?: string | undefined;
  /** Where faults of the disk and of files are raised. */
  health?: Health;
  /** Bytes of a file that makes room for deletes, committed writes and checkpoints on a full disk; 0 for none. */
  reserveBytes?: number;
  /** A thread that was started ahead; without one it is started here. */
  writer?: WriterThread | undefined;
  /** Told of the writer's commits, within a second or so. */
  onCommit?(commit: CommitReport): void;
  /** The disk failed or the writer died: nothing will be acknowledged any more, the process should end. */
  onFatal(error: Error): void;
  /** Work that no request waits for failed, and is done again after a pause. */
  onServiceFailed?(service: string, error: unknown, attempt: number): void;
}

/** The findings of the start-up. */
interface StorageStart {
  /** Writes over several ranges that had been committed and were finished now. */
  redone: number;
  warnings: string[];
  /** Paths that no catalog row named and that were removed. */
  removed: string[];
  /** Ranges that were not closed cleanly: their indexes may lack the newest rows. */
  unclean: RangeId[];
}

interface StorageDeps {
  directory: DataDirectory;
  lock: DataLock;
  clock: Clock;
  channel: WorkerChannel<StorageCalls>;
  checkpointer: WalCheckpointer;
  faults: StorageFaults;
  start: StorageStart;
  onFatal(error: Error): void;
  onServiceFailed(service: string, error: unknown, attempt: number): void;
}

/** An open data directory. */
export class Storage {
  readonly catalog: CatalogStore;
  readonly jobs: CatalogJobStore;
  readonly access: CatalogAccessStore;
  readonly directory: DataDirectory;
  readonly start: StorageStart;
  readonly secrets: DirectorySecrets;
  readonly #deps: StorageDeps;
  readonly #channel: WorkerChannel<StorageCalls>;
  readonly #open = new Map<RangeId, RangeReader>();
  readonly #listeners = new Map<RangeId, Set<EntryListener>>();
  readonly #listenersOfAll: EntryListener[] = [];
  readonly #faults: StorageFaults;
  readonly #removals: Removals;
  readonly #closing = new AbortController();
  readonly #upkeep: WriterUpkeep;
  readonly #looking: Promise<unknown>;
  /** Calls of the writer that may commit something which this thread is yet to be told of. */
  #committing = 0;

  constructor(deps: StorageDeps) {
    const { directory, channel, start, faults, clock, onFatal, onServiceFailed: onFailed } = deps;
    this.#deps = deps;
    this.directory = directory;
    this.#faults = faults;
    this.#removals = new Removals({ clock, onFailed });
    this.jobs = new CatalogJobStore(directory.catalogFile, channel);
    this.access = new CatalogAccessStore(directory.catalogFile, channel);
    this.catalog = new CatalogStore(directory.catalogFile, channel, this.#removals);
    this.start = start;
    this.secrets = openSecrets(directory);
    this.#channel = channel;
    const named = this.#namedRanges();
    start.unclean.push(...directory.uncleanRanges(named));
    // A catalog that lost its last transaction may not name a range that it should: better a stray than a loss.
    if (start.warnings.length === 0) {
      const { removed, left } = directory.removeStrays(named);
      start.removed.push(...removed);
      if (left.length > 0) this.#removals.add(left);
    }
    this.#upkeep = new WriterUpkeep({ step: () => this.#keepUpOnce(), clock, onFailed });
    this.keepUp();
    // The disk's own time, whatever the clock of the data says.
    const watching = watchLock(deps.lock.file, systemClock, this.#closing.signal).catch(onFatal);
    // A writer that has failed says so by itself.
    const looking = this.#lookAtFiles().catch(() => undefined);
    this.#looking = Promise.all([looking, watching]);
  }

  /** A damaged or lost file of a range is known soon after the start, and not when somebody asks for a document. */
  async #lookAtFiles(): Promise<void> {
    for (const { rangeId, generation } of this.catalog.ranges()) {
      if (this.#closing.signal.aborted) return;
      const { isSound } = await this.#channel.call('looksSound', { rangeId, generation });
      // It may have been dropped meanwhile.
      if (isSound || this.catalog.range(rangeId)?.generation !== generation) continue;
      this.#faults.readsOf(rangeId).fileDamaged?.();
    }
  }

  #namedRanges(): Map<RangeId, NamedRange> {
    const indexes = Map.groupBy(this.catalog.incarnations(), ({ tableId }) => tableId);
    const ranges = this.catalog.ranges().map(({ rangeId, tableId, generation }) => {
      const incarnations = new Set(indexes.get(tableId)?.map(({ incarnation }) => incarnation));
      return [rangeId, { generation, incarnations }] as const;
    });
    return new Map(ranges);
  }

  /**
   * Opens a range of the catalog, or returns the open one. `packsBodies`: what is written to it is packed with
   * dictionaries of its own; not for relational tables, whose columns SQLite reads in the bodies. Fails with
   * `data_corrupted` when its log is damaged.
   */
  async openRange(rangeId: RangeId, ttl: RangeTtl = {}, packsBodies = false): Promise<RangeReader> {
    const request = { rangeId, ttl, packsBodies };
    const opened = await this.#faults.opening(rangeId, this.#channel.call('openRange', request));
    const existing = this.#open.get(rangeId);
    if (existing) return existing;
    const path = this.directory.documentsFile(rangeId, opened.snapshot.generation);
    const source = this.#faults.readsOf(rangeId);
    const onClose = () => this.#open.delete(rangeId);
    const isTold = () => this.#committing === 0;
    const range = new RangeReader(path, { opened, channel: this.#channel, source, isTold, onClose });
    this.#open.set(rangeId, range);
    for (const partId of opened.goneParts) {
      // One that fails is tried again when the range is next opened; until then it costs only space.
      void range.dropPart(partId).catch(() => undefined);
    }
    return range;
  }

  /**
   * Commits a request durably, all of it or nothing; one answer for each of its writes, in their order. The buffers of
   * its frames are given away. Concurrent requests share a sync.
   */
  async append(request: WriteRequest): Promise<AppliedWrite[]> {
    const buffers = new Set(request.writes.flatMap(({ frame }) => (frame ? [frame.buffer] : [])));
    const applied = await this.#untilTold(async () => {
      const answered = await this.#faults.writing(this.#channel.call('append', request, [...buffers]));
      for (const write of answered) this.#applied(write);
      return answered;
    });
    for (const { rangeId } of applied.filter(({ isLater }) => isLater)) this.#faults.fellBehind(rangeId);
    if (applied.some(({ isLater }) => isLater)) this.keepUp();
    return applied;
  }

  /**
   * Puts files that were copied from another range, synced and adopted (`adoptImage`), in the place of those of a closed range
   * that has no documents yet. Durable when it resolves.
   */
  async adoptRange(rangeId: RangeId, folder: string): Promise<void> {
    await this.#channel.call('adoptRange', { rangeId, folder });
  }

  /** Removes a directory that nothing uses any more, behind all that is to be removed already. */
  remove(path: string): void {
    this.#removals.add([path]);
  }

  /** Forgets the faults of a range that was dropped. */
  forgetRange(rangeId: RangeId): void {
    this.#faults.health.forgetRange(rangeId);
  }

  /** A range has taken what a full disk had kept from it. */
  noteRedone(write: AppliedWrite): void {
    this.#applied(write);
  }

  /** Calls `listener` with every entry that the range takes from now on. Returns what ends the subscription. */
  subscribe(rangeId: RangeId, listener: EntryListener): () => void {
    const listeners = this.#listeners.get(rangeId) ?? new Set();
    this.#listeners.set(rangeId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(rangeId) === listeners) this.#listeners.delete(rangeId);
    };
  }

  /** As `subscribe`, for the entries of all ranges, open or not. */
  subscribeAll(listener: EntryListener): void {
    this.#listenersOfAll.push(listener);
  }

  /** A call that commits, or that has ranges take what a full disk had kept from them, and what follows from its answer. */
  async #untilTold<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    this.#committing += 1;
    try {
      return await call();
    } finally {
      this.#committing -= 1;
    }
  }

  #applied(write: AppliedWrite): void {
    const { rangeId, images } = write;
    this.#open.get(rangeId)?.noteApplied(write);
    if (!images) return;
    const entry = { ...write, images };
    for (const listener of this.#listenersOfAll) listener(entry);
    for (const listener of this.#listeners.get(rangeId) ?? []) listener(entry);
  }

  /** Has the writer do what no request waits for, until nothing is left. */
  keepUp(): void {
    this.#upkeep.wake();
  }

  async #keepUpOnce(): Promise<number | undefined> {
    try {
      return (await this.#untilTold(() => this.#channel.call('upkeep', undefined))).nextMs;
    } catch (error) {
      // A writer that has failed says so by itself.
      if (error instanceof ServiceError && error.code === 'storage_failed') return undefined;
      throw error;
    }
  }

  /**
   * Opens ranges at one instant, between two writes. The write-ahead logs are kept from being emptied until `endCut`, so
   * that has to come soon.
   */
  cut(rangeIds: readonly RangeId[]): Promise<CutReport> {
    return this.#untilTold(() => this.#channel.call('cut', { rangeIds }));
  }

  /** The next changes of a range up to the cut, each document with all of these parts; undefined behind the last. */
  cutPage(request: CutPageRequest): Promise<FeedPage | undefined> {
    return this.#channel.call('cutPage', request);
  }

  /** Notes of a range on deleted documents to which edges may lead, as they are at the cut. */
  cutRemovedTargets(request: CutRange): Promise<CutRemovedTargets[]> {
    return this.#channel.call('cutRemovedTargets', request);
  }

  endCut(cutId: number): Promise<void> {
    return this.#channel.call('endCut', { cutId });
  }

  /** The file with the documents of a range. Fails with `table_not_found`. */
  rangeFile(rangeId: RangeId): string {
    const record = this.catalog.range(rangeId);
    if (!record) throw new ServiceError('table_not_found', 'the table does not exist any more');
    return this.directory.documentsFile(rangeId, record.generation);
  }

  /** Tells one state of a closed range's documents from another; undefined when their file is missing. */
  rangeStamp(rangeId: RangeId): string | undefined {
    const record = this.catalog.range(rangeId);
    return record && fileStamp(this.directory.documentsFile(rangeId, record.generation));
  }

  /** Bytes of the catalog's write-ahead log. */
  catalogLogBytes(): number {
    return fileBytes(`${this.directory.catalogFile}-wal`);
  }

  /** Bytes of all files of a range, open or not. */
  rangeDiskBytes(rangeId: RangeId): number {
    return bytesBelow(this.directory.rangeDirectory(rangeId));
  }

  /** Copies the write-ahead logs into their files; of one range or of everything open. */
  async walCheckpoint(rangeId?: RangeId): Promise<void> {
    await this.#channel.call('checkpoint', rangeId === undefined ? {} : { rangeId });
  }

  /** Closes everything that is open, after what has been asked before. The lock is given back in any case. */
  async close(): Promise<void> {
    this.#closing.abort();
    try {
      await this.#upkeep.stop();
      await this.#looking;
      for (const range of this.#open.values()) await range.close();
      await this.#removals.close();
      this.catalog.close();
      this.jobs.close();
      await this.#deps.checkpointer.close();
      await this.#channel.call('close', undefined);
    } finally {
      this.#channel.terminate();
      this.#deps.lock.release();
    }
  }
}

/**
 * Opens (or makes) a data directory: refuses a newer format, takes the lock, starts the writer, finishes redo. Fails
 * with a `DataDirectoryError` when the directory cannot be used.
 */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  const directory = new DataDirectory(options.directory);
  const { creates = true } = options;
  directory.refuseLongPath();
  if (creates) directory.make();
  const hasFormat = checkDataFormat(directory);
  if (!hasFormat && !creates) throw notThere(directory);
  if (!hasFormat) directory.refuseForeign();
  if (hasFormat && !existsSync(directory.catalogFile)) {
    throw new DataDirectoryError(
      'damaged',
      `${directory.root} has lost its catalog.db`,
      'restore the directory from a backup: without its catalog no table can be found',
    );
  }
  const lock = DataLock.acquire(directory);
  let writer: WriterThread;
  try {
    directory.refuseFixedCatalog();
    mkdirSync(directory.ranges, { recursive: true });
    writer = options.writer ?? startWriterThread();
  } catch (error) {
    lock.release();
    throw error;
  }
  const { worker, failure } = writer;
  let storage: Storage | undefined;
  const faults = new StorageFaults(options.health ?? new Health(), directory);
  const onEvent = (event: StorageEvent) => {
    switch (event.kind) {
      case 'long-wal':
        return checkpointer.request(event.path);
      case 'commits':
        for (const commit of event.commits) options.onCommit?.(commit);
        return;
      case 'disk':
        faults.disk(event.condition);
        return storage?.keepUp();
      case 'refusal':
        faults.refusal(event.file, event.reason);
        return storage?.keepUp();
      case 'redone':
        faults.caughtUp(event.write.rangeId);
        return storage?.noteRedone(event.write);
      case 'fatal':
        return options.onFatal(new ServiceError('storage_failed', event.message));
    }
  };
  const channel = openChannel<StorageCalls, StorageEvent>(worker, {
    onEvent,
    onFailure: (error) => options.onFatal(error),
  });
  const checkpointer = new WalCheckpointer(channel, options.onFatal);
  try {
    const { failpoint, reserveBytes = 0, clock } = options;
    const started = channel.call('start', { root: directory.root, failpoint, reserveBytes });
    const report = await Promise.race([started, failure]);
    refuseShortCatalog(directory, report.lastRangeId);
    for (const rangeId of report.behind) faults.fellBehind(rangeId);
    if (!hasFormat) writeDataFormat(directory);
    syncPath(directory.root);
    storage = new Storage({
      directory,
      lock,
      clock,
      channel,
      checkpointer,
      faults,
      start: { ...report, removed: [], unclean: [] },
      onFatal: options.onFatal,
      onServiceFailed: (...failure) => options.onServiceFailed?.(...failure),
    });
    return storage;
  } catch (error) {
    channel.terminate();
    lock.release();
    if (isDamage(error)) throw damagedCatalog(directory, error);
    throw lacksRoom(error) ? fullDisk(directory, error) : error;
  }
}

function isDamage(error: unknown): error is Error {
  return (
    error instanceof Error &&
    'code' in error &&
    /^(SQLITE_NOTADB|SQLITE_CORRUPT|data_corrupted)/.test(String(error.code))
  );
}

/** A range that the catalog has yet to name is empty; one with documents was named by a change that the catalog has lost. */
function refuseShortCatalog(directory: DataDirectory, lastRangeId: RangeId): void {
  const lost = directory.rangeIds().find((rangeId) => rangeId > lastRangeId && holdsChanges(directory, rangeId));
  if (lost === undefined) return;
  throw new DataDirectoryError(
    'damaged',
    `${directory.catalogFile} has lost its last changes: ${directory.rangeDirectory(lost)} belongs to a table that it does not name`,
    `restore catalog.db-wal or the directory from a backup, or move ranges/${lost} elsewhere to go on without it`,
  );
}

/** Not even the few kilobytes of shared memory that SQLite keeps beside an open file. */
function lacksRoom(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC', 'EDQUOT', 'insufficient_storage'].includes(code);
}

function fullDisk(directory: DataDirectory, cause: unknown): DataDirectoryError {
  const hint = 'Free some space on it. The option storage.reserve keeps room for a start.';
  return new DataDirectoryError('not_writable', `the disk of ${directory.root} is full`, hint, cause);
}

function damagedCatalog(directory: DataDirectory, cause: Error): DataDirectoryError {
  const hint = 'Run "sundew check" for what is wrong, and restore the directory from a backup.';
  return new DataDirectoryError('damaged', `${directory.catalogFile} cannot be read: ${cause.message}`, hint, cause);
}

function notThere({ root }: DataDirectory): DataDirectoryError {
  const hint = 'mount or restore it, or let "storage.create" be true to make a new one';
  return new DataDirectoryError('missing', `${root} is no data directory, and none may be made`, hint);
}
