import type { IndexedRange } from '../indexing/indexed-range.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { Storage } from '../storage/open-storage.ts';
import type { ArchiveFile, ImageFile, LinksFile } from './archive/manifest.ts';
import type { Copier } from './copy/copier.ts';
import type { CopyPage } from './copy/copy-calls.ts';
import type { CopyWriter } from './copy/copy-writer.ts';
import { damagedDocument } from './copy/refused-document.ts';
import type { RangeImage } from './image/range-image.ts';
import { writeLinks } from './links/write-links.ts';
import type { ObjectStore } from './stores/object-store.ts';

interface CopyTarget {
  readonly copier: Copier;
  readonly store: ObjectStore;
  /** The name of the range's next file, by how many it has. */
  readonly fileName: (file: number) => string;
  /** The same of the files that the range itself has. */
  readonly imageName: (file: number) => string;
  /** The same of the links of its indexes. */
  readonly linksName: (file: number) => string;
  /** A folder of this machine. */
  readonly temporary: string;
}

/** Ids of the parts that come along. */
interface CopiedPartIds {
  readonly all: readonly number[];
  /** Of these, those that have edges. */
  readonly graphs: readonly number[];
}

type ImageOf = (range: IndexedRange) => Promise<RangeImage>;

/** The extent of a range's copy. */
interface CopyKind {
  /** Only what came after it; null for everything. */
  readonly baseHead: number | null;
  /** Takes the range's own files in place of its documents, where everything is copied. */
  readonly imageOf?: ImageOf | undefined;
}

/**
 * One range on its way into a backup: its documents by their ordinals while writes go on, then its changes since, as
 * often as there are many, at last those up to the cut. A line says all of a document, so that whoever reads the lines
 * in order ends with the documents of the cut.
 */
export class RangeCopy implements Disposable {
  readonly range: IndexedRange;
  readonly files: ArchiveFile[] = [];
  /** Changes up to here are in the base of the backup; null for a copy of everything. */
  readonly baseHead: number | null;
  readonly #parts: readonly number[];
  /** Of these, those that have edges. */
  readonly #graphParts: readonly number[];
  /** The range's own files; undefined where its documents are copied line by line. */
  image: ImageFile[] | undefined;
  /** As the indexes had them at some time of the copy: whoever takes them compares the vectors. */
  links: LinksFile[] = [];
  /** Tells this range from an earlier one of the same number. */
  readonly firstSequence: number;
  readonly #imageOf: ImageOf | undefined;
  /** A purge was under way when the feed was pinned. */
  readonly #wasPurging: boolean;
  readonly #target: CopyTarget;
  readonly #pin: ReturnType<IndexedRange['pinFeed']>;
  /** The files have the changes up to here. */
  #copied: number;

  /** The range is leased as long as the copy lives. */
  constructor(range: IndexedRange, parts: CopiedPartIds, target: CopyTarget, { baseHead, imageOf }: CopyKind) {
    this.range = range;
    this.baseHead = baseHead;
    this.#imageOf = baseHead === null ? imageOf : undefined;
    this.firstSequence = range.stored.info().ownSince;
    this.#parts = parts.all;
    this.#graphParts = parts.graphs;
    this.#target = target;
    this.#copied = baseHead ?? range.head;
    this.#wasPurging = range.isPurging;
    // The indexes of an image go on from their checkpoints.
    this.#pin = range.pinFeed(this.#imageOf ? 0 : this.#copied);
  }

  /** The documents, or what has changed since the base, and the changes meanwhile. */
  async begin(signal: AbortSignal): Promise<void> {
    if (this.#imageOf) await this.#writeImage(this.#imageOf, signal);
    await this.#write(signal, async (file) => {
      if (this.baseHead === null) {
        // An image has the documents as they lie in the file, damaged ones too.
        await file.all(this.#imageOf ? 'check' : 'documents', { after: 0 }, () => signal.throwIfAborted());
      }
      // Deletions that the feed has forgotten, or is about to forget, show only in what is left.
      else if (this.#wasPurging || this.range.stored.feed.deletionsForgottenThrough() > this.baseHead) {
        for (const part of [undefined, ...this.#parts]) {
          await file.all('live', { part, after: 0 }, () => signal.throwIfAborted());
        }
      }
      await this.#changes(file, signal);
    });
    if (this.baseHead === null && !this.#imageOf) this.links = await writeLinks(this.range, this.#target, signal);
  }

  /** The changes since the last look; returns how many bytes they had. */
  async follow(signal: AbortSignal): Promise<number> {
    if (this.range.head === this.#copied) return 0;
    return this.#write(signal, (file) => this.#changes(file, signal));
  }

  /** The changes up to a cut. */
  async finish(storage: Storage, cutId: number, head: number, signal: AbortSignal): Promise<void> {
    const { rangeId } = this.range;
    const removed = this.#graphParts.length === 0 ? [] : await storage.cutRemovedTargets({ cutId, rangeId });
    if (head <= this.#copied && removed.length === 0) return;
    await this.#write(signal, async (file) => {
      for (;;) {
        signal.throwIfAborted();
        const page = await storage.cutPage({ cutId, rangeId, afterSequence: this.#copied, parts: this.#parts });
        if (!page) break;
        const [damaged] = page.damaged;
        if (damaged) throw damagedDocument(damaged.key);
        await file.step('page', { frame: page.frame });
        this.#advance(page.lastSequence);
      }
      for (const each of removed) await file.step('removed', each);
    });
  }

  [Symbol.dispose](): void {
    this.#pin[Symbol.dispose]();
  }

  async #writeImage(imageOf: ImageOf, signal: AbortSignal): Promise<void> {
    await this.range.checkpointIndexes(signal);
    signal.throwIfAborted();
    await using image = await imageOf(this.range);
    this.#pin.advance(this.#copied);
    const { copier, store, imageName: fileName } = this.#target;
    this.image = await image.write(copier, { store, fileName }, signal);
  }

  /** Writes the next file of the range. */
  async #write<Result>(signal: AbortSignal, fill: (file: CopyWriter) => Promise<Result>): Promise<Result> {
    const { copier, store, fileName } = this.#target;
    const { stored, rangeId } = this.range;
    const source = { path: stored.path, rangeId, parts: this.#parts };
    try {
      const { file, filled } = await copier.write(store, fileName(this.files.length), source, async (writer) => {
        const result = await fill(writer);
        signal.throwIfAborted();
        return result;
      });
      this.files.push(file);
      return filled;
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'data_corrupted') stored.noteDamage(error);
      throw error;
    }
  }

  #changes(file: CopyWriter, signal: AbortSignal): Promise<number> {
    return file.all('changes', { after: this.#copied }, ({ after }: CopyPage) => {
      signal.throwIfAborted();
      this.#advance(after);
    });
  }

  #advance(sequence: number): void {
    this.#copied = sequence;
    this.#pin.advance(sequence);
  }
}
