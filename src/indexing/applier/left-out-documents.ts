import { readFrame } from '../../lib/document-frame.ts';
import type { ChangePage } from '../range-index.ts';

/**
 * Documents that an index lacks although their range has them, because what is stored of them was damaged when the index was to take
 * it. While there are any, its answers may be short.
 */
export class LeftOutDocuments {
  readonly #ordinals = new Set<number>();
  /** There are others, known by their number alone: an earlier process has left them out. */
  isShort = false;

  get isEmpty(): boolean {
    return this.#ordinals.size === 0 && !this.isShort;
  }

  /** Another index was opened, and its content is not known yet. */
  restart(): void {
    this.#ordinals.clear();
    this.isShort = false;
  }

  /** The index takes a page. A document that is written again, or deleted, is not left out any more. */
  take({ frame, damaged = [] }: ChangePage): void {
    if (this.#ordinals.size > 0) {
      const rows = readFrame(frame);
      for (let row = 0; row < rows.rowCount; row += 1) this.#ordinals.delete(rows.ordinal(row));
    }
    for (const { ordinal } of damaged) this.#ordinals.add(ordinal);
  }
}
