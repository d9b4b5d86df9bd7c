import { type Clock, pause } from '../../lib/clock.ts';
import type { RangeIndex } from '../range-index.ts';
import { isIndexDamage } from './index-damage.ts';

/** The least time between two looks that were asked for at an index whose files held what they should, in milliseconds. */
const lookAgainMs = 60_000;

interface DamageWatchDeps {
  clock: Clock;
  /** From the opening to the look: it reads all files, and would take a core from the first queries after a start. */
  delayMs: number;
  signal: AbortSignal;
  onSuspect(): void;
}

/** Looks for damage in the files of an index that no query has met yet, while rows are applied and queries answered. */
export class DamageWatch {
  readonly #deps: DamageWatchDeps;
  #watched: RangeIndex | undefined;
  #isSuspect = false;
  #looking: Promise<void> | undefined;
  /** Monotonic. */
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: DamageWatchDeps) {
    this.#deps = deps;
  }

  /** A look has found damage. */
  get isSuspect(): boolean {
    return this.#isSuspect;
  }

  /** Looks at the files of an index that was just opened; what was watched before is not looked at any more. */
  async watch(index: RangeIndex): Promise<void> {
    this.#watched = index;
    this.#isSuspect = false;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
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
    if (!isRecent && !this.#isSuspect) await this.#look(index);
    return this.#watched === index && this.#isSuspect;
  }

  /** The index is closed. */
  end(): void {
    this.#watched = undefined;
  }

  /** Asks again, because a merge may have removed a file under the first look. Throws when the damage is real. */
  async confirm(): Promise<void> {
    if (this.#isSuspect) await this.#watched?.verify();
    this.#isSuspect = false;
  }

  /** One look at a time. */
  async #look(index: RangeIndex): Promise<void> {
    if (this.#watched !== index) return;
    this.#looking ??= this.#verify(index).finally(() => {
      this.#looking = undefined;
    });
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
