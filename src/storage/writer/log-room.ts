import { ServiceError } from '../../protocol/service-error.ts';
import type { CatalogFile } from '../catalog/catalog-file.ts';
import { fileBytes } from '../directory/disk-usage.ts';
import { isFullDisk } from '../storage-error.ts';
import type { WalMaintenance } from '../wal/wal-maintenance.ts';
import type { DiskSpace } from './disk-space.ts';
import type { WritableRanges } from './writable-ranges.ts';

/** Logs that are emptied while a request waits. */
const logsAtOnce = 64;

/** The services of a log room. */
interface LogRoomDeps {
  ranges: WritableRanges;
  catalog: CatalogFile;
  space: DiskSpace;
  /** Translates a failure for callers. */
  report(error: unknown, path: string): unknown;
}

/** The room that write-ahead logs take on a full disk, and give back. */
export class LogRoom {
  readonly #deps: LogRoomDeps;

  constructor(deps: LogRoomDeps) {
    this.#deps = deps;
  }

  /**
   * Gives back the space that logs keep ahead, and empties up to `logsMax` of them, the longest first, where their files have
   * room for what they hold; writes wait for it. True when it gave back anything. Throws what nothing can follow.
   */
  giveBack(logsMax: number): boolean {
    const logs = this.#logs();
    const wasCut = logs.filter((log) => this.#gave(log, (wal) => wal.cut())).length > 0;
    const longestFirst = logs
      .map((log) => ({ ...log, bytes: fileBytes(`${log.path}-wal`) }))
      .sort((left, right) => right.bytes - left.bytes);
    let emptied = 0;
    for (const log of longestFirst) {
      if (emptied === logsMax) break;
      if (this.#gave(log, (wal) => wal.empty(this.#deps.space.freeBytes()))) emptied += 1;
    }
    return wasCut || emptied > 0;
  }

  /** The files of some logs have no room for what these hold, so that they cannot be emptied. */
  get lacksRoom(): boolean {
    const free = this.#deps.space.freeBytes();
    return this.#logs().some(({ wal }) => wal.growthBytes > free);
  }

  /**
   * Spends a part of the reserve. Logs come first: what files have no room for
   * now they may never have. False when there is none.
   */
  spendReserve(): boolean {
    if (!this.#deps.space.spend()) return false;
    this.giveBack(logsAtOnce);
    return true;
  }

  /**
   * Runs again what a full disk has refused, with the room of logs and then with more and more of the reserve. `again` returns
   * its failure, or undefined when it has worked. Returns the last one.
   */
  retry(failure: unknown, again: () => unknown): unknown {
    let last = this.retryWithLogs(failure, again);
    try {
      while (isFullDisk(last) && this.spendReserve()) last = again();
    } catch (error) {
      return error;
    }
    return last;
  }

  /** As `retry`, with the room of logs alone. */
  retryWithLogs(failure: unknown, again: () => unknown): unknown {
    try {
      return isFullDisk(failure) && this.giveBack(logsAtOnce) ? again() : failure;
    } catch (error) {
      return error;
    }
  }

  /** Of the files that nobody is writing to. */
  #logs(): { wal: WalMaintenance; path: string }[] {
    const { catalog, ranges } = this.#deps;
    return [catalog, ...[...ranges.all()].filter(({ file }) => !file.inTransaction)];
  }

  #gave({ wal, path }: { wal: WalMaintenance; path: string }, give: (wal: WalMaintenance) => number): boolean {
    try {
      return give(wal) > 0;
    } catch (error) {
      const reported = this.#deps.report(error, path);
      if (!(reported instanceof ServiceError) || reported.code === 'storage_failed') throw reported;
      return false;
    }
  }
}
