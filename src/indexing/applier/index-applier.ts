import { type Backoff, backoffMs } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { pause } from '../../lib/clock.ts';
import { Sleeper } from '../../lib/concurrency/sleeper.ts';
import { type Service, supervise } from '../../lib/concurrency/supervise.ts';
import { FrameBuilder, readFrame } from '../../lib/document-frame.ts';
import type { ChangePage, CheckpointReport, IndexSource, OpenRangeIndex, RangeIndex } from '../range-index.ts';
import { AppliedIndex } from './applied-index.ts';
import type { ApplierDeps, ApplierEvents, ApplierOptions } from './applier-deps.ts';
import { ApplierStanding, type ApplierState } from './applier-standing.ts';
import { ConditionWaiters } from './condition-waiters.ts';
import { DamageWatch } from './damage-watch.ts';
import { letFrameGo } from './held-frames.ts';
import { HeldWriter } from './held-writer.ts';
import { isIndexDamage, isOfMachine, isOutdated, rebuildReason } from './index-damage.ts';
import type { IndexProgress } from './index-progress.ts';
import { PageQueue, type QueuedPage } from './page-queue.ts';

/** Faults with what the checkpoint holds, one after another, before the index is wiped and rebuilt from the documents. */
const faultsBeforeRebuild = 3;
/** The bounds of what an index takes of its backlog when it is closed: pages of the feed, and bytes of one. */
const lastPagesMax = 4;
const lastPageBytesMax = 256 * 1_024;
const retries: Backoff = { firstMs: 200, maxMs: 30_000 };
const noRows = new FrameBuilder(1, 1).finish();

/**
 * Keeps one index of one range up to date. Live rows arrive through `offer`; whenever there is a gap (start, failure,
 * too much queued) the change feed is read until the index stands at the head again. One native call is in flight
 * at a time; a failure closes the index and starts again from its last checkpoint, so that replay is the only
 * recovery.
 */
export class IndexApplier implements Service {
  readonly name = 'index applier';
  readonly #open: OpenRangeIndex;
  readonly #source: IndexSource;
  readonly #clock: Clock;
  readonly #options: ApplierOptions;
  readonly #events: ApplierEvents;
  readonly #applied: AppliedIndex;
  readonly #queue: PageQueue;
  readonly #writer: HeldWriter;
  readonly #damage: DamageWatch;
  readonly #sleeper: Sleeper;
  readonly #waiters = new ConditionWaiters();
  readonly #stop = new AbortController();
  readonly #settled: Promise<void>;
  #ended: Promise<void> | undefined;

  readonly #standing: ApplierStanding;
  #backfilledRows = 0;
  #skippedCount = 0;
  /** Somebody waits for a checkpoint. */
  #isCheckpointWanted = false;
  /** The content of the index is not needed any more. */
  #isDiscarded = false;

