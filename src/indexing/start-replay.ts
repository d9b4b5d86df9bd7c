import type { Service } from '../lib/concurrency/supervise.ts';
import { progressOf } from './index-report.ts';
import type { IndexedRange } from './indexed-range.ts';
import type { RangeLease } from './range-pool.ts';

/** Ranges that replay at one time: each costs an index writer with its memory. */
const concurrentRanges = 4;

interface StartReplayDeps {
  /** Ranges that were not closed cleanly. */
  rangeIds: readonly number[];
  /** Keeps a range open, which does not count as use: a range that nobody asks for is closed soon after. */
  lease(rangeId: number): Promise<RangeLease>;
  /** Aborted when the range is about to go; undefined when it is gone. */
  closing(rangeId: number): AbortSignal | undefined;
  onFailed(rangeId: number, error: unknown): void;
}

export interface ReplayProgress {
  ranges: number;
  rangesDone: number;
  /** Share of the work that is done, 0..1. */
  progress: number;
}

/**
 * Opens the ranges that were not closed cleanly and waits until their indexes show again what the ranges held. Ranges are
 * otherwise opened when they are first used, and only then would it be known what their indexes lack.
 */
export class StartReplay implements Service {
  readonly name = 'start-replay';
  readonly #deps: StartReplayDeps;
  readonly #working = new Set<IndexedRange>();
  #done = 0;

  constructor(deps: StartReplayDeps) {
    this.#deps = deps;
  }

  /** How far the replay is; undefined when nothing is left of it. */
  progress(): ReplayProgress | undefined {
    const ranges = this.#deps.rangeIds.length;
    if (this.#done === ranges) return undefined;
    const shares = [...this.#working].reduce((sum, range) => sum + shareOf(range), this.#done);
    return { ranges, rangesDone: this.#done, progress: Math.floor((1_000 * shares) / ranges) / 1_000 };
  }

  async run(signal: AbortSignal): Promise<void> {
    const waiting = [...this.#deps.rangeIds];
    const work = async () => {
      for (let rangeId = waiting.shift(); rangeId !== undefined; rangeId = waiting.shift()) {
        if (signal.aborted) return;
        await this.#replay(rangeId, signal);
      }
    };
    await Promise.all(Array.from({ length: concurrentRanges }, work));
  }

  async #replay(rangeId: number, signal: AbortSignal): Promise<void> {
    try {
      const closing = this.#deps.closing(rangeId);
      if (closing) await this.#replayOpen(rangeId, AbortSignal.any([signal, closing]));
    } catch (error) {
      // A range that cannot be opened is a fault of its own, and has nothing to replay.
      this.#deps.onFailed(rangeId, error);
    }
    if (!signal.aborted) this.#done += 1;
  }

  async #replayOpen(rangeId: number, signal: AbortSignal): Promise<void> {
    using lease = await this.#deps.lease(rangeId);
    this.#working.add(lease.range);
    try {
      await lease.range.whenReplayed(signal);
    } finally {
      this.#working.delete(lease.range);
    }
  }
}

function shareOf(range: IndexedRange): number {
  const reports = range.reports();
  return reports.reduce((sum, report) => sum + progressOf(report), 0) / Math.max(1, reports.length);
}
