import type { Database } from 'bun:sqlite';
import { must } from '../../lib/assert.ts';
import { readRemovedTargets, removedTargetsPrefix } from '../../lib/parts/edge-notes.ts';
import type { CatalogQueries } from '../catalog/catalog-queries.ts';
import { openReader } from '../connection.ts';
import { StoredBodies } from '../packing/stored-bodies.ts';
import { ChangeFeed } from '../reader/change-feed.ts';
import { NoteStore } from '../reader/note-store.ts';
import type { CutPageRequest, CutRange, CutRemovedTargets, CutReport } from '../storage-calls.ts';
import type { FeedPage, RangeId } from '../write-request.ts';
import type { RedoRunner } from './redo-runner.ts';
import type { WritableRanges } from './writable-ranges.ts';

/** A range that a cut has open. */
interface HeldRange {
  database: Database;
  bodies: StoredBodies;
  feed: ChangeFeed;
}

/**
 * Holds several ranges at one instant, for a copy of them: a cut is made between two appends, so that a write over several
 * ranges is in all of them or in none. Its readers keep the write-ahead logs from being emptied until it is closed.
 */
export class RangeCuts {
  readonly #ranges: WritableRanges;
  readonly #catalog: CatalogQueries;
  readonly #redo: RedoRunner;
  readonly #open = new Map<number, Map<RangeId, HeldRange>>();
  #lastId = 0;

  constructor(ranges: WritableRanges, catalog: CatalogQueries, redo: RedoRunner) {
    this.#ranges = ranges;
    this.#catalog = catalog;
    this.#redo = redo;
  }

  /** Applies first the changes that the catalog has committed for a range. Fails with `table_not_found` after a drop. */
  open(rangeIds: readonly RangeId[]): CutReport {
    for (const rangeId of rangeIds) this.#redo.catchUp(rangeId);
    this.#lastId += 1;
    const cut = new Map<RangeId, HeldRange>();
    this.#open.set(this.#lastId, cut);
    try {
      const ranges = rangeIds.map((rangeId) => {
        const { path, file, wal } = this.#ranges.get(rangeId);
        const database = openReader(path);
        const bodies = new StoredBodies(database);
        const feed = new ChangeFeed(database, bodies, { name: `range ${rangeId}`, rangeId });
        cut.set(rangeId, { database, bodies, feed });
        database.run('BEGIN');
        // The instant of a reader is that of its first read.
        database.query('SELECT purged_through FROM range_identity').get();
        wal.checkPlace();
        return file.snapshot();
      });
      const tableIds = new Set(rangeIds.flatMap((rangeId) => this.#catalog.range(rangeId)?.tableId ?? []));
      const tables = [...tableIds].map((tableId) =>
        must(this.#catalog.definition(tableId), 'a range whose table is not there'),
      );
      return { cutId: this.#lastId, ranges, tables };
    } catch (error) {
      this.close(this.#lastId);
      throw error;
    }
  }

  /** The next changes of a range up to the cut, each document with all of these parts; undefined behind the last. */
  page({ cutId, rangeId, afterSequence, parts }: CutPageRequest): FeedPage | undefined {
    const range = must(this.#open.get(cutId)?.get(rangeId), 'a page of a cut that is not open');
    return range.feed.read(afterSequence, { documents: true, parts });
  }

  /** Notes on deleted documents to which edges may lead, as they are at the cut. */
  removedTargets({ cutId, rangeId }: CutRange): CutRemovedTargets[] {
    const { database } = must(this.#open.get(cutId)?.get(rangeId), 'a range of a cut that is not open');
    const notes = new NoteStore(database, { name: `range ${rangeId}`, rangeId });
    try {
      const found = notes.within(removedTargetsPrefix, Number.MAX_SAFE_INTEGER);
      return found.map(({ key, value }) => ({ note: key, targets: readRemovedTargets(value) }));
    } finally {
      notes.close();
    }
  }

  close(cutId: number): void {
    for (const { database, bodies, feed } of this.#open.get(cutId)?.values() ?? []) {
      feed.close();
      bodies.close();
      database.close();
    }
    this.#open.delete(cutId);
  }

  closeAll(): void {
    for (const cutId of [...this.#open.keys()]) this.close(cutId);
  }
}