  constructor(deps: ApplierDeps) {
    const { clock, options } = deps;
    this.#open = async (wipe) => {
      await deps.predecessorClosed;
      return deps.open(wipe);
    };
    this.#source = deps.source;
    this.#clock = clock;
    this.#options = options;
    this.#events = deps.events ?? {};
    this.#applied = new AppliedIndex({ clock, options, events: this.#events, partId: deps.partId });
    this.#queue = new PageQueue(options, clock);
    this.#sleeper = new Sleeper(clock);
    const wake = () => this.#sleeper.wake();
    const mayDoubt = deps.mayDoubt ?? (() => false);
    this.#writer = new HeldWriter(deps.writers, wake);
    const { signal } = this.#stop;
    this.#damage = new DamageWatch({ clock, delayMs: options.verifyDelayMs, signal, onSuspect: wake, mayDoubt });
    this.#standing = new ApplierStanding(deps.source.head(), deps.predecessorClosed === undefined);
    this.#settled = supervise(this, {
      clock,
      signal,
      onFailed: (_name, error, attempt) => this.#events.failed?.(error, attempt),
    }).finally(() => this.#publishLast());
  }

  get state(): ApplierState {
    return this.#standing.state;
  }

  get progress(): IndexProgress {
    return this.#applied.progress;
  }

  /** The open native index; undefined while it is opening or has failed. */
  get index(): RangeIndex | undefined {
    return this.#applied.index;
  }

  /** It has come up to its range since it was opened: what it lacks are the newest rows. */
  get isServing(): boolean {
    return this.#standing.hasBeenLive && this.index !== undefined;
  }

  /** It shows everything that its range held when it was opened. Until then a search misses rows that were shown before. */
  get hasReplayed(): boolean {
    return this.index !== undefined && this.progress.published >= this.#standing.replayTarget;
  }

  /** It holds what is stored up to what it shows. Otherwise some was damaged when it was to take it, and a search misses that. */
  get isWhole(): boolean {
    // Before it is live nobody has counted yet, and a search may come as soon as it has replayed.
    const { leftOut } = this.#applied;
    if (leftOut.isShort || this.#standing.state !== 'live') this.#countDocuments();
    return leftOut.isEmpty;
  }

  /** Everything that it was given is visible, and nothing more is to be done for it. */
  get isAtRest(): boolean {
    return this.#standing.state === 'live' && this.#queue.isEmpty && this.#applied.isPublished;
  }

  /** It is built from the documents, and not up to the range yet. */
  get isRebuilding(): boolean {
    return this.#standing.isRebuilding;
  }

  /**
   * More waits than may, or more in memory than `queueBytesMax`; true also
   * while it reads what it had to drop for that reason.
   */
  isOverloaded(backlogBytesMax: number, queueBytesMax = Number.POSITIVE_INFINITY): boolean {
    if (!this.isServing) return false;
    if (this.#standing.state !== 'live') return true;
    return this.backlogBytes > backlogBytesMax || this.#queue.bytes > queueBytesMax;
  }

  /** Resolves true when it is not overloaded, or is no more; false when the signal comes first. */
  whenKeepsUp(backlogBytesMax: number, queueBytesMax: number, signal: AbortSignal): Promise<boolean> {
    return this.#waiters.when(() => !this.isOverloaded(backlogBytesMax, queueBytesMax), signal);
  }

  get backlogBytes(): number {
    return this.#queue.bytes + this.#applied.unpublishedBytes;
  }

  /** Every row of its own up to this sequence is durable in the index, so the feed may forget it. */
  get checkpointedSequence(): number {
    return this.#applied.checkpointedSequence;
  }

  report() {
    return {
      state: this.#standing.state,
      rebuilding: this.#standing.isRebuilding,
      applied: this.#applied.applied,
      published: this.progress.published,
      replayTarget: this.#standing.replayTarget,
      hasReplayed: this.hasReplayed,
      checkpointed: this.checkpointedSequence,
      backfilledRows: this.#backfilledRows,
      skippedCount: this.#skippedCount,
      queuedBytes: this.#queue.bytes,
      error: this.#standing.lastError,
      unwritten: this.#applied.unwrittenReason,
      stats: this.index?.stats(),
    };
  }

  /** Rows just committed to the range. Dropped when the feed has to be read anyway. */
  offer(page: ChangePage): void {
    if (this.#standing.state !== 'live' || page.lastSequence <= this.#queue.tail) return;
    const isFirst = this.#queue.isEmpty;
    // The feed has the rows as well, and they are read from there once they may be taken.
    if (this.#applied.isFull || !this.#queue.push(page)) {
      this.#standing.state = 'catching_up';
      this.#queue.clear();
    }
    if (isFirst || !this.#isIdle) this.#sleeper.wake();
  }

  /**
   * Nothing is to be applied now: it follows its range, and what is queued is little, waits for more, and is awaited by
   * nobody; or it may take no more.
   */
  get #isIdle(): boolean {
    if (this.#applied.isFull) return true;
    if (this.#standing.state !== 'live') return false;
    return this.#queue.isEmpty || (this.#queue.dueInMs > 0 && !this.progress.isAwaited(this.#queue.tail));
  }

  /** As `offer`, for rows of which none concerns this index: its sequence moves, and nothing is woken for it. */
  pass(page: ChangePage): void {
    if (this.#standing.state !== 'live' || page.lastSequence <= this.#queue.tail) return;
    const nothingWaits = this.#queue.tail === this.#applied.applied && this.#applied.isPublished;
    if (!nothingWaits || !this.#queue.continues(page)) {
      this.offer({ ...page, frame: noRows });
      return;
    }
    this.#queue.skipTo(page.lastSequence);
    this.#applied.skipTo(page.lastSequence);
    this.progress.publish(page.lastSequence);
  }

  /** Resolves when rows up to `sequence` are visible. */
  async waitFor(sequence: number, signal?: AbortSignal): Promise<void> {
    const visible = this.progress.waitFor(sequence, signal);
    this.#sleeper.wake();
    await visible;
  }

  /** Resolves true when the index has come up to its range, false when it is closed or given up before. */
  whenLive(signal: AbortSignal): Promise<boolean> {
    return this.#waiters.when(() => this.#standing.state === 'live', signal);
  }

  /**
   * Makes what is shown now durable; resolves when it is, when that cannot be
   * written, or when the index is closed or has failed.
   */
  async checkpoint(signal: AbortSignal): Promise<void> {
    const { published } = this.progress;
    this.#isCheckpointWanted = true;
    this.#sleeper.wake();
    const isUnwritten = () => !this.#isCheckpointWanted && this.#applied.unwrittenReason !== undefined;
    const isOver = () => this.index === undefined || this.checkpointedSequence >= published || isUnwritten();
    await this.#waiters.when(isOver, signal);
  }

  /**
   * Looks for damage in the files of the open index. True when there is: it is closed then, and built from the documents.
   */
  async lookForDamage(signal: AbortSignal): Promise<boolean> {
    const { index } = this;
    if (!(await this.#damage.look())) return false;
    await this.#whenConfirmed(index, signal);
    return this.index !== index;
  }

  /** The engine has failed at a search over the index. True when another attempt may work (`DamageWatch`). */
  async searchFailed(signal: AbortSignal): Promise<boolean> {
    const { index } = this;
    if (!(await this.#damage.searchFailed())) return false;
    await this.#whenConfirmed(index, signal);
    return true;
  }

  /** Resolves when an index that is suspect is closed, or no longer suspect. */
  async #whenConfirmed(index: RangeIndex | undefined, signal: AbortSignal): Promise<void> {
    await this.#waiters.when(() => this.index !== index || !this.#damage.isSuspect, signal);
  }

  /** As `whenLive`, for `hasReplayed`. */
  whenReplayed(signal: AbortSignal): Promise<boolean> {
    return this.#waiters.when(() => this.hasReplayed, signal);
  }

  /** Ends the loop and publishes what was applied. The native index stays open until `close`. */
  async settle(): Promise<void> {
    this.#stop.abort();
    this.#sleeper.wake();
    this.index?.closeSoon();
    await this.#settled;
  }

  /** The native index of a settled applier, when its last commit is not durable. */
  get undurable(): RangeIndex | undefined {
    return this.#isDiscarded ? undefined : this.#applied.undurable;
  }

  /** The last commit of a settled applier was made durable, or could not be. */
  checkpointed(outcome: CheckpointReport | Error): void {
    if (outcome instanceof Error) this.#events.unwritten?.(outcome, 1);
    else this.#applied.checkpointed(outcome);
  }

  /** Settles, makes durable what is not, and closes the native index. */
  close(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  /** As `close`, when the files are about to be removed or replayed: what was applied is neither published nor checkpointed. */
  async discard(): Promise<void> {
    this.#isDiscarded = true;
    await this.close();
  }

  /** Follows the range until the signal is aborted. A fault of the index is met here; what throws is a fault of ours. */
  async run(signal: AbortSignal): Promise<void> {
    let [attempt, faults] = [0, 0];
    if (this.index) await this.#closeQuietly();
    while (!signal.aborted) {
      try {
        await this.#openIndex(faults >= faultsBeforeRebuild);
        await this.#follow(() => {
          [attempt, faults] = [0, 0];
        });
      } catch (error) {
        attempt += 1;
        if (isIndexDamage(error)) faults = faultsBeforeRebuild;
        else if (!isOfMachine(error)) faults += 1;
        await this.#fail(error, attempt);
      }
    }
  }

  async #openIndex(wipe: boolean): Promise<void> {
    this.#standing.opening(wipe);
    if (wipe) this.#events.rebuilding?.(rebuildReason(this.#standing.lastError));
    const index = await this.#open(wipe);
    this.#writer.opened();
    this.#applied.opened(index);
    this.#standing.opened(index.openedAtSequence, this.#source.head());
    this.#queue.restartAt(index.openedAtSequence);
    this.#standing.state = 'catching_up';
    this.#events.opened?.(index, this.#source.head());
    void this.#damage.watch(index);
  }

  async #follow(madeProgress: () => void): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#damage.confirm();
      const isCatchingUp = this.#standing.state === 'catching_up';
      const next = this.#nextPage(isCatchingUp);
      if (next) {
        const rows = await this.#apply(next);
        if (isCatchingUp) this.#backfilledRows += rows;
        madeProgress();
      } else if (isCatchingUp && !this.#applied.isFull) await this.#reachHead();
      await this.#applied.publishWhenDue(this.#isIdle, this.#writer.isWanted);
      this.#waiters.changed();
      await this.#checkpointWhenDue();
      if (this.#isIdle) await this.#rest();
    }
  }

  #nextPage(isCatchingUp: boolean): QueuedPage | undefined {
    if (this.#applied.isFull) return undefined;
    return isCatchingUp ? this.#readPage() : this.#queuedPage();
  }

  #queuedPage(): QueuedPage | undefined {
    return this.#isIdle ? undefined : this.#queue.take();
  }

  /** The next page of the change feed. */
  #readPage(): QueuedPage | undefined {
    const page = this.#source.read(this.#applied.applied);
    return page && { page, waitingSinceMs: this.#clock.monotonicMs() };
  }

  async #checkpointWhenDue(): Promise<void> {
    if (!this.#isCheckpointWanted) return this.#applied.checkpointWhenDue();
    this.#isCheckpointWanted = false;
    await this.#applied.publish();
    await this.#applied.checkpoint();
    this.#waiters.changed();
  }

  /** The feed is read to its end: what was found becomes visible, and rows are taken as they are offered. */
  async #reachHead(): Promise<void> {
    this.#applied.skipTo(this.#source.head());
    await this.#applied.publish();
    if (this.#source.head() > this.#applied.applied) return;
    this.#queue.restartAt(this.#applied.applied);
    this.#standing.reachedHead();
    this.#countDocuments();
    this.#events.live?.();
  }

  /** Compares the index with its range, where both are at one sequence. */
  #countDocuments(): void {
    const { index } = this;
    const documents = this.#source.documents?.();
    if (index === undefined || documents === undefined || this.progress.published < this.#source.head()) return;
    this.#applied.leftOut.isShort = index.stats().docCount < documents;
  }

  async #apply({ page, waitingSinceMs }: QueuedPage): Promise<number> {
    if (readFrame(page.frame).rowCount === 0) {
      this.#applied.skipTo(page.lastSequence);
      // Skipping pages without rows for this index must not block the event loop.
      await new Promise<void>((resolve) => setImmediate(resolve));
      return 0;
    }
    this.#writer.use();
    const applied = this.#applied.apply(page, waitingSinceMs);
    const { rows, skipped } = await applied.finally(() => letFrameGo(page.frame));
    if (skipped.length > 0) {
      this.#skippedCount += skipped.length;
      this.#events.skipped?.(skipped);
    }
    return rows;
  }

  /** Waits for rows, a waiter, or the next deadline; gives the writer back when nothing came for long. */
  async #rest(): Promise<void> {
    if (this.#stop.signal.aborted || this.#damage.isSuspect || this.#isCheckpointWanted) return;
    if (this.progress.isAwaited(this.#applied.applied)) return;
    if (this.#writer.isWanted) {
      this.#writer.release();
      return;
    }
    const dueMs = Math.min(this.#applied.restMs, this.#applied.isFull ? Number.POSITIVE_INFINITY : this.#queue.dueInMs);
    const idleMs = this.#writer.isAtRest ? Number.POSITIVE_INFINITY : this.#options.writerIdleMs;
    const woken = await this.#sleeper.sleep(Math.min(dueMs, idleMs));
    if (!woken && idleMs <= dueMs && !this.#writer.isAtRest) await this.#writer.rest(this.index);
  }

  async #fail(error: unknown, attempt: number): Promise<void> {
    this.#standing.failed(error);
    this.#queue.clear();
    if (!isOutdated(error)) this.#events.failed?.(error, attempt);
    await this.#closeQuietly();
    this.#waiters.changed();
    // Those that wait for rows stay: these are durable, and the next attempt publishes them.
    if (isIndexDamage(error)) return;
    await pause(this.#clock, backoffMs(attempt, retries), this.#stop.signal);
  }

  async #publishLast(): Promise<void> {
    this.#standing.state = 'closed';
    this.progress.end(new Error('the index was closed'));
    this.#waiters.end();
    if (this.#isDiscarded || !this.index) return;
    await this.#quietly(async () => {
      await this.#takeLast();
      await this.#applied.publish();
      // Rows of others are told as well, so that the next start need not look through them.
      await this.#applied.commitPublished();
    });
  }

  /** Applies the writes from just before the end: to apply them now is cheaper than to replay it at the next start. */
  async #takeLast(): Promise<void> {
    if (this.#damage.isSuspect || this.#applied.isFull) return;
    for (let pages = 0; pages < lastPagesMax; pages += 1) {
      const next = this.#readPage();
      if (!next) return this.#applied.skipTo(this.#source.head());
      if (next.page.frame.byteLength > lastPageBytesMax) return;
      await this.#apply(next);
    }
  }

  async #end(): Promise<void> {
    await this.settle();
    if (!this.#isDiscarded) await this.#quietly(() => this.#applied.checkpoint());
    await this.#closeQuietly();
    this.#events.closed?.();
  }

  async #closeQuietly(): Promise<void> {
    this.#damage.end();
    this.#writer.closed();
    await this.#quietly(() => this.#applied.close());
  }

  /** A failure is told, and what it leaves undone is replayed at the next opening. */
  async #quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#events.failed?.(error, 0);
    }
  }
}
