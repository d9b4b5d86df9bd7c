import { type Clock, pause } from '../../lib/clock.ts';
import type { RangeIndex } from '../range-index.ts';
import { isIndexDamage } from './index-damage.ts';

/** Looks for damage in the files of an index that no query has met yet, while rows are applied and queries answered. */
export class DamageWatch {
  readonly #deps: { clock: Clock; delayMs: number; signal: AbortSignal; onSuspect: () => void };
  #watched: RangeIndex | undefined;
  #isSuspect = false;

  /** `delayMs`: the look reads all files, and would take a core from the first queries after a start. */
  constructor(deps: { clock: Clock; delayMs: number; signal: AbortSignal; onSuspect: () => void }) {
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
    if (index.openedAtSequence === 0) return;
    const { clock, delayMs, signal, onSuspect } = this.#deps;
    await pause(clock, delayMs, signal);
    if (this.#watched !== index || signal.aborted) return;
    await index.verify().catch((error: unknown) => {
      if (this.#watched !== index || !isIndexDamage(error)) return;
      this.#isSuspect = true;
      onSuspect();
    });
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
}
