import type { Database } from 'bun:sqlite';
import { closeSync, fdatasyncSync, fstatSync, openSync, writeSync } from 'node:fs';
import { failpoint } from '../lib/failpoint.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { type Migration, openWriter } from './connection.ts';
import { inspectWal } from './wal-inspection.ts';

const frameBytes = 4_096 + 24;
const headerBytes = 32;
/**
 * Space that is written with zeros ahead of the log. A commit into space that exists syncs in half the time of one
 * that grows the file (no change of size for the file system's own journal); SQLite ends recovery at the zeros.
 */
const firstSpaceBytes = 256 * 1_024;
const spaceGrowth = 4;
const spaceBytesMax = 16 * 1_024 * 1_024;
/** Frames after which the log is copied into the file and begun anew, when there is time for it. */
const checkpointFrames = Math.floor((spaceBytesMax - headerBytes) / frameBytes);
/** Frames after which that happens with requests waiting. */
const overdueFrames = 2 * checkpointFrames;

/** Keeps one file's write-ahead log: checked before SQLite sees it, with space ahead, checkpointed between writes. */
export class WalKeeper {
  readonly #database: Database;
  readonly #path: string;
  #spaceBytes = 0;
  /** Frames beyond which `maintain` has something to do: half of the space, or a checkpoint. */
  #framesDue = 0;
  /** At least the log's frames since it was last begun anew. */
  #framesEstimate = 0;

  private constructor(database: Database, path: string) {
    this.#database = database;
    this.#path = path;
  }

  /**
   * Opens a file for writing. After an unclean stop its log is walked first: damage in front of a whole transaction
   * is refused with `data_corrupted`, a torn end is reported as a warning and cut off. What the log held is then
   * copied into the file, so that nothing rests on pages which only the page cache has.
   */
  static open(
    path: string,
    migrations: readonly Migration[],
  ): { wal: WalKeeper; database: Database; warnings: string[] } {
    const warnings: string[] = [];
    const found = inspectWal(`${path}-wal`);
    if (found.state === 'damaged') {
      throw new ServiceError(
        'data_corrupted',
        `the write-ahead log of ${path} is damaged at byte ${found.damagedAtByte}, in front of committed transactions; ` +
          'the range takes no writes',
      );
    }
    if (found.state === 'torn') {
      warnings.push(`${path}: the last transaction of the write-ahead log was incomplete and is gone`);
    }
    const database = openWriter(path, migrations);
    if (found.state !== 'empty') database.run('PRAGMA wal_checkpoint(TRUNCATE)');
    return { wal: new WalKeeper(database, path), database, warnings };
  }

  /** Counts a commit that wrote about so many bytes of rows. */
  wrote(bytes: number, rows: number): void {
    // A row touches at most five pages; many rows share theirs.
    this.#framesEstimate += Math.ceil(bytes / 2_048) + Math.min(rows * 5, 64 + rows);
  }

  /** There is upkeep to do, or at least to look for. */
  get isDue(): boolean {
    return this.#framesEstimate > this.#framesDue;
  }

  get isOverdue(): boolean {
    return this.#framesEstimate > overdueFrames;
  }

  /** Between writes: checkpoints a long log, and keeps space ahead of a short one. */
  maintain(): void {
    this.#framesEstimate = this.#logFrames();
    if (this.#framesEstimate >= checkpointFrames) this.checkpoint();
    else if (this.isDue) this.#grow();
  }

  /** Copies what the log holds into the file. The log begins anew with the next write unless a reader still uses it. */
  checkpoint(): void {
    failpoint('storage.wal-checkpoint');
    this.#database.run('PRAGMA wal_checkpoint(PASSIVE)');
    this.#framesEstimate = 0;
  }

  /** Copies everything and empties the log, before a clean close. */
  finish(): void {
    this.#database.run('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  #logFrames(): number {
    const row = this.#database.query('PRAGMA wal_checkpoint(NOOP)').get() as { log: number; checkpointed: number };
    return row.log === row.checkpointed ? 0 : row.log;
  }

  #grow(): void {
    const target = Math.min(spaceBytesMax, Math.max(firstSpaceBytes, this.#spaceBytes * spaceGrowth));
    const descriptor = openSync(`${this.#path}-wal`, 'r+');
    try {
      const { size } = fstatSync(descriptor);
      if (size < target) {
        writeSync(descriptor, new Uint8Array(target - size), 0, target - size, size);
        fdatasyncSync(descriptor);
      }
    } finally {
      closeSync(descriptor);
    }
    this.#spaceBytes = target;
    this.#framesDue = target === spaceBytesMax ? checkpointFrames : Math.floor(target / frameBytes / 2);
  }
}
