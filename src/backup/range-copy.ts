import type { IndexedRange } from '../indexing/indexed-range.ts';
import { readFrame, rowKind } from '../lib/document-frame.ts';
import { sinceOf } from '../lib/parts/edges-part.ts';
import { formOfBody, partForm } from '../lib/parts/part-body.ts';
import { yieldToEventLoop } from '../lib/yield-to-event-loop.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { Storage } from '../storage/open-storage.ts';
import { imageNote } from '../storage/range/range-image.ts';
import type { FeedPage } from '../storage/write-request.ts';
import { deletedLine, documentLine, liveLine, removedLine } from './archive/archive-line.ts';
import { BlockWriter } from './archive/block-writer.ts';
import type { ArchiveFile, ImageFile } from './archive/manifest.ts';
import type { RangeImage } from './image/range-image.ts';
import type { ObjectStore } from './stores/object-store.ts';

interface CopyTarget {
  readonly store: ObjectStore;
  /** The name of the range's next file, by how many it has. */
  readonly fileName: (file: number) => string;
  /** The same of the files that the range itself has. */
  readonly imageName: (file: number) => string;
}

/** Ids of the parts that come along. */
interface CopiedParts {
  readonly all: readonly number[];
  /** Of these, those that have edges. */
  readonly graphs: readonly number[];
}

type ImageOf = (range: IndexedRange) => Promise<RangeImage>;

/** What is copied of a range. */
interface CopyKind {
  /** Only what came after it; null for everything. */
  readonly baseHead: number | null;
  /** Takes the range's own files in place of its documents, where everything is copied. */
  readonly imageOf?: ImageOf | undefined;
}

/** Which life of a range this is: that of one which began as a copy began with the copy. */
export function lifeOf({ stored }: IndexedRange): number {
  const note = stored.notes.get(imageNote);
  return note ? Number(Buffer.from(note).toString()) : stored.info().firstSequence;
}

/** Rows of a list of live documents that one line has. */
const liveRows = 10_000;

/**
 * One range on its way into a backup: its documents by key while writes go on, then its changes since, as often as there are many,
 * at last those up to the cut. A line says all of a document, so that whoever reads the lines in order ends with the
 * documents of the cut.
 */
export class RangeCopy implements Disposable {
  readonly range: IndexedRange;
  readonly files: ArchiveFile[] = [];
  /** What came up to here is in the base of the backup; null for a copy of everything. */
  readonly baseHead: number | null;
  readonly #parts: readonly number[];
  /** Of these, those that have edges. */
  readonly #graphParts: readonly number[];
  /** The range's own files; undefined where its documents are copied line by line. */
  image: ImageFile[] | undefined;
  /** With the number of the range it says which life of a range this is. */
  readonly firstSequence: number;
  readonly #imageOf: ImageOf | undefined;
  readonly #target: CopyTarget;
  readonly #pin: ReturnType<IndexedRange['pinFeed']>;
  /** The files have the changes up to here. */
  #copied: number;

  /** The range is leased as long as the copy lives. */
  constructor(range: IndexedRange, parts: CopiedParts, target: CopyTarget, { baseHead, imageOf }: CopyKind) {
    this.range = range;
    this.baseHead = baseHead;
    this.#imageOf = baseHead === null ? imageOf : undefined;
    this.firstSequence = lifeOf(range);
    this.#parts = parts.all;
    this.#graphParts = parts.graphs;
    this.#target = target;
    this.#copied = baseHead ?? range.head;
    // The indexes of an image go on from their checkpoints.
    this.#pin = range.pinFeed(this.#imageOf ? 0 : this.#copied);
  }

  /** The documents, or what has changed since the base, and the changes meanwhile. */
  async begin(signal: AbortSignal): Promise<void> {
    if (this.#imageOf) await this.#writeImage(this.#imageOf, signal);
    await this.#write(signal, async (file) => {
      if (this.baseHead === null && !this.#imageOf) await this.#documents(file, signal);
      // Deletions that the feed has forgotten show only in what is left.
      else if (this.baseHead !== null && this.range.stored.feed.purgedThrough() > this.baseHead)
        await this.#live(file, signal);
      await this.#changes(file, signal);
    });
  }

