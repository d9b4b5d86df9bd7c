import { UnwrittenCheckpointError } from '../../engine/engine-error.ts';
import { assert, must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ChangePage, CheckpointReport, RangeIndex } from '../range-index.ts';
import { IndexProgress } from './index-progress.ts';
import { LeftOutDocuments } from './left-out-documents.ts';
import { type PublishOptions, PublishSchedule } from './publish-schedule.ts';

export type IndexStage = 'apply' | 'commit' | 'checkpoint';

export interface AppliedIndexEvents {
  checkpointed?(sequence: number): void;
  /** A checkpoint could not be written; the index goes on, and it is tried again. */
  unwritten?(error: Error, attempt: number): void;
  /** How long one native call took. */
  timed?(stage: IndexStage, durationMs: number): void;
}

/** The outcome of a page. */
interface AppliedPage {
  rows: number;
  /** Documents that the index could not take, or that could not be read. */
  skipped: { key: string; reason: string }[];
}

/**
 * One native index over its openings: what it was given, what it shows, and what of it is durable. Its calls come one at a
 * time.
 */
export class AppliedIndex {
  readonly progress = new IndexProgress();
  readonly leftOut: LeftOutDocuments;
  readonly #clock: Clock;
  readonly #events: AppliedIndexEvents;
  readonly #schedule: PublishSchedule;
  #index: RangeIndex | undefined;
  /** Sequence given to the native index, visible or not. */
  #applied = 0;
  /** Sequence of the native index's last commit; behind what is published when only rows of others came since. */
  #committed = 0;
  /** Sequence of its last durable commit. */
  #checkpointed = 0;
  /** Why the last checkpoint could not be written; undefined when it was. */
  #unwrittenReason: string | undefined;

  /** `partId`: as in `LeftOutDocuments`. */
  constructor(deps: { clock: Clock; options: PublishOptions; events: AppliedIndexEvents; partId: number | undefined }) {
    this.leftOut = new LeftOutDocuments(deps.partId);
    this.#clock = deps.clock;
    this.#events = deps.events;
    this.#schedule = new PublishSchedule(deps.options);
  }

  /** The open native index. */
  get index(): RangeIndex | undefined {
    return this.#index;
  }

  get applied(): number {
    return this.#applied;
  }

  /** Everything that it was given is visible. */
  get isPublished(): boolean {
    return this.#applied === this.progress.published;
  }

  get unpublishedBytes(): number {
    return this.#schedule.unpublishedBytes;
  }

  /** Every row of its own up to this sequence is durable in the index. */
  get checkpointedSequence(): number {
    return this.#schedule.hasUndurable ? this.#checkpointed : Math.max(this.#checkpointed, this.progress.published);
  }

  /** The native index, when its last commit is not durable. */
  get undurable(): RangeIndex | undefined {
    return this.#committed > this.#checkpointed ? this.#index : undefined;
  }

  /** Why checkpoints cannot be written at present; undefined when they can. */
  get unwrittenReason(): string | undefined {
    return this.#unwrittenReason;
  }

  /** As much waits for a checkpoint that cannot be written as may: no more may be applied. */
  get isFull(): boolean {
    return this.#schedule.isFull;
  }

  /** It stands at its checkpoint. */
  opened(index: RangeIndex): void {
    this.#index = index;
    const sequence = index.openedAtSequence;
    this.#applied = sequence;
    this.#committed = sequence;
    this.#checkpointed = sequence;
    this.#unwrittenReason = undefined;
    this.#schedule.restart();
    this.leftOut.opened(index.leftOut());
    this.progress.restartAt(sequence);
  }

  /** It was given everything up to here: what is in between concerns others. */
  skipTo(sequence: number): void {
    this.#applied = Math.max(this.#applied, sequence);
  }

  /** `waitingSinceMs`: since when its rows have waited to be shown, at the longest. */
  async apply(page: ChangePage, waitingSinceMs: number): Promise<AppliedPage> {
    assert(page.lastSequence > this.#applied, 'a page of the feed was applied before');
    this.leftOut.take(page);
    const report = await this.#timed('apply', this.#open().apply(page.frame));
    this.#applied = page.lastSequence;
    this.#schedule.applied(page.frame.byteLength, waitingSinceMs);
    return { rows: report.rows, skipped: [...report.skipped, ...(page.damaged ?? [])] };
  }

  /** `isIdle`: nothing more waits to be applied. `isWriterWanted`: others need its writer. */
  async publishWhenDue(isIdle: boolean, isWriterWanted: boolean): Promise<void> {
    if (this.isPublished) return;
    const isAwaited = this.progress.isAwaited(this.#applied);
    const isDue = this.#schedule.isCommitDue(this.#clock.monotonicMs(), isIdle, isAwaited);
    // Changes that need no commit are shown at once.
    if (isDue || (isIdle && isWriterWanted) || !this.#schedule.hasUnpublished) await this.publish();
  }

  async publish(): Promise<void> {
    if (this.isPublished) return;
    const sequence = this.#applied;
    if (this.#schedule.hasUnpublished) await this.#commit(sequence);
    this.progress.publish(sequence);
  }

  /** Has the native index know what is published, rows of others included. */
  async commitPublished(): Promise<void> {
    if (this.progress.published > this.#committed) await this.#commit(this.progress.published);
  }

  async #commit(sequence: number): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    await this.#timed('commit', this.#open().commit(sequence, this.leftOut.toNote()));
    this.#schedule.committed(this.#clock.monotonicMs() - startedMs);
    this.#committed = sequence;
  }

  async checkpointWhenDue(): Promise<void> {
    if (this.undurable && this.#schedule.isCheckpointDue(this.#clock.monotonicMs())) await this.checkpoint();
  }

  /**
   * Makes the last commit durable, if it is not. Where it cannot be written,
   * the index stays open, and it is tried again later.
   */
  async checkpoint(): Promise<void> {
    if (!this.undurable) return;
    try {
      this.checkpointed(await this.#timed('checkpoint', this.undurable.checkpoint()));
    } catch (error) {
      if (!(error instanceof UnwrittenCheckpointError)) throw error;
      this.#unwrittenReason = error.message;
      this.#events.unwritten?.(error, this.#schedule.unwritten(this.#clock.monotonicMs()));
    }
  }

  /** The last commit was made durable. */
  checkpointed({ sequence }: CheckpointReport): void {
    this.#schedule.checkpointed();
    this.#unwrittenReason = undefined;
    this.#checkpointed = sequence;
    this.#events.checkpointed?.(sequence);
  }

  /** Milliseconds until something is due while no row comes; infinity when nothing will be. */
  get restMs(): number {
    return this.#schedule.restMs(this.#clock.monotonicMs()) ?? Number.POSITIVE_INFINITY;
  }

  async close(): Promise<void> {
    const index = this.#index;
    this.#index = undefined;
    await index?.close();
  }

  #open(): RangeIndex {
    return must(this.#index, 'an open index');
  }

  async #timed<T>(stage: IndexStage, call: Promise<T>): Promise<T> {
    const startedMs = this.#clock.monotonicMs();
    const result = await call;
    this.#events.timed?.(stage, this.#clock.monotonicMs() - startedMs);
    return result;
  }
}
