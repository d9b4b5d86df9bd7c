import type { Clock } from '../../lib/clock.ts';

/** One commit of the writer: how many requests shared it, and how long it took with its sync. */
export interface CommitReport {
  requests: number;
  durationMs: number;
}

/** Reports go to the main thread in bundles: a message for each commit would cost a tenth of it. */
const bundleMs = 1_000;
const bundleReportsMax = 4_096;

/** Times the commits of the writer and hands the times over now and then. */
export class CommitTimings {
  readonly #clock: Clock;
  readonly #report: (commits: CommitReport[]) => void;
  #waiting: CommitReport[] = [];
  #reportedMs: number;

  constructor(clock: Clock, report: (commits: CommitReport[]) => void) {
    this.#clock = clock;
    this.#report = report;
    this.#reportedMs = clock.monotonicMs();
  }

  /** Runs a commit that this many requests share. */
  timed(requests: number, commit: () => void): void {
    const startedMs = this.#clock.monotonicMs();
    commit();
    this.#waiting.push({ requests, durationMs: this.#clock.monotonicMs() - startedMs });
  }

  flushWhenDue(): void {
    if (this.#waiting.length === 0) return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#reportedMs < bundleMs && this.#waiting.length < bundleReportsMax) return;
    this.#reportedMs = nowMs;
    this.#report(this.#waiting);
    this.#waiting = [];
  }
}
