import type { WorkerChannel } from '../../runtime/worker-channel.ts';
import { fileBytes } from '../directory/disk-usage.ts';
import type { RangeSnapshot } from '../range/range-snapshot.ts';
import { RequestAnswers } from '../range/request-answers.ts';
import type { StorageCalls } from '../storage-calls.ts';
import type { ReadSource } from '../storage-error.ts';
import type { AppliedWrite, RangeId } from '../write-request.ts';
import { ChangeFeed } from './change-feed.ts';
import { DocumentStore } from './document-store.ts';
import { NoteStore } from './note-store.ts';
import { PartStore } from './part-store.ts';

/** An open range: reads on the calling thread, its place in the log, and upkeep through the writer. */
export class RangeReader {
  readonly rangeId: RangeId;
  readonly documents: DocumentStore;
  readonly parts: PartStore;
  readonly notes: NoteStore;
  readonly feed: ChangeFeed;
  /** What keyed requests did. */
  readonly answers: RequestAnswers;
  /** What opening found that an operator should read. */
  readonly warnings: readonly string[];
  readonly #channel: WorkerChannel<StorageCalls>;
  readonly #onClose: () => void;
  readonly #path: string;
  #snapshot: RangeSnapshot;
  #isClosed = false;

  constructor(
    path: string,
    how: {
      opened: StorageCalls['openRange'][1];
      channel: WorkerChannel<StorageCalls>;
      source: ReadSource;
      onClose: () => void;
    },
  ) {
    const { opened, channel, source, onClose } = how;
    this.rangeId = opened.snapshot.rangeId;
    this.#path = path;
    this.documents = new DocumentStore(path, source);
    this.parts = new PartStore(this.documents.database, source);
    this.notes = new NoteStore(this.documents.database, source);
    this.feed = new ChangeFeed(this.documents.database, source);
    this.answers = new RequestAnswers(this.documents.database);
    this.warnings = opened.warnings;
    this.#snapshot = opened.snapshot;
    this.#channel = channel;
    this.#onClose = onClose;
  }

  /** As of the last answered write. */
  info(): RangeSnapshot {
    return this.#snapshot;
  }

  /** Bytes of the documents' file and its write-ahead log. */
  fileBytes(): number {
    return fileBytes(this.#path) + this.logBytes();
  }

  /** Bytes of the write-ahead log, with the space that is kept ahead of it. */
  logBytes(): number {
    return fileBytes(`${this.#path}-wal`);
  }

  /** Takes over what an answered write says; older answers change nothing. */
  noteApplied({ header, images, totals }: AppliedWrite): void {
    if (!images || images.lastSequence <= this.#snapshot.head) return;
    this.#snapshot = { ...this.#snapshot, ...totals, head: images.lastSequence, entryIndex: header.index };
  }

  /** TTL by which the writer judges read sets and transforms; undefined for none. */
  setTtl(ttlDurationMs: number | undefined): Promise<void> {
    return this.#channel.call('setTtl', { rangeId: this.rangeId, ttlDurationMs });
  }

  /**
   * Forgets tombstones and superseded changes up to `throughSequence`: at most the lowest checkpoint of all indexes
   * of the range. Works in small transactions, between which writes go on; returns the rows removed.
   */
  async purgeTombstones(throughSequence: number): Promise<number> {
    let removed = 0;
    for (;;) {
      const report = await this.#channel.call('purge', { rangeId: this.rangeId, throughSequence });
      removed += report.removed;
      if (report.done) return removed;
    }
  }

  /**
   * Removes the rows of a part that is not in the catalog any more, in small transactions. What a stop leaves is
   * removed when the range is next opened.
   */
  async dropPart(partId: number): Promise<void> {
    while (!this.#isClosed) {
      const { done } = await this.#channel.call('dropPart', { rangeId: this.rangeId, partId });
      if (done) return;
    }
  }

  async close(): Promise<void> {
    this.#closeReaders();
    await this.#channel.call('closeRange', { rangeId: this.rangeId });
  }

  /** As `close` when the process ends soon: the log is copied into the file when the range is next opened. */
  async leave(): Promise<void> {
    this.#closeReaders();
    await this.#channel.call('leaveRange', { rangeId: this.rangeId });
  }

  /** Ends the reads of a range that is about to be removed; the writer closes it then. */
  detach(): void {
    this.#closeReaders();
  }

  #closeReaders(): void {
    this.#isClosed = true;
    this.#onClose();
    this.parts.close();
    this.notes.close();
    this.feed.close();
    this.documents.close();
  }
}
