import { IndexFaultError } from '../engine/engine-error.ts';
import { assert, must } from '../lib/assert.ts';
import { type Backoff, backoffMs } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { pause } from '../lib/clock.ts';
import { FrameBuilder, readFrame } from '../lib/document-frame.ts';
import { takePages } from './coalesce-pages.ts';
import { IndexProgress } from './index-progress.ts';
import { type PublishOptions, PublishSchedule } from './publish-schedule.ts';
import type { ChangePage, IndexSource, OpenRangeIndex, RangeIndex, RangeIndexStats } from './range-index.ts';
import type { WriterBudget, WriterHolder } from './writer-budget.ts';

/** Bounds of one applier; all come from `limits.ts`. */
export interface ApplierOptions extends PublishOptions {
  /** Queued bytes beyond which images are dropped and the change feed is read instead. */
  queueBytesMax: number;
  /** Idle time after which the writer's threads and memory are given back and work put off is done, in milliseconds. */
  writerIdleMs: number;
  /** Time from the opening of an index to the look for damage in its files, in milliseconds. */
  verifyDelayMs: number;
}

export interface ApplierEvents {
  opened?(index: RangeIndex, headSequence: number): void;
  skipped?(documents: { key: string; reason: string }[]): void;
  failed?(error: unknown, attempt: number): void;
  /** It has come up to its range. */
  live?(): void;
  /** Nothing follows: the index was closed for good. */
  closed?(): void;
  checkpointed?(sequence: number): void;
  /** The index is about to be built from the documents again: `damage` or `failures`. */
  rebuilding?(reason: string): void;
  /** How long one native call took. */
  timed?(stage: IndexStage, durationMs: number): void;
}

export type IndexStage = 'apply' | 'commit' | 'checkpoint';

export type ApplierState = 'opening' | 'catching_up' | 'live' | 'failed' | 'closed';

/** Attempts with what the checkpoint holds before the index is wiped and rebuilt from the documents. */
const attemptsBeforeRebuild = 3;
const retries: Backoff = { firstMs: 200, maxMs: 30_000 };
const noRows = new FrameBuilder(1, 1).finish();

/**
 * Keeps one index of one range up to date. Live rows arrive through `offer`; whenever there is a gap (start, failure,
 * too much queued) the change feed is read until the index stands at the head again. One native call is in flight
 * at a time; a failure closes the index and starts again from its last checkpoint, so that replay is the only
 * recovery.
 */
export class IndexApplier implements WriterHolder {
  readonly progress = new IndexProgress();
  readonly #open: OpenRangeIndex;
  readonly #source: IndexSource;
  readonly #clock: Clock;
  readonly #options: ApplierOptions;
  readonly #events: ApplierEvents;
  readonly #writers: WriterBudget | undefined;
  readonly #schedule: PublishSchedule;
  readonly #stop = new AbortController();
  readonly #finished: Promise<void>;

  #state: ApplierState = 'opening';
  #index: RangeIndex | undefined;
  #queue: ChangePage[] = [];
  #queuedBytes = 0;
  /** Sequence given to the native index, visible or not. */
  #applied = 0;
  /** Sequence of the last row in the queue. */
  #tail = 0;
  /** Sequence of the native index's last commit; behind what is published when only rows of others came since. */
  #committed = 0;
  /** Sequence of its last durable commit. */
  #checkpointed = 0;
  #backfilledRows = 0;
  #rebuilding = false;
  #hasBeenLive = false;
  #lastError: unknown;
  /** Head of the range before this applier could take any row; until the index has been opened once. */
  #headAtStart: number | undefined;
  /** Head of the range when the index was last opened: what it may have shown before. */
  #replayTarget: number;
  /** The background verification found damage in the open index. */
  #suspect = false;
  #skippedCount = 0;
  /** The writer was given back since the last row. */
  #isReleased = false;
  /** Others need the writer. */
  #isReleaseWanted = false;
  /** What the index holds is not wanted any more. */
  #isDiscarded = false;
  #wake: () => void = () => {};
  #stateWaiters: { holds: () => boolean; resolve: (held: boolean) => void }[] = [];

  constructor(deps: {
    open: OpenRangeIndex;
    source: IndexSource;
    clock: Clock;
    options: ApplierOptions;
    events?: ApplierEvents;
    /** Shared by all indexes; without one, a writer is kept until it is idle. */
    writers?: WriterBudget;
  }) {
    this.#writers = deps.writers;
    this.#open = deps.open;
    this.#source = deps.source;
    this.#clock = deps.clock;
    this.#options = deps.options;
    this.#schedule = new PublishSchedule(deps.options);
    this.#events = deps.events ?? {};
    this.#headAtStart = deps.source.head();
    this.#replayTarget = this.#headAtStart;
    this.#finished = this.#run();
  }

