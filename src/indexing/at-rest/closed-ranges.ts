import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import type { RangeFacts } from './range-facts.ts';

/** Facts of a closed range as the catalog keeps them over a restart. */
export interface SavedRangeFacts {
  rangeId: number;
  /** The state of the range's file when the facts were taken. */
  stamp: string;
  /** JSON of `RangeFacts`. */
  facts: string;
}

interface ClosedRangesDeps {
  /** The facts that earlier processes saved. */
  saved: SavedRangeFacts[];
  /** The state of the range's files now; undefined when they are missing. */
  stampOf(rangeId: number): string | undefined;
  save(facts: SavedRangeFacts[]): Promise<void>;
}

/**
 * The known facts of ranges that are not open. Facts of an earlier process count only while the range's file is the one
 * that they were taken of: after a kill, the ranges that were written since are unknown until somebody opens them.
 */
export class ClosedRanges {
  readonly #deps: ClosedRangesDeps;
  readonly #known = new Map<number, RangeFacts>();
  /** Saved by an earlier process and not compared with the file yet. */
  readonly #unchecked = new Map<number, SavedRangeFacts>();
  readonly #unsaved = new Map<number, SavedRangeFacts>();
  #saving: Promise<void> = Promise.resolve();

  constructor(deps: ClosedRangesDeps) {
    this.#deps = deps;
    for (const saved of deps.saved) this.#unchecked.set(saved.rangeId, saved);
  }

  get(rangeId: number): RangeFacts | undefined {
    const saved = this.#unchecked.get(rangeId);
    if (saved) {
      this.#unchecked.delete(rangeId);
      if (saved.stamp === this.#deps.stampOf(rangeId)) this.#known.set(rangeId, JSON.parse(saved.facts) as RangeFacts);
    }
    return this.#known.get(rangeId);
  }

  /** The range has just been closed, or made. */
  note(rangeId: number, facts: RangeFacts): void {
    this.#known.set(rangeId, facts);
    const stamp = this.#deps.stampOf(rangeId);
    if (stamp !== undefined) this.#unsaved.set(rangeId, { rangeId, stamp, facts: JSON.stringify(facts) });
  }

  /** The range is being opened, or is gone. */
  forget(rangeId: number): void {
    this.#known.delete(rangeId);
    this.#unchecked.delete(rangeId);
    this.#unsaved.delete(rangeId);
  }

  /** Compares all facts of earlier processes with their files, so that later looks need no disk. */
  async checkSaved(signal: AbortSignal): Promise<void> {
    const rangeIds = [...this.#unchecked.keys()];
    await forEachYielding(rangeIds.length, (at) => void (signal.aborted || this.get(rangeIds[at] ?? 0)), 256);
  }

  /** Facts that a crash would lose. */
  get unsaved(): number {
    return this.#unsaved.size;
  }

  /** Makes what was noted durable, in one transaction. What cannot be saved is saved with the next call. */
  save(): Promise<void> {
    const saved = this.#saving.then(() => this.#saveNoted());
    this.#saving = saved.catch(() => undefined);
    return saved;
  }

  async #saveNoted(): Promise<void> {
    if (this.#unsaved.size === 0) return;
    const facts = [...this.#unsaved.values()];
    await this.#deps.save(facts);
    for (const saved of facts) if (this.#unsaved.get(saved.rangeId) === saved) this.#unsaved.delete(saved.rangeId);
  }
}
