import { type Backoff, backoffMs } from '../../lib/backoff.ts';

/** Between attempts at a checkpoint that cannot be written. */
const retries: Backoff = { firstMs: 200, maxMs: 30_000 };

/** When an index commits and checkpoints; all come from `limits.ts`. */
export interface PublishOptions {
  /** Rows wait at most this long for their commit when nobody asks for it, in milliseconds. */
  visibilityMs: number;
  /** The longest that rows wait while more keep coming, in milliseconds. */
  busyVisibilityMs: number;
  /** Unpublished bytes that force a commit. */
  visibilityBytes: number;
  /** Change since the last checkpoint that asks for the next, in milliseconds and bytes. */
  checkpointMs: number;
  checkpointBytes: number;
}

/** Keeps account of what an index has been given and decides when it commits and checkpoints. Times are monotonic. */
export class PublishSchedule {
  readonly #options: PublishOptions;
  #unpublishedBytes = 0;
  #unpublishedSince: number | undefined;
  /** How long the last commit took. */
  #commitMs = 0;
  #changedBytes = 0;
  #changedSince: number | undefined;
  /** Attempts at a checkpoint that could not be written, one after another, and when the next one is due. */
  #unwritten = 0;
  #retryMs = 0;

  constructor(options: PublishOptions) {
    this.#options = options;
  }

  get unpublishedBytes(): number {
    return this.#unpublishedBytes;
  }

  /** Rows were applied that no commit shows yet. */
  get hasUnpublished(): boolean {
    return this.#unpublishedSince !== undefined;
  }

  /** Rows were applied that no checkpoint keeps yet. */
  get hasUndurable(): boolean {
    return this.#changedSince !== undefined;
  }

  /** Checkpoints cannot be written, and as much waits for one as may: the index has to take no more. */
  get isFull(): boolean {
    return this.#unwritten > 0 && this.#changedBytes >= this.#options.checkpointBytes;
  }

  /** The index was opened at a checkpoint. */
  restart(): void {
    this.committed(this.#commitMs);
    this.checkpointed();
  }

  applied(bytes: number, sinceMs: number): void {
    this.#unpublishedSince ??= sinceMs;
    this.#unpublishedBytes += bytes;
    this.#changedSince ??= sinceMs;
    this.#changedBytes += bytes;
  }

  committed(tookMs: number): void {
    this.#commitMs = tookMs;
    this.#unpublishedBytes = 0;
    this.#unpublishedSince = undefined;
  }

  /** A checkpoint keeps the last commit: rows that wait for the next one wait for the next checkpoint, too. */
  checkpointed(): void {
    this.#changedBytes = this.#unpublishedBytes;
    this.#changedSince = this.#unpublishedSince;
    this.#unwritten = 0;
  }

  /** A checkpoint could not be written. Returns how many could not since the last one that was. */
  unwritten(nowMs: number): number {
    this.#unwritten += 1;
    this.#retryMs = nowMs + backoffMs(this.#unwritten, retries);
    return this.#unwritten;
  }

  /** `isIdle`: nothing more waits to be applied. `isAwaited`: a commit would answer somebody. */
  isCommitDue(nowMs: number, isIdle: boolean, isAwaited: boolean): boolean {
    if (this.#unpublishedSince === undefined) return false;
    const { visibilityBytes, visibilityMs } = this.#options;
    if (this.#unpublishedBytes >= visibilityBytes) return true;
    // While more is coming, a waiter is worth a commit only every so often: commits, not rows, are what costs then.
    if (isAwaited && (isIdle || this.#unpublishedBytes >= visibilityBytes / 16)) return true;
    return nowMs - this.#unpublishedSince >= (isIdle ? visibilityMs : this.#busyDelayMs());
  }

  isCheckpointDue(nowMs: number): boolean {
    if (this.#unwritten > 0) return nowMs >= this.#retryMs;
    if (this.#changedSince === undefined) return false;
    const { checkpointMs, checkpointBytes } = this.#options;
    return this.#changedBytes >= checkpointBytes || nowMs - this.#changedSince >= checkpointMs;
  }

  /** Time until something is due while no row comes; undefined when nothing will be. */
  restMs(nowMs: number): number | undefined {
    const { visibilityMs, checkpointMs } = this.#options;
    const checkpointDue =
      this.#unwritten > 0 ? this.#retryMs : (this.#changedSince ?? Number.POSITIVE_INFINITY) + checkpointMs;
    const due = Math.min((this.#unpublishedSince ?? Number.POSITIVE_INFINITY) + visibilityMs, checkpointDue);
    return due === Number.POSITIVE_INFINITY ? undefined : Math.max(0, due - nowMs);
  }

  /**
   * While rows keep coming, commits that nobody waits for take a tenth of the time at most: each makes a segment of its
   * own, whose cost hardly depends on what is in it, and which has to be merged later.
   */
  #busyDelayMs(): number {
    return Math.max(this.#options.visibilityMs, Math.min(10 * this.#commitMs, this.#options.busyVisibilityMs));
  }
}