  /** The changes since the last look; returns how many bytes they had. */
  async follow(signal: AbortSignal): Promise<number> {
    if (this.range.head === this.#copied) return 0;
    let bytes = 0;
    await this.#write(signal, async (file) => {
      bytes = await this.#changes(file, signal);
    });
    return bytes;
  }

  /** The changes up to a cut. */
  async finish(storage: Storage, cutId: number, head: number, signal: AbortSignal): Promise<void> {
    const { rangeId } = this.range;
    const removed = this.#graphParts.length === 0 ? [] : await storage.cutRemovedTargets({ cutId, rangeId });
    if (head <= this.#copied && removed.length === 0) return;
    await this.#write(signal, async (file) => {
      for (;;) {
        const page = await storage.cutPage({ cutId, rangeId, afterSequence: this.#copied, parts: this.#parts });
        if (!page) break;
        this.#add(file, page);
        await file.drain();
      }
      for (const { note, targets } of removed) file.add(removedLine(note, targets));
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
    this.image = await image.write({ store: this.#target.store, fileName: this.#target.imageName }, signal);
  }

  async #write(signal: AbortSignal, fill: (file: BlockWriter) => Promise<void>): Promise<void> {
    const name = this.#target.fileName(this.files.length);
    const file = new BlockWriter(await this.#target.store.open(name));
    try {
      await fill(file);
      signal.throwIfAborted();
      this.files.push({ name, ...(await file.finish()) });
    } catch (error) {
      await file.abort();
      throw error;
    }
  }

  async #documents(file: BlockWriter, signal: AbortSignal): Promise<void> {
    const { documents, parts } = this.range.stored;
    let from = { fromKey: '', fromInclusive: true };
    for (let more = true; more; ) {
      signal.throwIfAborted();
      const page = documents.page({ ...from, toKey: null, toInclusive: false });
      refuseDamaged(page.damaged);
      const ordinals = page.documents.map(({ ordinal }) => ordinal);
      const held = parts.read(ordinals, this.#parts);
      const since = new Map(this.#graphParts.map((partId) => [partId, parts.sequences(ordinals, partId)]));
      if (held.damaged.size > 0) {
        refuseDamaged(page.documents.filter(({ ordinal }) => held.damaged.has(ordinal)));
      }
      for (const { ordinal, key, sequence, ttlBaseMs = 0, writtenMs = 0, body } of page.documents) {
        const own = [...(held.found.get(ordinal) ?? [])].map(([partId, part]) => {
          const sequence = since.get(partId)?.get(ordinal);
          return sequence === undefined ? part : sinceOf(part, sequence);
        });
        file.add(documentLine({ ordinal, key, version: sequence, ttlBaseMs, writtenMs, body, parts: own }));
      }
      await file.drain();
      await yieldToEventLoop();
      more = page.more;
      if (page.lastKey !== undefined) from = { fromKey: page.lastKey, fromInclusive: false };
    }
  }

  async #live(file: BlockWriter, signal: AbortSignal): Promise<void> {
    const { documents, parts } = this.range.stored;
    const lists = [undefined, ...this.#parts];
    for (const part of lists) {
      const page = (after: number) =>
        part === undefined ? documents.ordinalsAfter(after, liveRows) : parts.ordinalsAfter(part, after, liveRows);
      for (let after = 0, more = true; more; ) {
        signal.throwIfAborted();
        const ordinals = page(after);
        more = ordinals.length === liveRows;
        const to = more ? (ordinals.at(-1) ?? after) : 0xffff_ffff;
        file.add(liveLine({ part, from: after + 1, to, ordinals }));
        after = to;
        await file.drain();
        await yieldToEventLoop();
      }
    }
  }

  async #changes(file: BlockWriter, signal: AbortSignal): Promise<number> {
    let bytes = 0;
    for (;;) {
      signal.throwIfAborted();
      const page = this.range.stored.feed.read(this.#copied, { documents: true, parts: this.#parts });
      if (!page) return bytes;
      this.#add(file, page);
      bytes += page.frame.byteLength;
      await file.drain();
      await yieldToEventLoop();
    }
  }

  #add(file: BlockWriter, page: FeedPage): void {
    refuseDamaged(page.damaged);
    for (const line of linesOf(page.frame)) file.add(line);
    this.#copied = page.lastSequence;
    this.#pin.advance(this.#copied);
  }
}

/** A page of the joined feed: documents, each followed by all of its parts, and tombstones. */
function* linesOf(bytes: Uint8Array<ArrayBuffer>): Generator<Uint8Array> {
  const frame = readFrame(bytes);
  for (let row = 0; row < frame.rowCount; row += 1) {
    const ordinal = frame.ordinal(row);
    if (frame.kind(row) === rowKind.delete) {
      yield deletedLine(ordinal);
      continue;
    }
    const parts: Uint8Array[] = [];
    const put = row;
    while (row + 1 < frame.rowCount && frame.kind(row + 1) === rowKind.partPut) {
      row += 1;
      const part = frame.body(row);
      parts.push(formOfBody(part) === partForm.edges ? sinceOf(part, frame.sequence(row)) : part);
    }
    yield documentLine({
      ordinal,
      key: frame.key(put),
      version: frame.sequence(put),
      ttlBaseMs: frame.ttlBaseMs(put),
      writtenMs: frame.writtenMs(put),
      body: frame.body(put),
      parts,
    });
  }
}

function refuseDamaged(damaged: readonly { key: string }[]): void {
  const [first] = damaged;
  if (!first) return;
  const message = `the document "${first.key}" does not match its checksum: write it again or delete it, then back up`;
  throw new ServiceError('data_corrupted', message);
}