  get state(): ApplierState {
    return this.#state;
  }

  /** The open native index; undefined while it is opening or has failed. */
  get index(): RangeIndex | undefined {
    return this.#index;
  }

  /** It has come up to its range since it was opened: what it lacks are the newest rows. */
  get isServing(): boolean {
    return this.#hasBeenLive && this.#index !== undefined;
  }

  /** It shows everything that its range held when it was opened. Until then a search misses rows that were shown before. */
  get hasReplayed(): boolean {
    return this.#index !== undefined && this.progress.published >= this.#replayTarget;
  }

  /** Everything that it was given is visible, and nothing more is to be done for it. */
  get isAtRest(): boolean {
    return this.#state === 'live' && this.#queue.length === 0 && this.#applied === this.progress.published;
  }

  /** It is built from the documents, and not up to the range yet. */
  get isRebuilding(): boolean {
    return this.#rebuilding;
  }

  /** More waits than may; true also while it reads what it had to drop for that reason. */
  isOverloaded(backlogBytesMax: number): boolean {
    return this.isServing && (this.#state !== 'live' || this.backlogBytes > backlogBytesMax);
  }

  get backlogBytes(): number {
    return this.#queuedBytes + this.#schedule.unpublishedBytes;
  }

  /** Every row of its own up to this sequence is durable in the index, so the feed may forget it. */
  get checkpointedSequence(): number {
    return this.#schedule.hasUndurable ? this.#checkpointed : Math.max(this.#checkpointed, this.progress.published);
  }

  report() {
    const stats: RangeIndexStats | undefined = this.#index?.stats();
    return {
      state: this.#state,
      rebuilding: this.#rebuilding,
      applied: this.#applied,
      published: this.progress.published,
      replayTarget: this.#replayTarget,
      hasReplayed: this.hasReplayed,
      checkpointed: this.checkpointedSequence,
      backfilledRows: this.#backfilledRows,
      skippedCount: this.#skippedCount,
      queuedBytes: this.#queuedBytes,
      error: this.#lastError,
      stats,
    };
  }

  /** Rows just committed to the range. Dropped when the feed has to be read anyway. */
  offer(page: ChangePage): void {
    if (this.#state !== 'live' || page.lastSequence <= this.#tail) return;
    if (page.firstSequence !== this.#tail + 1 || this.#queuedBytes > this.#options.queueBytesMax) {
      this.#fallBehind();
    } else {
      this.#queue.push(page);
      this.#queuedBytes += page.frame.byteLength;
      this.#tail = page.lastSequence;
    }
    this.#wake();
  }

  /** As `offer`, for rows of which none concerns this index: its sequence moves, and nothing is woken for it. */
  pass(page: ChangePage): void {
    if (this.#state !== 'live' || page.lastSequence <= this.#tail) return;
    const nothingWaits = this.#tail === this.#applied && this.#applied === this.progress.published;
    if (!nothingWaits || page.firstSequence !== this.#tail + 1) {
      this.offer({ ...page, frame: noRows });
      return;
    }
    this.#tail = page.lastSequence;
    this.#applied = page.lastSequence;
    this.progress.publish(page.lastSequence);
  }

  /** Resolves when rows up to `sequence` are visible. */
  async waitFor(sequence: number, signal?: AbortSignal): Promise<void> {
    const visible = this.progress.waitFor(sequence, signal);
    this.#wake();
    await visible;
  }

  /** Resolves true when the index has come up to its range, false when it is closed or given up before. */
  whenLive(signal: AbortSignal): Promise<boolean> {
    return this.#when(() => this.#state === 'live', signal);
  }

  /** As `whenLive`, for `hasReplayed`. */
  whenReplayed(signal: AbortSignal): Promise<boolean> {
    return this.#when(() => this.hasReplayed, signal);
  }

  releaseWriterSoon(): void {
    this.#isReleaseWanted = true;
    this.#wake();
  }

  /** Ends the loop, publishes and checkpoints what was applied, and closes the native index. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#wake();
    await this.#finished;
  }

  /** As `close`, when the files are about to be removed: what was applied is neither published nor checkpointed. */
  async discard(): Promise<void> {
    this.#isDiscarded = true;
    await this.close();
  }

  #when(holds: () => boolean, signal: AbortSignal): Promise<boolean> {
    if (holds()) return Promise.resolve(true);
    if (this.#state === 'closed' || signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const waiter = { holds, resolve };
      this.#stateWaiters.push(waiter);
      const giveUp = () => {
        this.#stateWaiters = this.#stateWaiters.filter((each) => each !== waiter);
        resolve(false);
      };
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** Answers those who waited for what holds now. */
  #wakeStateWaiters(): void {
    if (this.#stateWaiters.length === 0) return;
    const ready = this.#stateWaiters.filter(({ holds }) => holds());
    this.#stateWaiters = this.#stateWaiters.filter((waiter) => !ready.includes(waiter));
    for (const { resolve } of ready) resolve(true);
  }

  async #run(): Promise<void> {
    let attempt = 0;
    while (!this.#stop.signal.aborted) {
      try {
        await this.#openIndex(attempt >= attemptsBeforeRebuild);
        await this.#follow(() => {
          attempt = 0;
        });
      } catch (error) {
        attempt = isDamage(error) ? attemptsBeforeRebuild : attempt + 1;
        await this.#fail(error, attempt);
      }
    }
    await this.#shutDown();
  }

  async #openIndex(wipe: boolean): Promise<void> {
    this.#state = 'opening';
    this.#hasBeenLive = false;
    if (wipe) {
      this.#rebuilding = true;
      this.#events.rebuilding?.(isDamage(this.#lastError) ? 'damage' : 'failures');
    }
    const index = await this.#open(wipe);
    this.#index = index;
    this.#isReleased = false;
    this.#refuseFromTheFuture(index);
    this.#replayTarget = this.#source.head();
    this.#standAt(index.openedAtSequence);
    if (index.openedAtSequence === 0) this.#rebuilding = true;
    this.#state = 'catching_up';
    this.#events.opened?.(index, this.#source.head());
    this.#suspect = false;
    if (index.openedAtSequence > 0) void this.#verifyBeside(index);
  }

