import type { Clock } from '../../lib/clock.ts';
import type { IndexedRange } from '../indexed-range.ts';
import type { CheckpointReport, RangeIndex } from '../range-index.ts';
import type { RangeFacts } from './range-facts.ts';

/** The outcome of one of many checkpoints; undefined when there was no time for it. */
type CheckpointOutcome = CheckpointReport | Error | undefined;

/** Makes many things durable with few syncs of their file system. */
export interface JointDisk extends Disposable {
  /**
   * Makes the last commits of these indexes durable, and everything else that was written since the disk was opened.
   * `withinMs`: milliseconds within which a checkpoint has to begin; later ones are left out.
   */
  checkpoint(indexes: readonly RangeIndex[], withinMs: number): Promise<CheckpointOutcome[]>;
}

interface JointClosingDeps {
  /** How many ranges are closed together. Each of them has to come. */
  ranges: number;
  /** Ranges that are not ready in this time are left as they are. */
  withinMs: number;
  clock: Clock;
  /** Opened before any of the ranges has written what it is to make durable. */
  disk: JointDisk;
  /** Ends a range that was not ready in time, or could not be made durable with the others. */
  endLate(range: IndexedRange): Promise<RangeFacts>;
}

/**
 * Closes ranges that share their syncs: each writes what is not durable yet, waits until all others have, and is closed when
 * a few syncs have made everything durable. By itself, a range with one index takes a dozen.
 */
export class JointClosing {
  readonly #deps: JointClosingDeps;
  readonly #endMs: number;
  readonly #ready = new Set<IndexedRange>();
  readonly #synced = Promise.withResolvers<void>();
  readonly #cancelDeadline: () => void;
  #toCome: number;
  #isSyncing = false;

  constructor(deps: JointClosingDeps) {
    this.#deps = deps;
    this.#toCome = deps.ranges;
    this.#endMs = deps.clock.monotonicMs() + deps.withinMs;
    this.#cancelDeadline = deps.clock.after(deps.withinMs, () => this.#sync());
  }

  /** Closes one of the ranges. */
  async close(range: IndexedRange): Promise<RangeFacts> {
    if (await this.#prepare(range)) this.#ready.add(range);
    this.#arrived();
    await this.#synced.promise;
    return this.#ready.has(range) ? range.close(true) : this.#deps.endLate(range);
  }

  /** One of the ranges does not come, because it could not be opened or is closed already. */
  absent(): void {
    this.#arrived();
  }

  async #prepare(range: IndexedRange): Promise<boolean> {
    if (this.#deps.clock.monotonicMs() >= this.#endMs) return false;
    const isPrepared = await range.prepareClose().catch(() => false);
    // The sync has begun without it.
    return isPrepared && !this.#isSyncing;
  }

  #arrived(): void {
    this.#toCome -= 1;
    if (this.#toCome === 0) this.#sync();
  }

  #sync(): void {
    if (this.#isSyncing) return;
    this.#isSyncing = true;
    this.#cancelDeadline();
    void this.#checkpointAll()
      .catch(() => this.#ready.clear())
      .finally(() => this.#synced.resolve());
  }

  async #checkpointAll(): Promise<void> {
    const undurable = [...this.#ready].flatMap((range) => range.undurable().map((applier) => ({ range, applier })));
    const indexes = undurable.flatMap(({ applier }) => applier.undurable ?? []);
    const { clock, disk } = this.#deps;
    const outcomes = await disk.checkpoint(indexes, Math.max(0, this.#endMs - clock.monotonicMs()));
    for (const [at, { range, applier }] of undurable.entries()) {
      const outcome = outcomes[at];
      if (outcome === undefined || outcome instanceof Error) this.#ready.delete(range);
      if (outcome !== undefined) applier.checkpointed(outcome);
    }
  }
}
