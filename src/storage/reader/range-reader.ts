import { assert } from '../../lib/assert.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import type { WorkerChannel } from '../../runtime/worker-channel.ts';
import { fileBytes } from '../directory/disk-usage.ts';
import { HeldFile } from '../directory/held-file.ts';
import { type RangeSnapshot, versionOf } from '../range/range-snapshot.ts';
import type { RequestAnswers } from '../range/request-answers.ts';
import type { StorageCalls } from '../storage-calls.ts';
import type { ReadSource } from '../storage-error.ts';
import type { AppliedWrite, RangeId, RangeTtl } from '../write-request.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { DocumentStore } from './document-store.ts';
import type { NoteStore } from './note-store.ts';
import type { PartStore } from './part-store.ts';
import { RangeStores } from './range-stores.ts';

/** An open range: reads on the calling thread, its place in the log, and upkeep through the writer. */
export class RangeReader {
  readonly rangeId: RangeId;
  /** The findings of the opening that an operator should read. */
  readonly warnings: readonly string[];
  readonly #channel: WorkerChannel<StorageCalls>;
  readonly #isTold: () => boolean;
  readonly #onClose: () => void;
  readonly #path: string;
  readonly #source: ReadSource;
  /** The file and its log, as the writer has them open. */
  readonly #file: HeldFile;
  readonly #log: HeldFile;
  /** Opened with the first read: what is only written needs no second connection. */
  #stores: RangeStores | undefined;
  #snapshot: RangeSnapshot;
  #isClosed = false;

  constructor(
    path: string,
    how: {
      opened: StorageCalls['openRange'][1];
      channel: WorkerChannel<StorageCalls>;
      source: ReadSource;
      /** The writer is at nothing that it is yet to tell of. */
      isTold: () => boolean;
      onClose: () => void;
    },
  ) {
    const { opened, channel, source, isTold, onClose } = how;
    this.rangeId = opened.snapshot.rangeId;
    this.#path = path;
    this.#source = source;
    this.#file = new HeldFile(path);
    this.#log = new HeldFile(`${path}-wal`);
    this.warnings = opened.warnings;
    this.#snapshot = opened.snapshot;
    this.#channel = channel;
    this.#isTold = isTold;
    this.#onClose = onClose;
  }

  get documents(): DocumentStore {
    return this.#open().documents;
  }

  get parts(): PartStore {
    return this.#open().parts;
  }

  get notes(): NoteStore {
    return this.#open().notes;
  }

  get feed(): ChangeFeed {
    return this.#open().feed;
  }

  /** The answers of keyed requests. */
  get answers(): RequestAnswers {
    return this.#open().answers;
  }

  #open(): RangeStores {
    assert(!this.#isClosed, 'a read of a range that was closed');
    this.#stores ??= this.#openStores();
    return this.#stores;
  }

  /** Throws `storage_failed` where the files at the path are not those that the writer has open, which it is told of. */
  #openStores(): RangeStores {
    // Before, because SQLite makes files beside the one that it opens; after, because it opens by name.
    this.#checkPlace();
    try {
      return new RangeStores(this.#path, this.#source);
    } finally {
      this.#checkPlace();
    }
  }

  #checkPlace(): void {
    try {
      this.#file.check();
      // On a full disk the writer makes the log shorter, so only the writer knows its length.
      if (this.#log.look() === 'gone') this.#log.check();
    } catch (error) {
      // The writer looks for itself: where it finds the same, the process ends.
      void this.#channel.call('checkpoint', { rangeId: this.rangeId }).catch(() => undefined);
      throw error;
    }
  }

  /** Runs reads, none of which waits for anything, that all see the range as of one moment. */
  atOneInstant<Result>(read: () => Result): Result {
    return this.#open().atOneInstant(read);
  }

  /** The file of the documents. */
  get path(): string {
    return this.#path;
  }

  /** Tells of damage that another thread has found in the file: `data_corrupted`, of a document where the details have a key. */
  noteDamage({ details }: ServiceError): void {
    if (typeof details?.key === 'string') this.#source.documentDamaged?.(details.key);
    else this.#source.fileDamaged?.();
  }

  /** As of the last answered write. */
  info(): RangeSnapshot {
    return this.#snapshot;
  }

  /** Last sequence that a read sees now. A commit is in the file a moment before the writer has told of it. */
  committedHead(): number {
    if (this.#isTold()) return this.#snapshot.head;
    return Math.max(this.feed.lastSequence(), this.#snapshot.head);
  }

  /** The version of a row to clients. */
  versionOf({ sequence }: { sequence: number }): number {
    return versionOf(this.#snapshot, sequence);
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

  /** The TTL by which the writer judges what comes from now on. */
  setTtl(ttl: RangeTtl): Promise<void> {
    return this.#channel.call('setTtl', { rangeId: this.rangeId, ttl });
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

  /**
   * Copies the write-ahead log into the file without waiting for the disk: the file system has to be synced before the
   * range is closed. False when not all of it could be copied.
   */
  async copyLog(): Promise<boolean> {
    return (await this.#channel.call('copyLog', { rangeId: this.rangeId })).isWhole;
  }

  /** `isSynced`: the file system was synced since `copyLog`. */
  async close(isSynced = false): Promise<void> {
    this.#closeReaders();
    await this.#channel.call('closeRange', { rangeId: this.rangeId, isSynced });
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
    this.#stores?.close();
    this.#stores = undefined;
  }
}
