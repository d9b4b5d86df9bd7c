import { closeSync, openSync, readSync } from 'node:fs';
import { must } from '../../lib/assert.ts';
import { readFrame, rowKind } from '../../lib/document-frame.ts';
import { leavingEdges } from '../../lib/parts/edges-part.ts';
import { formOfBody, partForm } from '../../lib/parts/part-body.ts';
import { scanDocuments } from '../../storage/reader/document-scan.ts';
import { RangeStores } from '../../storage/reader/range-stores.ts';
import type { ReadSource } from '../../storage/storage-error.ts';
import {
  type ArchivedDocument,
  deletedLine,
  documentEnd,
  documentHead,
  isTooLong,
  liveLine,
} from '../archive/archive-line.ts';
import { BlockPacker, blockBytes } from './block-packer.ts';
import type { CopiedRange, CopyPage } from './copy-calls.ts';
import { damagedDocument, longDocument } from './refused-document.ts';

/** Rows of a list of live documents that one line has. */
const liveRows = 10_000;
const chunkBytes = 1_024 * 1_024;

/** A file of an archive as the copying thread fills it: lines of a range that it reads itself, or bytes of another file. */
export class CopiedFile implements Disposable {
  readonly packer = new BlockPacker();
  readonly #range: CopiedRange | undefined;
  #stores: RangeStores | undefined;
  #damagedKey: string | undefined;

  constructor(range: CopiedRange | undefined) {
    this.#range = range;
  }

  /** Documents behind an ordinal, until a block is full. */
  documents(after: number): CopyPage {
    const { parts } = this.#copied();
    return this.#reading((stores, source) => {
      let [last, bytes] = [after, 0];
      for (const found of scanDocuments(stores.documents, source, after, parts)) {
        const { ordinal, key, sequence: version, ttlBaseMs, writtenMs, body } = found;
        const bodies = found.parts.map((part) => leavingPart(part.body, { list: part.sequence, document: version }));
        this.#document({ ordinal, key, version, ttlBaseMs, writtenMs, body, parts: bodies });
        last = ordinal;
        bytes += body.byteLength;
        if (this.packer.hasBlocks) return this.#page({ after: last, more: true, bytes });
      }
      return this.#page({ after: last, more: false, bytes });
    });
  }

  /** As `documents`, to see that each matches its checksum: nothing of them is packed. */
  check(after: number): CopyPage {
    const { parts } = this.#copied();
    return this.#reading((stores, source) => {
      let [last, bytes] = [after, 0];
      for (const { ordinal, body } of scanDocuments(stores.documents, source, after, parts)) {
        last = ordinal;
        bytes += body.byteLength;
        if (bytes >= blockBytes) return this.#page({ after: last, more: true, bytes });
      }
      return this.#page({ after: last, more: false, bytes });
    });
  }

  /** Ordinals behind one: of documents, or of those that have a part. */
  live(part: number | undefined, after: number): CopyPage {
    return this.#reading(({ documents, parts }) => {
      const ordinals =
        part === undefined ? documents.ordinalsAfter(after, liveRows) : parts.ordinalsAfter(part, after, liveRows);
      const more = ordinals.length === liveRows;
      const to = more ? (ordinals.at(-1) ?? after) : 0xffff_ffff;
      this.packer.addText(liveLine({ part, from: after + 1, to, ordinals }));
      return this.#page({ after: to, more, bytes: 0 });
    });
  }

  /** Changes behind a sequence, until a block is full. */
  changes(after: number): CopyPage {
    const { parts } = this.#copied();
    return this.#reading(({ feed }) => {
      let [last, bytes] = [after, 0];
      for (;;) {
        const page = feed.read(last, { documents: true, parts });
        if (!page) return this.#page({ after: last, more: false, bytes });
        this.#refuseDamaged();
        this.lines(page.frame);
        last = page.lastSequence;
        bytes += page.frame.byteLength;
        if (this.packer.hasBlocks || bytes >= blockBytes) return this.#page({ after: last, more: true, bytes });
      }
    });
  }

  /** A page of the joined feed: documents, each followed by all of its parts, and tombstones. */
  lines(bytes: Uint8Array<ArrayBuffer>): void {
    const frame = readFrame(bytes);
    for (let row = 0; row < frame.rowCount; row += 1) {
      const ordinal = frame.ordinal(row);
      if (frame.kind(row) === rowKind.delete) {
        this.packer.addText(deletedLine(ordinal));
        continue;
      }
      const parts: Uint8Array[] = [];
      const put = row;
      while (row + 1 < frame.rowCount && frame.kind(row + 1) === rowKind.partPut) {
        row += 1;
        parts.push(leavingPart(frame.body(row), { list: frame.sequence(row), document: frame.sequence(put) }));
      }
      this.#document({
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

  /** Bytes of a file from `after` up to `end`, until a block is full. */
  bytes(path: string, after: number, end: number): CopyPage {
    const file = openSync(path, 'r');
    try {
      let at = after;
      const chunk = new Uint8Array(Math.min(chunkBytes, end - after));
      while (at < end && !this.packer.hasBlocks) {
        const read = readSync(file, chunk, 0, Math.min(chunk.byteLength, end - at), at);
        if (read === 0) throw new RangeError('a file of a range is shorter than it was');
        this.packer.add(chunk.subarray(0, read));
        at += read;
      }
      return this.#page({ after: at, more: at < end, bytes: at - after });
    } finally {
      closeSync(file);
    }
  }

  [Symbol.dispose](): void {
    this.#stores?.close();
    this.#stores = undefined;
  }

  #document(document: ArchivedDocument): void {
    if (isTooLong(document)) throw longDocument(document.key);
    this.packer.addText(documentHead(document));
    this.packer.addJson(document.body);
    this.packer.add(documentEnd);
  }

  #page(page: Omit<CopyPage, 'blocks'>): CopyPage {
    return { ...page, blocks: this.packer.take() };
  }

  #copied(): CopiedRange {
    return must(this.#range, 'a file that gets nothing of a range');
  }

  #reading<Result>(read: (stores: RangeStores, source: ReadSource) => Result): Result {
    const { path, rangeId } = this.#copied();
    const source: ReadSource = {
      name: `range ${rangeId}`,
      rangeId,
      documentDamaged: (key) => {
        this.#damagedKey ??= key;
      },
    };
    this.#stores ??= new RangeStores(path, source);
    try {
      return read(this.#stores, source);
    } catch (error) {
      this.#refuseDamaged();
      throw error;
    }
  }

  #refuseDamaged(): void {
    if (this.#damagedKey !== undefined) throw damagedDocument(this.#damagedKey);
  }
}

/** Of a list of edges: one whose edges say since when they are there. `place`: sequences of the part and its document. */
function leavingPart(part: Uint8Array, place: { list: number; document: number }): Uint8Array {
  return formOfBody(part) === partForm.edges ? leavingEdges(part, place) : part;
}
