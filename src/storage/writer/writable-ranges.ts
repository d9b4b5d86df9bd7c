import { mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../protocol/service-error.ts';
import type { CatalogQueries } from '../catalog/catalog-queries.ts';
import type { DataDirectory } from '../directory/data-directory.ts';
import { takeAway } from '../directory/removals.ts';
import { syncPath } from '../directory/synced-file.ts';
import { writeNewRangeFile } from '../range/new-range-file.ts';
import { rangeMigrations } from '../range/range-migrations.ts';
import { RangeWriter } from '../range/range-writer.ts';
import { WalMaintenance } from '../wal/wal-maintenance.ts';
import type { RangeId, RangeTtl } from '../write-request.ts';
import { PageCaches } from './page-caches.ts';

/** A range that the writer has open. */
export interface WritableRange {
  readonly file: RangeWriter;
  readonly wal: WalMaintenance;
  readonly path: string;
  ttl: RangeTtl;
  /** The findings of the opening that an operator should read. */
  readonly warnings: string[];
  /** Acknowledged changes that it lacks, at least. */
  readonly missingChanges: number;
}

/** Ranges that keep pages in memory; each some hundred kilobytes after a few writes. */
const cachedRangesMax = 256;

/** The events for the owner of the open ranges. */
interface RangeEvents {
  /** The write-ahead log of this file should be copied into it. */
  onLong(path: string): void;
  /** A file was opened that could not take what its log holds: the disk takes no writes, or this file does not. */
  onUnemptied(error: ServiceError): void;
}

/** The writer's open range files. */
export class WritableRanges {
  readonly #directory: DataDirectory;
  readonly #catalog: CatalogQueries;
  readonly #events: RangeEvents;
  readonly #open = new Map<RangeId, WritableRange>();
  readonly #caches = new PageCaches(cachedRangesMax);
  /** Kept so that nothing closes them, which would copy their logs. */
  readonly #left: WritableRange[] = [];

  constructor(directory: DataDirectory, catalog: CatalogQueries, events: RangeEvents) {
    this.#events = events;
    this.#directory = directory;
    this.#catalog = catalog;
  }

  /** Makes the durable, empty file of a new range. */
  create(rangeId: RangeId, generation: number, firstSequence: number): void {
    const directory = this.#directory.generationDirectory(rangeId, generation);
    // A crash before the catalog's commit leaves a directory that no row names, under an id that is given again.
    rmSync(this.#directory.rangeDirectory(rangeId), { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    writeNewRangeFile(this.#directory.documentsFile(rangeId, generation), rangeId, generation, firstSequence);
    for (const path of [directory, this.#directory.rangeDirectory(rangeId), this.#directory.ranges]) syncPath(path);
  }

  /**
   * Takes over `documents.db` and `indexes` of a folder in place of the range's own. The documents come last: a range with its
   * old ones is adopted again.
   */
  adopt(rangeId: RangeId, folder: string): void {
    const record = this.#catalog.range(rangeId);
    if (!record) throw new ServiceError('table_not_found', 'the table does not exist any more');
    this.close(rangeId);
    const directory = this.#directory.generationDirectory(rangeId, record.generation);
    const indexes = this.#directory.indexesDirectory(rangeId, record.generation);
    const documents = this.#directory.documentsFile(rangeId, record.generation);
    for (const path of [indexes, `${documents}-wal`, `${documents}-shm`])
      rmSync(path, { recursive: true, force: true });
    renameSync(join(folder, 'indexes'), indexes);
    syncPath(directory);
    renameSync(join(folder, 'documents.db'), documents);
    syncPath(directory);
  }

  get(rangeId: RangeId): WritableRange {
    const open = this.#open.get(rangeId);
    if (open) {
      open.wal.syncCopy();
      this.#caches.use(open.file);
      return open;
    }
    const record = this.#catalog.range(rangeId);
    if (!record) throw new ServiceError('table_not_found', 'the table does not exist any more');
    const path = this.#directory.documentsFile(rangeId, record.generation);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    // SQLite takes an empty file for a new one.
    if (size === 0) {
      throw new ServiceError('data_corrupted', `range ${rangeId} has lost its file; restore it from a backup`);
    }
    const name = `range ${rangeId}`;
    const { wal, warnings, database } = WalMaintenance.open(path, name, rangeMigrations);
    wal.onLong = () => this.#events.onLong(path);
    if (wal.unemptied) this.#events.onUnemptied(wal.unemptied);
    const file = new RangeWriter(database, (partId) => this.#catalog.hasPart(rangeId, partId));
    const missingChanges = Math.max(0, (this.#catalog.acknowledgedHead(rangeId) ?? 0) - file.snapshot().head);
    if (missingChanges > 0) warnings.push(`${name} lacks at least ${missingChanges} acknowledged changes`);
    const range: WritableRange = { file, wal, path, ttl: {}, warnings, missingChanges };
    this.#open.set(rangeId, range);
    this.#caches.use(file);
    return range;
  }

  find(rangeId: RangeId): WritableRange | undefined {
    return this.#open.get(rangeId);
  }

  all(): Iterable<WritableRange> {
    return this.#open.values();
  }

  /** `isSynced`: the file system was synced after the log was copied. */
  close(rangeId: RangeId, isSynced = false): void {
    const range = this.#open.get(rangeId);
    if (!range) return;
    this.#open.delete(rangeId);
    this.#caches.forget(range.file);
    range.wal.finish(isSynced);
    range.file.close();
  }

  /** Leaves a range as it is until the process ends: its log is copied into its file when it is next opened. */
  leave(rangeId: RangeId): void {
    const range = this.#open.get(rangeId);
    if (!range) return;
    this.#open.delete(rangeId);
    this.#caches.forget(range.file);
    this.#left.push(range);
  }

  /** Closes a range and takes its files away; returns where they wait for their removal. */
  remove(rangeId: RangeId): string {
    const range = this.#open.get(rangeId);
    if (range) this.#caches.forget(range.file);
    range?.file.discard();
    this.#open.delete(rangeId);
    return takeAway(this.#directory, rangeId);
  }
}
