import type { Clock } from '../../lib/clock.ts';
import type { RangeId } from '../write-request.ts';

/** Heads are kept in bundles, this long after the first of them, in milliseconds. */
const bundleMs = 1_000;

/**
 * Keeps in the catalog, beside the ranges' own files, how far each of them has acknowledged writes: a range that has lost
 * its write-ahead log, or the end of it, is otherwise whole. What a range lacks is known to within a second, which costs
 * one sync of the catalog a second while there are writes.
 */
export class AcknowledgedHeads {
  readonly #clock: Clock;
  readonly #save: (heads: ReadonlyMap<RangeId, number>) => void;
  #changed = new Map<RangeId, number>();
  #isScheduled = false;

  constructor(clock: Clock, save: (heads: ReadonlyMap<RangeId, number>) => void) {
    this.#clock = clock;
    this.#save = save;
  }

  note(rangeId: RangeId, head: number): void {
    this.#changed.set(rangeId, head);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#clock.after(bundleMs, () => {
      this.#isScheduled = false;
      this.flush();
    });
  }

  flush(): void {
    if (this.#changed.size === 0) return;
    const heads = this.#changed;
    this.#changed = new Map();
    this.#save(heads);
  }
}
