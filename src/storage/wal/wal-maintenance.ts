import type { Database } from 'bun:sqlite';
import { closeSync, fstatSync, ftruncateSync, openSync } from 'node:fs';
import { failpoint } from '../../lib/failpoint.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { busyTimeoutMs, type Migration, openWriter, pageBytes } from '../connection.ts';
import { fileBytes } from '../directory/disk-usage.ts';
import { HeldFile } from '../directory/held-file.ts';
import { extendSynced, syncPath } from '../directory/synced-file.ts';
import { isRefused, translateStorageError } from '../storage-error.ts';
import { inspectWal } from './wal-inspection.ts';

const frameBytes = pageBytes + 24;
const headerBytes = 32;
/**
 * Space that is written with zeros ahead of the log. A commit into space that exists syncs in half the time of one
 * that grows the file (no change of size for the file system's own journal); SQLite ends recovery at the zeros.
 */
const firstSpaceBytes = 256 * 1_024;
const spaceGrowth = 4;
const spaceBytesMax = 16 * 1_024 * 1_024;
/** Frames after which the log is copied into the file, on another thread, and restarted. */
const longFrames = Math.floor((spaceBytesMax - headerBytes) / frameBytes);
/** Frames that the writer copies itself, between two writes, to let the log restart. */
const remainderFrames = 2_048;
/** Frames after which the writer copies whatever there is, because the other thread does not keep up. */
const overlongFrames = 4 * longFrames;
/** Frames after which a log that got no space is looked at again. */
const roomlessFrames = 64;
const catchUpPauseMs = 5;
const catchUpAttemptsMax = 400;
/** Bytes to which a log grows while a reader keeps it from being copied: a backup that reads one instant of a range. */
const pinnedBytesMax = 1_024 * 1_024 * 1_024;
const pinnedFrames = Math.floor(pinnedBytesMax / frameBytes);

interface LogFrames {
  /** 1 when another connection is copying. */
  busy: number;
  /** Frames in the log. */
  log: number;
  /** Of these, copied into the file. */
  checkpointed: number;
}

/** Keeps one file's write-ahead log: checked before SQLite sees it, with space ahead, checkpointed between writes. */
export class WalMaintenance {
  readonly #database: Database;
  readonly #path: string;
  readonly #file: HeldFile;
  readonly #log: HeldFile;
  /** Asks for a copy on another thread; `copied` is called when it has ended. */
  onLong: () => void = () => undefined;
  /** Why the log could not be emptied when the file was opened: by the disk, or by this file alone. */
  unemptied: ServiceError | undefined;
  #spaceBytes = 0;
  /** At least the log's frames since it was last restarted. */
  #framesEstimate = 0;
  /** Frames beyond which `maintain` has something to do. */
  #framesDue = 0;
  #isCopying = false;
  /** Pages copied from the log may be lost: the log must not begin again. */
  #hasUnsyncedCopy = false;

  private constructor(database: Database, path: string) {
    this.#database = database;
    this.#path = path;
    this.#file = new HeldFile(path);
    this.#log = new HeldFile(`${path}-wal`);
  }

  /**
   * Opens a file for writing; `name` is what people call it. After an unclean stop its log is walked first: damage in
   * front of a whole transaction is refused with `data_corrupted`, a torn end is reported as a warning and cut off.
   * What the log held is then copied into the file, so that nothing rests on pages which only the page cache has.
   */
  static open(
    path: string,
    name: string,
    migrations: readonly Migration[],
  ): { wal: WalMaintenance; database: Database; warnings: string[] } {
    const warnings: string[] = [];
    const found = inspectWal(`${path}-wal`);
    if (found.state === 'damaged') {
      throw new ServiceError(
        'data_corrupted',
        `the write-ahead log of ${name} is damaged at byte ${found.damagedAtByte}, in front of committed transactions; ` +
          'no writes are taken',
        { details: { path } },
      );
    }
    if (found.state === 'torn') {
      warnings.push(`${path}: the end of the write-ahead log is incomplete and was left out`);
    }
    const database = openWriter(path, migrations);
    const unemptied = found.state === 'empty' ? undefined : emptyLog(database, path);
    const wal = new WalMaintenance(database, path);
    wal.unemptied = unemptied;
    return { wal, database, warnings };
  }

  /** Counts a commit that wrote about this many bytes of rows. */
  wrote(bytes: number, rows: number): void {
    // A row touches at most five pages; many rows share theirs.
    this.#framesEstimate += Math.ceil(bytes / 2_048) + Math.min(rows * 5, 64 + rows);
  }

