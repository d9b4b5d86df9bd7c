import { serverCaller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import { IndexProgress } from '../../indexing/applier/index-progress.ts';
import type {
  PartProducer,
  ProducedRange,
  ProductionFailure,
  ProductionReport,
  Retried,
  RetriedDocuments,
} from '../../indexing/enrichment/part-producer.ts';
import { backoffMs } from '../../lib/backoff.ts';
import { type Clock, pause } from '../../lib/clock.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { FrameBuilder, readFrame, rowKeepsDeclared, rowKind } from '../../lib/document-frame.ts';
import { failpoint } from '../../lib/failpoint.ts';
import { partDeleteBody } from '../../lib/parts/part-body.ts';
import { cursorKey } from '../../lib/parts/part-notes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { FeedRows } from '../../storage/reader/change-feed.ts';
import type { FeedPage } from '../../storage/write-request.ts';
import { type SourceTemplates, sourceOf } from '../derive-source.ts';
import type { BackfillLane } from './backfill-lane.ts';
import { Failures, type NoteChange } from './failures.ts';
import type { Batch, DocumentRow, FollowedPart } from './followed-part.ts';
import { type HeldPart, heldParts } from './held-part.ts';
import { MadeThrough } from './made-through.ts';
import { type Cursor, noteBytes, openCursor } from './part-notes.ts';
import { isMade, madeBody, type PartOutcome } from './part-outcome.ts';
import { backfillProgress, coveredThrough, nextWork, type Work } from './schedule.ts';

interface FollowerDeps {
  readonly log: RangeLog;
  readonly clock: Clock;
  readonly lane: BackfillLane;
  readonly templates: SourceTemplates;
  /** A fault of the embedder, or of the storage; the follower waits and goes on. */
  readonly onFailed: (error: unknown, attempt: number) => void;
  readonly onProduced: (texts: number) => void;
}

/** Pauses while the embedder is down, in milliseconds. */
const outage = { firstMs: 250, maxMs: 30_000 };
/** Pages without a document of interest after which the cursor is noted all the same. */
const silentPagesMax = 16;
/** Documents of a batch for which no model is asked: some milliseconds of work. */
const batchRowsWithoutModel = 1_024;
const encoder = new TextEncoder();

/**
 * Makes the parts of one index, or of one enrichment, in one range. The change feed is the queue: a cursor behind the
 * writes that came since the index exists, and one through the documents from before it. Each batch is one entry of the
 * range's log, with its parts, the documents that failed, and the cursor, so that a kill costs the batch under way and
 * nothing else. A part applies only while its document is the one that was read.
 */
export class PartFollower implements PartProducer {
  readonly #deps: FollowerDeps;
  readonly #range: ProducedRange;
  readonly #definition: FollowedPart;
  readonly #failures: Failures;
  readonly #progress = new IndexProgress();
  readonly #newBatch: () => Batch;
  readonly #feedRows: FeedRows;
  readonly #stop = new AbortController();
  readonly #finished: Promise<void>;
  readonly #made: MadeThrough;
  #cursor: Cursor;
  #silentPages = 0;
  #produced = 0;
  #writtenParts = 0;
  #blocker: ProductionReport['blocker'];
  #isWorking = false;
  readonly #requests: (() => Promise<void>)[] = [];
  #wake: () => void = () => {};

  constructor(deps: FollowerDeps, range: ProducedRange, definition: FollowedPart) {
    this.#deps = deps;
    this.#range = range;
    this.#definition = definition;
    this.#newBatch = definition.batches();
    const { artifact } = definition.source;
    this.#feedRows = { documents: true, ...(artifact === undefined ? {} : { parts: [artifact] }) };
    const { partId, fingerprint } = definition;
    const { firstSequence } = range.stored.info();
    this.#cursor = openCursor(range.stored.notes, partId, fingerprint, { head: range.head(), firstSequence });
    this.#made = new MadeThrough(coveredThrough(this.#cursor), range.head());
    this.#failures = new Failures(range.stored, partId, deps.clock);
    this.#progress.restartAt(this.#cursor.liveAfter);
    this.#finished = this.#run();
  }

  get isAtRest(): boolean {
    return !this.#isWorking && this.#nextWork() === undefined && this.#failures.retrying === 0;
  }

  report(): ProductionReport {
    const { firstSequence } = this.#range.stored.info();
    return {
      liveThrough: this.#cursor.liveAfter,
      coveredThrough: coveredThrough(this.#cursor),
      backfillProgress: backfillProgress(this.#cursor, firstSequence),
      produced: this.#produced,
      retrying: this.#failures.retrying,
      failed: this.#failures.failed,
      blocker: this.#blocker,
    };
  }

  get damaged(): number {
    return this.#failures.damaged;
  }

  shownThrough(read: number): number {
    return this.#made.shownBy(read, coveredThrough(this.#cursor));
  }

  wake(): void {
    this.#wake();
  }

  waitFor(sequence: number, signal?: AbortSignal): Promise<void> {
    return this.#progress.waitFor(sequence, signal);
  }

  failuresWithin(firstSequence: number, lastSequence: number): number {
    return this.#failures.within(firstSequence, lastSequence);
  }

  failureOf(ordinal: number): ProductionFailure | undefined {
    return this.#failures.of(ordinal);
  }

  retryFailed(which: RetriedDocuments): Promise<Retried> {
    const { signal } = this.#stop;
    if (signal.aborted) return Promise.reject(signal.reason);
    // Between two batches, which write notes themselves.
    const reset = Promise.withResolvers<Retried>();
    this.#requests.push(async () => {
      try {
        const { changes, nextKey } = this.#failures.reset(which);
        const frame = new FrameBuilder();
        for (const { key, value } of changes) frame.append(rowKind.state, key, value);
        if (changes.length > 0) await this.#write(frame);
        for (const change of changes) change.commit();
        reset.resolve({ count: changes.length, nextKey });
      } catch (error) {
        reset.reject(error);
      }
    });
    this.#wake();
    return reset.promise;
  }

  async close(): Promise<void> {
    this.#stop.abort(new ServiceError('unavailable', 'the range is being closed'));
    this.#wake();
    await this.#finished;
    this.#progress.end(new Error('the index was closed'));
  }

  #nextWork(): Work | undefined {
    const [head, nowMs] = [this.#range.head(), this.#deps.clock.monotonicMs()];
    return nextWork(this.#cursor, { head, nowMs, retryAtMs: this.#failures.retryAtMs });
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    for (let attempt = 0; !signal.aborted; ) {
      await this.#requests.shift()?.();
      const work = this.#nextWork();
      if (!work) {
        // A `close` that came since the last look has nobody to wake any more.
        if (this.#requests.length === 0 && !signal.aborted) await this.#sleep();
        continue;
      }
      this.#isWorking = true;
      try {
        await this.#work(work);
        attempt = 0;
        this.#blocker = undefined;
      } catch (error) {
        if (signal.aborted) break;
        attempt += 1;
        await this.#pauseAfter(error, attempt);
      } finally {
        this.#isWorking = false;
      }
    }
    for (const request of this.#requests.splice(0)) await request();
  }

  async #pauseAfter(error: unknown, attempt: number): Promise<void> {
    const { clock, onFailed } = this.#deps;
    const retryAfterMs = error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0;
    const code = error instanceof ServiceError ? error.code : 'internal';
    this.#blocker = { code, message: error instanceof Error ? error.message : String(error) };
    onFailed(error, attempt);
    await pause(clock, Math.max(backoffMs(attempt, outage), retryAfterMs), this.#stop.signal);
  }

  #sleep(): Promise<void> {
    const { retryAtMs } = this.#failures;
    return new Promise((resolve) => {
      const delayMs = retryAtMs === undefined ? undefined : Math.max(0, retryAtMs - this.#deps.clock.monotonicMs());
      const cancel = delayMs === undefined ? undefined : this.#deps.clock.after(delayMs, resolve);
      this.#wake = () => {
        cancel?.();
        resolve();
      };
    });
  }

  async #work(work: Work): Promise<void> {
    await this.#range.whenKeepsUp(this.#stop.signal);
    if (work === 'live') return this.#live();
    return this.#deps.lane.run(this.#stop.signal, () => (work === 'retry' ? this.#retry() : this.#backfill()));
  }

  /** Documents that were written since the index exists, a page of them. */
  async #live(): Promise<void> {
    const head = this.#range.head();
    // The note of a failure goes with the next write of its document.
    if (this.#cursor.isEnded && this.#failures.failed === 0) return this.#move({ ...this.#cursor, liveAfter: head });
    const written = this.#writtenParts;
    const page = this.#range.stored.feed.read(this.#cursor.liveAfter, this.#feedRows);
    const through = page?.lastSequence ?? head;
    const { rows, gone, damaged } = contentsOf(page);
    await this.#cover(rows, [...this.#cleared(gone), ...this.#damaged(damaged)], (sequence) => ({
      ...this.#cursor,
      liveAfter: sequence ?? through,
    }));
    if (this.#definition.ofOlderDocuments && written === this.#writtenParts) await this.#endAt(head);
  }

  /**
   * Ends the following where all documents up to `head`, which was read before they were looked at, had their parts. One that was
   * given its part while it was written once more has none, and comes again behind that: then it has not ended.
   */
  async #endAt(head: number): Promise<void> {
    const { isEnded, liveAfter } = this.#cursor;
    if (isEnded || isBehind(this.#cursor) || liveAfter < head) return;
    await this.#append([], new Map(), [], { ...this.#cursor, isEnded: true });
  }

  /** Documents from before the index; stops at the end of a batch where something was written meanwhile. */
  async #backfill(): Promise<void> {
    const { backfillAfter, backfillUntil } = this.#cursor;
    const page = this.#range.stored.feed.read(backfillAfter, this.#feedRows);
    const through = Math.min(page?.lastSequence ?? backfillUntil, backfillUntil);
    const { rows, damaged } = contentsOf(page);
    const isOlder = ({ sequence }: { sequence: number }) => sequence <= backfillUntil;
    const isInterrupted = () => this.#cursor.liveAfter < this.#range.head();
    const move = (sequence?: number) => ({ ...this.#cursor, backfillAfter: sequence ?? through });
    await this.#cover(rows.filter(isOlder), this.#damaged(damaged.filter(isOlder)), move, isInterrupted);
  }

  /** Documents whose embedding has failed, and which have not changed since. */
  async #retry(): Promise<void> {
    const { stored } = this.#range;
    const due = this.#failures.due(limits.enrichmentBatchItems);
    const read = stored.documents.byOrdinals(due.map(({ ordinal }) => ordinal));
    const found = new Map(read.documents.map((each) => [each.ordinal, each]));
    const { artifact } = this.#definition.source;
    const sources = artifact === undefined ? undefined : stored.parts.read([...found.keys()], [artifact]);
    const gone: number[] = [];
    const damaged: DamagedSource[] = [];
    const rows = due.flatMap(({ ordinal, note }): DocumentRow[] => {
      if (read.damaged.has(ordinal) || sources?.damaged.has(ordinal)) {
        damaged.push({ ordinal, sequence: note.sequence });
        return [];
      }
      const document = found.get(ordinal);
      if (document?.sequence === note.sequence) {
        const { key, sequence, text } = document;
        const artifacts = sources?.found.get(ordinal);
        return [
          { ordinal, key: encoder.encode(key), sequence, body: encoder.encode(text), ...(artifacts && { artifacts }) },
        ];
      }
      gone.push(ordinal);
      return [];
    });
    await this.#cover(rows, [...this.#cleared(gone), ...this.#damaged(damaged)], () => this.#cursor);
  }

  /**
   * Gives documents their parts, in batches, each with the cursor behind its last document; `move` without a sequence is
   * the cursor behind all of them. `changes`: of notes, beside those that the parts make.
   */
  async #cover(
    rows: readonly DocumentRow[],
    changes: readonly NoteChange[],
    move: (sequence?: number) => Cursor,
    isInterrupted: () => boolean = () => false,
  ): Promise<void> {
    const { stored } = this.#range;
    const { templates } = this.#deps;
    const { partId } = this.#definition;
    const ordinals = rows.map(({ ordinal }) => ordinal);
    const held = heldParts(stored.parts, partId, ordinals);
    let notes = changes;
    for (let at = 0; at < rows.length; ) {
      const batch = this.#newBatch();
      const from = at;
      for (; at < rows.length && !batch.isFull && at - from < this.#batchRowsMax; at += 1) {
        const row = rows[at] as DocumentRow;
        const call = this.#call();
        const derived = sourceOf(row.body, this.#definition.source, templates, call, row.artifacts);
        const source = derived instanceof Promise ? await derived : derived;
        const added = batch.add(row, source, held.get(row.ordinal), call);
        if (added) await added;
      }
      // Rendering and comparing must not hold the event loop for a whole page.
      await yieldToEventLoop();
      const outcomes = await batch.run(this.#call());
      failpoint('enrichment.after-embedding');
      const isLast = at >= rows.length;
      // A document that comes again because of an artifact says nothing of how far the feed was read.
      const isRead = this.#definition.source.artifact === undefined;
      const next = isLast ? move() : isRead ? move(rows[at - 1]?.sequence) : this.#cursor;
      await this.#append(outcomes, held, notes, next);
      this.#produced += batch.sourceCount;
      if (batch.sourceCount > 0) this.#deps.onProduced(batch.sourceCount);
      notes = [];
      if (this.#stop.signal.aborted || isInterrupted()) return;
    }
    if (rows.length === 0) await this.#append([], held, notes, move());
  }

  /** Documents that need no note any more. */
  #cleared(ordinals: readonly number[]): NoteChange[] {
    return ordinals.flatMap((ordinal) => this.#failures.clear(ordinal) ?? []);
  }

  /** A part that is there stays: what it was made from may be as it was. */
  #damaged(sources: readonly DamagedSource[]): NoteChange[] {
    return sources.map((source) => this.#failures.addDamaged(source));
  }

  get #batchRowsMax(): number {
    return this.#definition.ofOlderDocuments ? batchRowsWithoutModel : limits.enrichmentBatchItems;
  }

  #call() {
    const { signal } = this.#stop;
    return { caller: serverCaller('enrichment', signal), signal, priority: 'background' as const };
  }

  /** One entry of the log: parts, failures and the cursor. Where there is nothing to say the cursor moves in memory only. */
  async #append(
    outcomes: readonly { row: DocumentRow; outcome: PartOutcome }[],
    held: ReadonlyMap<number, HeldPart>,
    cleared: readonly NoteChange[],
    cursor: Cursor,
  ): Promise<void> {
    const frame = new FrameBuilder();
    const changes = [...cleared];
    for (const { row, outcome } of outcomes) {
      const change = this.#addOutcome(frame, row, outcome, held.has(row.ordinal));
      if (change) changes.push(change);
    }
    for (const { key, value } of changes) frame.append(rowKind.state, key, value);
    this.#silentPages = frame.rowCount === 0 ? this.#silentPages + 1 : 0;
    const ends = cursor.isEnded && !this.#cursor.isEnded;
    if (frame.rowCount > 0 || this.#silentPages >= silentPagesMax || ends) {
      frame.append(rowKind.state, cursorKey(this.#definition.partId), noteBytes(cursor));
      this.#silentPages = 0;
      await this.#write(frame);
      this.#made.note(coveredThrough(cursor), this.#range.head());
    }
    for (const change of changes) change.commit();
    this.#move(cursor);
  }

  #move(cursor: Cursor): void {
    this.#cursor = cursor;
    if (cursor.liveAfter > this.#progress.published) this.#progress.publish(cursor.liveAfter);
  }

  #addOutcome(frame: FrameBuilder, row: DocumentRow, outcome: PartOutcome, hasPart: boolean): NoteChange | undefined {
    const { partId } = this.#definition;
    if (isMade(outcome)) {
      const body = madeBody(partId, outcome);
      this.#writtenParts += 1;
      const part = frame.append(rowKind.partPut, row.key, body);
      frame.setRequiredSequence(part, row.sequence);
      if (outcome.kind === 'artifact' && outcome.keepsDeclared) frame.setFlags(part, rowKeepsDeclared);
    } else if (outcome.kind !== 'kept' && hasPart) {
      frame.setRequiredSequence(frame.append(rowKind.partDelete, row.key, partDeleteBody(partId)), row.sequence);
    }
    if (outcome.kind !== 'failed') return this.#failures.clear(row.ordinal);
    const { error, isFinal } = outcome;
    return this.#failures.add(row.ordinal, row.sequence, { error, isFinal });
  }

  async #write(frame: FrameBuilder): Promise<void> {
    const timeMs = this.#deps.clock.nowMs();
    const stamp = { requestId: 'enrichment', timeMs, timestamp: new Date(timeMs).toISOString() };
    failpoint('enrichment.before-append');
    const { graphs } = this.#definition;
    const write = { rangeId: this.#range.stored.rangeId, frame: frame.finish(), ...(graphs && { graphs }) };
    await this.#deps.log.append({ writes: [write], ...stamp });
    failpoint('enrichment.after-append');
  }
}

/** Whether documents from before the definition are left to be looked at. */
function isBehind({ backfillAfter, backfillUntil }: Cursor): boolean {
  return backfillAfter < backfillUntil;
}

/** A document that is damaged, or an artifact of it. */
interface DamagedSource {
  readonly ordinal: number;
  /** Of the document. */
  readonly sequence: number;
}

/** The documents of a page of the feed, with the artifacts that were asked for; `gone`: ordinals of those that are no more. */
function contentsOf(page: FeedPage | undefined): { rows: DocumentRow[]; gone: number[]; damaged: DamagedSource[] } {
  if (!page) return { rows: [], gone: [], damaged: [] };
  const ordinals = new Set(page.damaged.map(({ ordinal }) => ordinal));
  const isDamaged = ({ ordinal }: { ordinal: number }) => ordinals.has(ordinal);
  const [rows, tombstones] = [documentsOf(page.frame), tombstonesOf(page.frame)];
  return {
    rows: rows.filter((row) => !isDamaged(row)),
    gone: tombstones.filter((each) => !isDamaged(each)).map(({ ordinal }) => ordinal),
    damaged: [...rows, ...tombstones].filter(isDamaged).map(({ ordinal, sequence }) => ({ ordinal, sequence })),
  };
}

function documentsOf(bytes: Uint8Array<ArrayBuffer>): DocumentRow[] {
  const frame = readFrame(bytes);
  const rows: (DocumentRow & { artifacts: Map<number, Uint8Array> })[] = [];
  for (let row = 0; row < frame.rowCount; row += 1) {
    const [ordinal, sequence] = [frame.ordinal(row), frame.sequence(row)];
    if (frame.kind(row) === rowKind.put) {
      rows.push({ ordinal, sequence, key: frame.keyBytes(row), body: frame.body(row), artifacts: new Map() });
    } else if (frame.kind(row) === rowKind.partPut) {
      // The artifacts of a document lie behind it.
      const document = rows.at(-1);
      if (document?.ordinal === ordinal) document.artifacts.set(frame.partId(row), frame.body(row));
    }
  }
  return rows;
}

/** Of documents that are gone, or damaged. */
function tombstonesOf(bytes: Uint8Array<ArrayBuffer>): { ordinal: number; sequence: number }[] {
  const frame = readFrame(bytes);
  const rows = Array.from({ length: frame.rowCount }, (_, row) => row);
  const tombstones = rows.filter((row) => frame.kind(row) === rowKind.delete);
  return tombstones.map((row) => ({ ordinal: frame.ordinal(row), sequence: frame.sequence(row) }));
}