  #standAt(sequence: number): void {
    this.#applied = sequence;
    this.#committed = sequence;
    this.#checkpointed = sequence;
    this.#tail = sequence;
    this.#schedule.restart();
    this.#clearQueue();
    this.progress.restartAt(sequence);
  }

  /** A range that lost the end of its log gives those sequences again, to other rows: such an index cannot be used. */
  #refuseFromTheFuture(index: RangeIndex): void {
    const head = this.#headAtStart ?? this.#source.head();
    this.#headAtStart = undefined;
    if (index.openedAtSequence <= head) return;
    const message = `the index holds changes up to ${index.openedAtSequence}, the range ends at ${head}`;
    throw new IndexFaultError('index_damaged', message);
  }

  /**
   * Looks for damage that no query has met yet while rows are applied and queries answered; a little later, because it
   * reads all files and takes a core from the first queries after a start.
   */
  async #verifyBeside(index: RangeIndex): Promise<void> {
    await pause(this.#clock, this.#options.verifyDelayMs, this.#stop.signal);
    if (this.#index !== index || this.#stop.signal.aborted) return;
    await index.verify().catch((error: unknown) => {
      if (this.#index !== index || !isDamage(error)) return;
      this.#suspect = true;
      this.#wake();
    });
  }

  async #follow(madeProgress: () => void): Promise<void> {
    while (!this.#stop.signal.aborted) {
      // Asked again, because a merge may have removed a file under the first look. It throws when the damage is real.
      if (this.#suspect) await must(this.#index, 'an open index').verify();
      this.#suspect = false;
      if (this.#state === 'catching_up') {
        const page = this.#source.read(this.#applied);
        if (page) {
          this.#backfilledRows += await this.#apply(page);
          madeProgress();
        } else await this.#reachHead();
      } else {
        const taken = takePages(this.#queue);
        if (taken) {
          this.#queuedBytes -= taken.takenBytes;
          await this.#apply(taken.page);
          madeProgress();
        }
      }
      await this.#publishWhenDue();
      await this.#checkpointWhenDue();
      if (this.#state === 'live' && this.#queue.length === 0) await this.#rest();
    }
  }

  /** The feed is read to its end: what was found becomes visible, and rows are taken as they are offered. */
  async #reachHead(): Promise<void> {
    const head = this.#source.head();
    if (this.#applied < head) this.#applied = head;
    await this.#publish();
    if (this.#source.head() > this.#applied) return;
    this.#tail = this.#applied;
    this.#state = 'live';
    this.#hasBeenLive = true;
    this.#rebuilding = false;
    this.#lastError = undefined;
    this.#events.live?.();
    this.#wakeStateWaiters();
  }

  async #apply(page: ChangePage): Promise<number> {
    const index = must(this.#index, 'an open index');
    assert(page.lastSequence > this.#applied, 'a page of the feed was applied before');
    if (readFrame(page.frame).rowCount === 0) {
      this.#applied = page.lastSequence;
      // Skipping pages without rows for this index must not block the event loop.
      await new Promise<void>((resolve) => setImmediate(resolve));
      return 0;
    }
    this.#isReleased = false;
    this.#isReleaseWanted = false;
    this.#writers?.use(this);
    const report = await this.#timed('apply', index.apply(page.frame));
    this.#applied = page.lastSequence;
    this.#schedule.applied(page.frame.byteLength, this.#clock.monotonicMs());
    const skipped = [...report.skipped, ...(page.damaged ?? [])];
    if (skipped.length > 0) {
      this.#skippedCount += skipped.length;
      this.#events.skipped?.(skipped);
    }
    return report.rows;
  }

  async #publishWhenDue(): Promise<void> {
    if (this.#applied === this.progress.published) return;
    const isIdle = this.#state === 'live' && this.#queue.length === 0;
    const isAwaited = this.progress.isAwaited(this.#applied);
    const isDue = this.#schedule.isCommitDue(this.#clock.monotonicMs(), isIdle, isAwaited);
    // What needs no commit is shown at once.
    if (isDue || (isIdle && this.#isReleaseWanted) || !this.#schedule.hasUnpublished) await this.#publish();
  }

  async #publish(): Promise<void> {
    if (this.#applied === this.progress.published) return;
    const sequence = this.#applied;
    if (this.#schedule.hasUnpublished) await this.#commit(sequence);
    this.progress.publish(sequence);
    this.#wakeStateWaiters();
  }

  async #commit(sequence: number): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    await this.#timed('commit', must(this.#index, 'an open index').commit(sequence));
    this.#schedule.committed(this.#clock.monotonicMs() - startedMs);
    this.#committed = sequence;
  }

  async #checkpointWhenDue(): Promise<void> {
    if (this.#committed === this.#checkpointed) return;
    if (this.#schedule.isCheckpointDue(this.#clock.monotonicMs())) await this.#checkpoint();
  }

  async #checkpoint(): Promise<void> {
    const report = await this.#timed('checkpoint', must(this.#index, 'an open index').checkpoint());
    this.#schedule.checkpointed();
    this.#checkpointed = report.sequence;
    this.#events.checkpointed?.(report.sequence);
  }

  async #timed<T>(stage: IndexStage, call: Promise<T>): Promise<T> {
    const startedMs = this.#clock.monotonicMs();
    const result = await call;
    this.#events.timed?.(stage, this.#clock.monotonicMs() - startedMs);
    return result;
  }

  /** Waits for rows, a waiter, or the next deadline; gives the writer back when nothing came for long. */
  async #rest(): Promise<void> {
    if (this.#stop.signal.aborted || this.#suspect) return;
    if (this.progress.isAwaited(this.#applied)) return;
    const dueMs = this.#schedule.restMs(this.#clock.monotonicMs()) ?? Number.POSITIVE_INFINITY;
    if (!this.#isReleaseWanted) {
      const idleMs = this.#isReleased ? Number.POSITIVE_INFINITY : this.#options.writerIdleMs;
      const woken = await this.#sleep(Math.min(dueMs, idleMs));
      if (woken || this.#isReleased || dueMs < idleMs) return;
    }
    this.#isReleaseWanted = false;
    if (this.#isReleased) return;
    await this.#index?.releaseWriter();
    this.#isReleased = true;
    this.#writers?.released(this);
  }

  /** Resolves true when woken, false when `delayMs` has passed; infinity for no delay of its own. */
  #sleep(delayMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel =
        delayMs === Number.POSITIVE_INFINITY ? undefined : this.#clock.after(delayMs, () => resolve(false));
      this.#wake = () => {
        cancel?.();
        resolve(true);
      };
    });
  }

  async #fail(error: unknown, attempt: number): Promise<void> {
    this.#state = 'failed';
    this.#lastError = error;
    this.#clearQueue();
    this.#events.failed?.(error, attempt);
    await this.#closeQuietly();
    // Waiters stay: their rows are durable, and the next attempt publishes them.
    if (isDamage(error)) return;
    await pause(this.#clock, backoffMs(attempt, retries), this.#stop.signal);
  }

  #fallBehind(): void {
    this.#state = 'catching_up';
    this.#clearQueue();
  }

  #clearQueue(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  async #shutDown(): Promise<void> {
    this.#state = 'closed';
    this.progress.rejectAll(new Error('the index was closed'));
    for (const { resolve } of this.#stateWaiters.splice(0)) resolve(false);
    try {
      if (this.#index && !this.#isDiscarded) {
        await this.#publish();
        // Rows of others are told as well, so that the next start need not look through them.
        if (this.progress.published > this.#committed) await this.#commit(this.progress.published);
        if (this.#committed > this.#checkpointed) await this.#checkpoint();
      }
    } catch (error) {
      this.#events.failed?.(error, 0);
    }
    await this.#closeQuietly();
    this.#events.closed?.();
  }

  async #closeQuietly(): Promise<void> {
    const index = this.#index;
    this.#index = undefined;
    this.#writers?.released(this);
    try {
      await index?.close();
    } catch (error) {
      this.#events.failed?.(error, 0);
    }
  }
}

/** The files do not hold what they should: only a rebuild helps. */
function isDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'index_damaged' || code === 'index_incompatible';
}