  /**
   * Throws `storage_failed` when the file or its log is not what the next start would find; to be asked before a transaction.
   * What only a log holds that was removed is copied into the file first.
   */
  checkPlace(): void {
    this.#file.check();
    const log = this.#log.look();
    if (log === 'gone') this.#tryToCopy();
    if (log !== 'held') this.#log.check();
  }

  #tryToCopy(): void {
    try {
      this.checkpoint();
    } catch {
      // The log is gone in any case, which is what the caller has to hear.
    }
  }

  /** Where a log was cut it has zeros now, which a copy would put into the file. */
  #refuseCutLog(): void {
    if (this.#log.look() === 'cut') this.#log.check();
  }

  /** There is upkeep to do, or at least to look for. */
  get isDue(): boolean {
    return this.#framesEstimate > this.#framesDue;
  }

  /** The upkeep cannot wait for a moment without requests. */
  get isOverdue(): boolean {
    const slack = this.#framesDue < overlongFrames ? longFrames : 0;
    return this.#framesEstimate > this.#framesDue + slack;
  }

  /** Between writes: has a long log copied, and keeps space ahead of a short one, of which `spareBytes` may be taken now. */
  maintain(spareBytes = Number.POSITIVE_INFINITY): void {
    this.#refuseCutLog();
    const { log } = this.#frames();
    this.#framesEstimate = log;
    if (log >= overlongFrames) this.#catchUp();
    else if (log >= longFrames && !this.#isCopying) {
      this.#isCopying = true;
      this.onLong();
    } else if (log < longFrames && this.isDue && !this.#grow(spareBytes)) {
      this.#framesDue = log + roomlessFrames;
      return;
    }
    this.#framesDue = this.#nextLook();
  }

  /** The other thread has copied what it found; what was written meanwhile is little, or is copied by the next checkpoint. */
  copied(failed: boolean): void {
    this.#isCopying = false;
    const { log, checkpointed } = this.#frames();
    this.#framesEstimate = log;
    if (failed) this.#framesDue = log + longFrames;
    else if (log - checkpointed <= remainderFrames) this.checkpoint();
    else this.maintain(0);
  }

  /**
   * Copies what the log holds into the file. The log begins again with the next write unless a reader still uses it.
   * Returns what kept it from copying all.
   */
  checkpoint(): 'nothing' | 'reader' | 'checkpointer' {
    failpoint('storage.wal-checkpoint');
    this.#refuseCutLog();
    const row = this.#database.query('PRAGMA wal_checkpoint(PASSIVE)').get() as LogFrames;
    this.#framesEstimate = row.log === row.checkpointed ? 0 : row.log;
    this.#framesDue = this.#nextLook();
    if (row.busy === 1) return 'checkpointer';
    return row.log === row.checkpointed ? 'nothing' : 'reader';
  }

  /**
   * As `checkpoint`, without waiting for the disk. The log has to stay as it is until the file is synced: by `syncCopy`,
   * which is to come before any other use of the file, or together with other files (`finish`). False when something kept
   * it from copying all.
   */
  copyUnsynced(): boolean {
    this.#hasUnsyncedCopy = true;
    this.#database.run('PRAGMA synchronous = OFF');
    try {
      return this.checkpoint() === 'nothing';
    } finally {
      this.#database.run('PRAGMA synchronous = FULL');
    }
  }

  /** Makes durable what `copyUnsynced` has copied, if it has. */
  syncCopy(): void {
    if (!this.#hasUnsyncedCopy) return;
    syncPath(this.#path);
    this.#hasUnsyncedCopy = false;
  }

  /**
   * Writes wait here until the log is short: what comes in faster than it can be copied would fill the disk. The other
   * thread may hold the copy's lock, for which SQLite itself does not wait. A reader that pins the log is not waited for
   * before the log has reached its bound: it may need long.
   */
  #catchUp(): void {
    for (let attempt = 0; attempt < catchUpAttemptsMax; attempt += 1) {
      const kept = this.checkpoint();
      if (this.#framesEstimate < longFrames) return;
      if (kept === 'reader' && this.#framesEstimate < pinnedFrames) return;
      Bun.sleepSync(catchUpPauseMs);
    }
  }

  /** On a full disk: gives back the space ahead. Returns its bytes. */
  cut(): number {
    this.checkPlace();
    const version = this.#version();
    const { log } = this.#database.query('PRAGMA wal_checkpoint(NOOP)').get() as LogFrames;
    // A log that begins again, or one that could not be looked at (-1), is for `empty`.
    if (log <= 0) return 0;
    const end = headerBytes + log * frameBytes;
    if (fileBytes(`${this.#path}-wal`) <= end) return 0;
    return this.#underLock((descriptor, size) => {
      // SQLite says outside of transactions only where a log ends: that holds as long as nobody else has written.
      if (this.#version() !== version) return 0;
      ftruncateSync(descriptor, end);
      this.#log.shortened();
      this.#spaceBytes = 0;
      return size - end;
    });
  }

  /**
   * On a full disk: copies the log into the file and empties it, where the file grows by `roomBytes` at most, unless somebody
   * uses the log now. Returns the bytes that it had.
   */
  empty(roomBytes: number): number {
    this.checkPlace();
    const bytes = fileBytes(`${this.#path}-wal`);
    // A copy that ends half way would keep what it took.
    if (bytes === 0 || this.growthBytes > roomBytes) return 0;
    this.syncCopy();
    this.#database.run('PRAGMA busy_timeout = 0');
    try {
      this.#database.run('PRAGMA wal_checkpoint(TRUNCATE)');
    } finally {
      this.#log.shortened();
      this.#database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    }
    const left = fileBytes(`${this.#path}-wal`);
    if (left === 0) [this.#spaceBytes, this.#framesEstimate, this.#framesDue] = [0, 0, 0];
    return bytes - left;
  }

  /** Copies everything and empties the log, before a clean close. `isSynced`: the file was synced after `copyUnsynced`. */
  finish(isSynced = false): void {
    this.#refuseCutLog();
    if (!isSynced) this.syncCopy();
    emptyLog(this.#database, this.#path);
  }

  /** Bytes that the file lacks of what it has with its log. */
  get growthBytes(): number {
    const { page_count } = this.#database.query('PRAGMA page_count').get() as { page_count: number };
    return page_count * pageBytes - fileBytes(this.#path);
  }

  /** Another one whenever another connection has committed. */
  #version(): number {
    return (this.#database.query('PRAGMA data_version').get() as { data_version: number }).data_version;
  }

  #frames(): LogFrames {
    const row = this.#database.query('PRAGMA wal_checkpoint(NOOP)').get() as LogFrames;
    return row.log === row.checkpointed ? { ...row, log: 0, checkpointed: 0 } : row;
  }

  #nextLook(): number {
    // Somebody else's reader can keep an overlong log from being copied: look again when it has grown.
    if (this.#framesEstimate >= overlongFrames) return this.#framesEstimate + longFrames;
    if (this.#isCopying || this.#framesEstimate >= longFrames) return overlongFrames;
    return this.#spaceBytes === spaceBytesMax ? longFrames : Math.floor(this.#spaceBytes / frameBytes / 2);
  }

  /** False when the space would take more than `spareBytes`. */
  #grow(spareBytes: number): boolean {
    const target = Math.min(spaceBytesMax, Math.max(firstSpaceBytes, this.#spaceBytes * spaceGrowth));
    if (target - this.#spaceBytes > spareBytes) return false;
    this.#underLock((descriptor, size) => {
      if (size < target) extend(descriptor, size, target);
    });
    this.#spaceBytes = target;
    return true;
  }

  /** Changes the log's file in a transaction, so that no connection appends a frame where the change is about to be. */
  #underLock<Result>(change: (descriptor: number, size: number) => Result): Result {
    const changed = this.#database.transaction(() => {
      const descriptor = openSync(`${this.#path}-wal`, 'r+');
      try {
        return change(descriptor, fstatSync(descriptor).size);
      } finally {
        closeSync(descriptor);
      }
    });
    return changed.immediate();
  }
}

/** Space that does not fit is given back: space ahead only saves time. */
function extend(descriptor: number, size: number, target: number): void {
  try {
    extendSynced(descriptor, size, new Uint8Array(target - size));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error;
  }
}

/**
 * Copies the log into the file and empties it. Where the disk or the file takes no more the log stays, and is synced: the file is
 * whole with it, and the next opening copies it. Returns what kept it from that.
 */
function emptyLog(database: Database, path: string): ServiceError | undefined {
  try {
    database.run('PRAGMA wal_checkpoint(TRUNCATE)');
    return undefined;
  } catch (error) {
    const reported = translateStorageError(error, path);
    if (!isRefused(error, reported)) throw error;
    syncPath(`${path}-wal`);
    return reported;
  }
}
