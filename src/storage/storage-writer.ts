import { armFailpoint } from '../lib/failpoint.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { ChannelServer, IncomingCall } from '../runtime/worker-channel.ts';
import { AppendRunner } from './append-runner.ts';
import { CatalogFile } from './catalog-file.ts';
import { catalogMigrations } from './catalog-migrations.ts';
import { DataDirectory } from './data-directory.ts';
import { OpenRanges } from './open-ranges.ts';
import { translateSqliteError } from './sqlite-error.ts';
import type { StartReport, StorageCalls, StorageFatal, WriterStart } from './storage-calls.ts';
import { WalKeeper } from './wal-keeper.ts';

type StorageCall = IncomingCall<StorageCalls>;

/** Rows of the change feed that one purge transaction looks at. */
const purgeRows = 2_000;

interface Running {
  directory: DataDirectory;
  catalog: CatalogFile;
  catalogWal: WalKeeper;
  ranges: OpenRanges;
  runner: AppendRunner;
}

/** Owns every SQLite write of a data directory. Lives in a worker thread; its calls arrive in order. */
export class StorageWriter {
  readonly #server: ChannelServer<StorageFatal>;
  #running: Running | undefined;
  /** Set once the disk has failed a sync: what the page cache holds cannot be believed any more. */
  #failure: ServiceError | undefined;

  constructor(server: ChannelServer<StorageFatal>) {
    this.#server = server;
  }

  handle(batch: readonly StorageCall[]): void {
    let position = 0;
    while (position < batch.length) {
      const appends: Extract<StorageCall, { name: 'append' }>[] = [];
      for (let call = batch[position]; call?.name === 'append'; call = batch[position]) {
        appends.push(call);
        position += 1;
      }
      if (appends.length > 0) this.#append(appends);
      else {
        const call = batch[position];
        if (call) this.#control(call);
        position += 1;
      }
    }
  }

  /** Work that no request waits for. */
  maintain(): void {
    if (!this.#running || this.#failure) return;
    const { catalogWal, ranges, directory } = this.#running;
    this.#maintainLog(catalogWal, directory.catalogFile);
    for (const range of ranges.all()) this.#maintainLog(range.wal, range.path);
  }

  #maintainLog(wal: WalKeeper, path: string): void {
    try {
      wal.maintain();
    } catch (error) {
      // A full or read-only disk is met again, and answered, by the next write.
      this.#report(error, path);
    }
  }

  #append(calls: readonly Extract<StorageCall, { name: 'append' }>[]): void {
    if (this.#failure || !this.#running) {
      for (const call of calls) call.reject(this.#failure ?? notRunning());
      return;
    }
    this.#running.runner.run(calls);
  }

  #control(call: StorageCall): void {
    try {
      if (this.#failure && call.name !== 'close') throw this.#failure;
      this.#dispatch(call);
    } catch (error) {
      call.reject(this.#report(error, this.#running?.directory.catalogFile));
    }
  }

  #dispatch(call: StorageCall): void {
    if (call.name === 'start') return call.resolve(this.#start(call.request));
    const running = this.#running;
    if (!running) throw notRunning();
    const { catalog, ranges } = running;
    switch (call.name) {
      case 'append':
        throw notRunning();
      case 'openRange': {
        const range = ranges.get(call.request.rangeId);
        range.ttlDurationMs = call.request.ttlDurationMs;
        return call.resolve({ snapshot: range.file.snapshot(), warnings: range.warnings });
      }
      case 'setLifetime':
        ranges.get(call.request.rangeId).ttlDurationMs = call.request.ttlDurationMs;
        return call.resolve(undefined);
      case 'closeRange':
        ranges.close(call.request.rangeId);
        return call.resolve(undefined);
      case 'purge': {
        const { file } = ranges.get(call.request.rangeId);
        return call.resolve(file.purge(call.request.throughSequence, purgeRows).removed);
      }
      case 'createTable': {
        const create = ranges.create.bind(ranges);
        return call.resolve(catalog.createTable(call.request, (id, first) => create(id, 1, first)));
      }
      case 'dropTable':
        this.#dropTable(running, call.request);
        return call.resolve(undefined);
      case 'changeTable':
        return call.resolve(catalog.changeTable(call.request));
      case 'checkpoint':
        this.#checkpoint(running, call.request.rangeId);
        return call.resolve(undefined);
      case 'close':
        this.#close(running);
        return call.resolve(undefined);
    }
  }

  #start({ root, failpoint }: WriterStart): StartReport {
    armFailpoint(failpoint);
    const directory = new DataDirectory(root);
    const { wal, database, warnings } = WalKeeper.open(directory.catalogFile, catalogMigrations);
    const catalog = new CatalogFile(database);
    const ranges = new OpenRanges(directory, catalog.reading);
    const report = (error: unknown, path: string) => this.#report(error, path);
    const runner = new AppendRunner(ranges, catalog, directory.catalogFile, report);
    this.#running = { directory, catalog, catalogWal: wal, ranges, runner };
    return { redone: runner.finishRedo(), warnings };
  }

  #dropTable({ catalog, ranges }: Running, { tableId, nowMs }: StorageCalls['dropTable'][0]): void {
    const table = catalog.reading.tableById(tableId);
    if (!table) throw new ServiceError('table_not_found', 'the table does not exist any more');
    // A range that is closed may have been written at any time up to now, never faster than a row a microsecond.
    let mark = nowMs * 1_000;
    for (const { rangeId } of table.ranges) {
      const open = ranges.find(rangeId);
      if (open) mark = Math.max(mark, open.file.snapshot().head);
    }
    catalog.dropTable(tableId, mark);
    for (const { rangeId } of table.ranges) ranges.remove(rangeId);
  }

  #checkpoint({ ranges, catalogWal }: Running, rangeId: number | undefined): void {
    if (rangeId !== undefined) return ranges.get(rangeId).wal.checkpoint();
    catalogWal.checkpoint();
    for (const range of ranges.all()) range.wal.checkpoint();
  }

  #close({ ranges, catalog, catalogWal, runner }: Running): void {
    this.#running = undefined;
    // After a failed sync nothing is written any more, not even a checkpoint.
    if (this.#failure) return;
    runner.forgetApplied();
    for (const range of [...ranges.all()]) ranges.close(range.file.rangeId);
    catalogWal.finish();
    catalog.close();
  }

  /** The error for the caller; the end of this writer when the disk has failed. */
  #report(error: unknown, path: string | undefined): unknown {
    const reported = path === undefined ? error : translateSqliteError(error, `${path}-wal-probe`);
    if (reported instanceof ServiceError && reported.code === 'storage_failed' && !this.#failure) {
      this.#failure = reported;
      const cause = reported.cause instanceof Error ? `: ${reported.cause.message}` : '';
      this.#server.emit({ kind: 'fatal', code: reported.code, message: `${path}${cause}` });
    }
    return reported;
  }
}

function notRunning(): ServiceError {
  return new ServiceError('unavailable', 'the storage is not running');
}
