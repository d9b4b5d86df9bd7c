import { IndexFaultError } from '../../engine/engine-error.ts';
import { type Clock, pause } from '../../lib/clock.ts';
import type { RangeIndex } from '../range-index.ts';
import { isIndexDamage } from './index-damage.ts';

/** Searches at which the engine may fail over files that hold what they should before they are doubted all the same. */
const failuresMax = 2;

/** The least time between two looks that were asked for at an index whose files held what they should, in milliseconds. */
const lookAgainMs = 60_000;

interface DamageWatchDeps {
  clock: Clock;
  /** From the opening to the look: it reads all files, and would take a core from the first queries after a start. */
  delayMs: number;
  signal: AbortSignal;
  onSuspect(): void;
  /** Whether the index may be built again because searches fail; true once for each index of a process. */
  mayDoubt(): boolean;
}

/** Looks for damage in the files of an index that no query has met yet, while rows are applied and queries answered. */
export class DamageWatch {
  readonly #deps: DamageWatchDeps;
  #watched: RangeIndex | undefined;
  #isSuspect = false;
  /** Its checksums are right, and searches over it fail nevertheless. */
  #isDoubted = false;
  #failures = 0;
  #looking: Promise<void> | undefined;
  /** Monotonic. */
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: DamageWatchDeps) {
    this.#deps = deps;
  }

  /** A look has found damage, or searches have failed. */
  get isSuspect(): boolean {
    return this.#isSuspect || this.#isDoubted;
  }

  /** Looks at the files of an index that was just opened; what was watched before is not looked at any more. */
  async watch(index: RangeIndex): Promise<void> {
    this.#watched = index;
    this.#isSuspect = false;
    this.#isDoubted = false;
    this.#failures = 0;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
    // A look at what was open before says nothing of this one.
    this.#looking = undefined;
    if (index.openedAtSequence === 0) return;
    const { clock, delayMs, signal } = this.#deps;
    await pause(clock, delayMs, signal);
    if (!signal.aborted) await this.#look(index);
  }

  /** Looks at the files now, unless it has just done so. True when there is damage. */
  async look(): Promise<boolean> {
    const index = this.#watched;
    const isRecent = this.#deps.clock.monotonicMs() - this.#lookedMs < lookAgainMs;
    if (!index || this.#deps.signal.aborted) return false;
    if (!isRecent && !this.isSuspect) await this.#look(index);
    return this.#watched === index && this.isSuspect;
  }

  /**
   * The engine has failed at a search over the index. True when another attempt may work: the first time, and where the
   * index is damaged, or closed. Checksums are no proof of files that came from elsewhere, so a failure that comes
   * again counts as damage, once: where the index was built again, the query is what the engine cannot do.
   */
  async searchFailed(): Promise<boolean> {
    const index = this.#watched;
    if ((await this.look()) || !index || this.#watched !== index) return true;
    this.#failures += 1;
    if (this.#isDoubted || this.#failures < failuresMax) return true;
    if (!this.#deps.mayDoubt()) return false;
    this.#isDoubted = true;
    this.#deps.onSuspect();
    return true;
  }

  /** The index is closed. */
  end(): void {
    this.#watched = undefined;
  }

  /** Asks again, because a merge may have removed a file under the first look. Throws when the damage is real. */
  async confirm(): Promise<void> {
    if (this.#isDoubted) throw new IndexFaultError('index_damaged', 'searches fail over files with right checksums');
    if (this.#isSuspect) await this.#watched?.verify();
    this.#isSuspect = false;
  }

  /** One look at an index at a time. */
  async #look(index: RangeIndex): Promise<void> {
    if (this.#watched !== index) return;
    if (this.#looking === undefined) {
      const looking = this.#verify(index).finally(() => {
        if (this.#looking === looking) this.#looking = undefined;
      });
      this.#looking = looking;
    }
    await this.#looking;
  }

  async #verify(index: RangeIndex): Promise<void> {
    const { clock, onSuspect } = this.#deps;
    try {
      await index.verify();
    } catch (error) {
      if (this.#watched !== index || !isIndexDamage(error)) return;
      this.#isSuspect = true;
      onSuspect();
    }
    if (this.#watched === index) this.#lookedMs = clock.monotonicMs();
  }
}
