import type { Clock } from '../../lib/clock.ts';
import type { ChangePage } from '../range-index.ts';
import { smallPageBytes, takePages } from './coalesce-pages.ts';
import { holdFrame, letFrameGo } from './held-frames.ts';

export interface QueueOptions {
  /** Queued bytes beyond which nothing more is taken. */
  queueBytesMax: number;
  /** The longest that small pages wait for others to be joined with, in milliseconds. */
  gatherMs: number;
}

export interface QueuedPage {
  page: ChangePage;
  waitingSinceMs: number;
}

/**
 * Pages of rows that wait for an index, each continuing the sequences of the one before. Small ones are gathered for a moment:
 * a native call and its way back cost several times as much as the single row of a small write.
 */
export class PageQueue {
  readonly #options: QueueOptions;
  readonly #clock: Clock;
  #pages: ChangePage[] = [];
  #bytes = 0;
  /** When the first page came, or the one before it was taken; monotonic. */
  #waitingSinceMs = 0;
  /** Sequence of the last row that was queued or passed by. */
  #tail = 0;

  constructor(options: QueueOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
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

  /** Milliseconds until the pages are to be taken; 0 when they are worth a call now, infinity when there are none. */
  get dueInMs(): number {
    if (this.isEmpty) return Number.POSITIVE_INFINITY;
    if (this.#bytes >= smallPageBytes) return 0;
    return Math.max(0, this.#waitingSinceMs + this.#options.gatherMs - this.#clock.monotonicMs());
  }

  /** Empties the queue; what comes next continues `sequence`. */
  restartAt(sequence: number): void {
    this.clear();
    this.#tail = sequence;
  }

  clear(): void {
    for (const { frame } of this.#pages) letFrameGo(frame);
    this.#pages = [];
    this.#bytes = 0;
  }

  continues(page: ChangePage): boolean {
    return page.firstSequence === this.#tail + 1;
  }

  /** False when the page leaves a gap, or there is no room for it: what is missing has to be read from the feed. */
  push(page: ChangePage): boolean {
    if (!this.continues(page) || this.#bytes > this.#options.queueBytesMax) return false;
    if (this.isEmpty) this.#waitingSinceMs = this.#clock.monotonicMs();
    holdFrame(page.frame);
    this.#pages.push(page);
    this.#bytes += page.frame.byteLength;
    this.#tail = page.lastSequence;
    return true;
  }

  /** The sequence moves on, and there is nothing to do for it. */
  skipTo(sequence: number): void {
    this.#tail = sequence;
  }

  /**
   * The next page, small ones joined, and since when it has waited; undefined when there is none. Who takes it lets its frame go
   * when it is applied.
   */
  take(): QueuedPage | undefined {
    const taken = takePages(this.#pages);
    if (!taken) return undefined;
    const waitingSinceMs = this.#waitingSinceMs;
    this.#bytes -= taken.takenBytes;
    this.#waitingSinceMs = this.#clock.monotonicMs();
    return { page: taken.page, waitingSinceMs };
  }
}
