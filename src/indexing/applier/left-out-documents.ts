import { type DocumentFrame, readFrame, rowKind } from '../../lib/document-frame.ts';
import type { ChangePage } from '../range-index.ts';

/**
 * Documents that an index lacks, or a part of them, although their range has it, because it was damaged when the index
 * was to take it. While there are any, its answers may be short. The checkpoints of the index note them (decision 46).
 */
export class LeftOutDocuments {
  readonly #partId: number | undefined;
  #ordinals = new Set<number>();
  #isNoted = true;
  /** There are others, known by their number alone: the index has no note of them. */
  isShort = false;

  /** `partId`: of the parts that the index is built from; without one it is built from the documents. */
  constructor(partId?: number) {
    this.#partId = partId;
  }

  get isEmpty(): boolean {
    return this.#ordinals.size === 0 && !this.isShort;
  }

  /** An index was opened that has noted these ordinals. */
  opened(ordinals: Iterable<number>): void {
    this.#ordinals = new Set(ordinals);
    this.#isNoted = true;
    this.isShort = false;
  }

  /** The index takes a page. What is written again, or deleted, is not left out any more. */
  take({ frame, damaged = [] }: ChangePage): void {
    if (this.#ordinals.size > 0) {
      const rows = readFrame(frame);
      for (let row = 0; row < rows.rowCount; row += 1) if (this.#isOwn(rows, row)) this.#remove(rows.ordinal(row));
    }
    for (const { ordinal } of damaged) this.#add(ordinal);
  }

  /** All ordinals, for the next commit to note; undefined where they are as they were at the last call. */
  toNote(): Uint32Array | undefined {
    if (this.#isNoted) return undefined;
    this.#isNoted = true;
    return Uint32Array.from(this.#ordinals);
  }

  /** Whether the index is built from the row: live frames have those of others as well. */
  #isOwn(rows: DocumentFrame, row: number): boolean {
    const kind = rows.kind(row);
    if (kind === rowKind.delete) return true;
    if (this.#partId === undefined) return kind === rowKind.put;
    return (kind === rowKind.partPut || kind === rowKind.partDelete) && rows.partId(row) === this.#partId;
  }

  #add(ordinal: number): void {
    if (this.#ordinals.has(ordinal)) return;
    this.#ordinals.add(ordinal);
    this.#isNoted = false;
  }

  #remove(ordinal: number): void {
    if (this.#ordinals.delete(ordinal)) this.#isNoted = false;
  }
}
