import type { ChangePage } from '../range-index.ts';
import { takePages } from './coalesce-pages.ts';

/** Pages of rows that wait for an index, each continuing the sequences of the one before. */
export class PageQueue {
  readonly #bytesMax: number;
  #pages: ChangePage[] = [];
  #bytes = 0;
  /** Sequence of the last row that was queued or passed by. */
  #tail = 0;

  /** `bytesMax`: queued bytes beyond which nothing more is taken. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get tail(): number {
    return this.#tail;
  }

  get isEmpty(): boolean {
    return this.#pages.length === 0;
  }

  /** Empties the queue; what comes next continues `sequence`. */
  restartAt(sequence: number): void {
    this.clear();
    this.#tail = sequence;
  }

  clear(): void {
    this.#pages = [];
    this.#bytes = 0;
  }

  continues(page: ChangePage): boolean {
    return page.firstSequence === this.#tail + 1;
  }

  /** False when the page leaves a gap, or there is no room for it: what is missing has to be read from the feed. */
  push(page: ChangePage): boolean {
    if (!this.continues(page) || this.#bytes > this.#bytesMax) return false;
    this.#pages.push(page);
    this.#bytes += page.frame.byteLength;
    this.#tail = page.lastSequence;
    return true;
  }

  /** The sequence moves on, and there is nothing to do for it. */
  skipTo(sequence: number): void {
    this.#tail = sequence;
  }

  /** The next page, small ones joined; undefined when there is none. */
  take(): ChangePage | undefined {
    const taken = takePages(this.#pages);
    this.#bytes -= taken?.takenBytes ?? 0;
    return taken?.page;
  }
}
