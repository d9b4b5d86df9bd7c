import { assert, must } from '../lib/assert.ts';
import { readFrame } from '../lib/document-frame.ts';
import { failpoint } from '../lib/failpoint.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { TransferList } from '../runtime/worker-channel.ts';
import type { CatalogFile, RedoRow } from './catalog-file.ts';
import type { CommitLog } from './commit-log.ts';
import { type AppliedWrite, type EntryGroup, entryFormat, type RangeId, type RangeWrite } from './entry-group.ts';
import type { EvaluationContext } from './evaluation-context.ts';
import type { OpenRange, OpenRanges } from './open-ranges.ts';
import { decodeRedo, encodeRedo, type RedoPart } from './redo-record.ts';
import { checkReadAssertion, evaluateWrite } from './row-evaluation.ts';
import { isSqliteError } from './storage-error.ts';

/** One request on its way through the writer. */
export interface AppendCall {
  readonly request: EntryGroup;
  resolve(applied: AppliedWrite[], transfer: TransferList): void;
  reject(error: unknown): void;
}

/** Translates a failure for callers; the writer stops for good when it says that the disk failed. */
export type ReportFailure = (error: unknown, path: string) => unknown;

/**
 * Evaluates and commits requests. Those of one range share a transaction and its sync; a request over several ranges
 * is first committed as a redo record to the catalog, then to each range.
 */
export class AppendRunner {
  readonly #ranges: OpenRanges;
  readonly #catalog: CatalogFile;
  readonly #catalogPath: string;
  readonly #commits: CommitLog;
  readonly #report: ReportFailure;
  /** Redo records that have reached all their ranges; forgotten with the next record. */
  #applied: number[] = [];
  /** Ranges that have yet to take what the catalog has committed for them. */
  readonly #behind = new Set<RangeId>();

  constructor(
    ranges: OpenRanges,
    catalog: CatalogFile,
    catalogPath: string,
    commits: CommitLog,
    report: ReportFailure,
  ) {
    this.#commits = commits;
    this.#ranges = ranges;
    this.#catalog = catalog;
    this.#catalogPath = catalogPath;
    this.#report = report;
  }

  /** Runs requests in order, sharing commits where neighbours allow it. */
  run(calls: readonly AppendCall[]): void {
    let start = 0;
    while (start < calls.length) {
      const single = isSingle(must(calls[start], 'a gap in the queue').request);
      let end = start + 1;
      while (end < calls.length && isSingle(must(calls[end], 'a gap in the queue').request) === single) end += 1;
      const neighbours = calls.slice(start, end);
      if (single) this.#runSingles(neighbours);
      else this.#runGroups(neighbours);
      start = end;
    }
  }

  /**
   * Finishes what a crash interrupted. A damaged range keeps its record and takes no writes; the others go on.
   */
  finishRedo(): { redone: number; warnings: string[] } {
    const finished: number[] = [];
    const warnings: string[] = [];
    let redone = 0;
    for (const record of this.#catalog.redo()) {
      const outcome = this.#redoWhereSound(record, warnings);
      if (outcome.worked) redone += 1;
      if (outcome.whole) finished.push(record.transactionId);
    }
    if (finished.length > 0) this.#catalog.writeRedo([], finished);
    return { redone, warnings };
  }

  #redoWhereSound(record: RedoRow, warnings: string[]): { worked: boolean; whole: boolean } {
    const outcome = { worked: false, whole: true };
    for (const { rangeId } of decodeRedo(record.payload)) {
      try {
        if (this.#redo(record, rangeId)) outcome.worked = true;
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'data_corrupted') throw error;
        outcome.whole = false;
        this.#behind.add(rangeId);
        warnings.push(`range ${rangeId} lacks a committed write: ${error.message}`);
      }
    }
    return outcome;
  }

  /** Forgets the records of finished writes, so that a clean start finds none. */
  forgetApplied(): void {
    if (this.#applied.length === 0) return;
    this.#catalog.writeRedo([], this.#applied);
    this.#applied = [];
  }

  #runSingles(calls: readonly AppendCall[]): void {
    for (const [rangeId, ofRange] of Map.groupBy(calls, (call) => firstRange(call.request))) {
      try {
        this.#runRange(this.#writable(rangeId), ofRange);
      } catch (error) {
        const reported = this.#report(error, this.#ranges.find(rangeId)?.path ?? this.#catalogPath);
        for (const call of ofRange) call.reject(reported);
      }
    }
  }

  /** One transaction for all these requests. A throw fails all of them, with nothing written. */
  #runRange(range: OpenRange, calls: readonly AppendCall[]): void {
    const { file } = range;
    const answers: Answer[] = [];
    const failures: { call: AppendCall; error: unknown }[] = [];
    const before = file.state.nextSequence;
    file.begin();
    try {
      for (const call of calls) {
        const evaluate = () => evaluateGroup(call.request, [range]);
        try {
          answers.push({ call, applied: calls.length === 1 ? evaluate() : file.nested(evaluate) });
        } catch (error) {
          if (isSqliteError(error)) throw error;
          failures.push({ call, error });
        }
      }
      if (answers.length === 0 || file.state.nextSequence === before) file.rollback();
      else this.#commits.timed(answers.length, () => this.#commit(range, before));
    } catch (error) {
      file.rollback();
      throw error;
    }
    for (const { call, applied } of answers) answer(call, applied);
    for (const { call, error } of failures) call.reject(error);
  }

  #commit(range: OpenRange, firstSequence: number): void {
    const { file } = range;
    failpoint('storage.before-commit');
    file.commit();
    failpoint('storage.after-commit');
    range.wal.wrote(file.takeWrittenBytes(), file.state.nextSequence - firstSequence);
  }

  /** Requests over several ranges, evaluated together and committed by one redo transaction. */
  #runGroups(calls: readonly AppendCall[]): void {
    const opened = new Map<RangeId, { range: OpenRange; before: number }>();
    const answers: Answer[] = [];
    const rollBack = () => {
      for (const { range } of opened.values()) if (range.file.inTransaction) range.file.rollback();
    };
    for (const call of calls) {
      try {
        answers.push({ call, applied: this.#evaluateOver(call.request, opened) });
      } catch (error) {
        if (!isSqliteError(error)) {
          call.reject(error);
          continue;
        }
        rollBack();
        const reported = this.#report(error, this.#catalogPath);
        for (const failed of calls) if (!answers.some(({ call: done }) => done === failed)) failed.reject(reported);
        for (const { call: undone } of answers) undone.reject(reported);
        return;
      }
    }
    this.#commits.timed(answers.length, () => this.#commitGroups(opened, answers, rollBack));
  }

  #evaluateOver(group: EntryGroup, opened: Map<RangeId, { range: OpenRange; before: number }>): AppliedWrite[] {
    const ranges = involvedRanges(group).map((rangeId) => {
      const known = opened.get(rangeId);
      if (known) return known.range;
      const range = this.#writable(rangeId);
      range.file.begin();
      opened.set(rangeId, { range, before: range.file.state.nextSequence });
      return range;
    });
    const evaluate = ranges.reduceRight<() => AppliedWrite[]>(
      (inner, range) => () => range.file.nested(inner),
      () => evaluateGroup(group, ranges),
    );
    return evaluate();
  }

  #commitGroups(
    opened: ReadonlyMap<RangeId, { range: OpenRange; before: number }>,
    answers: readonly Answer[],
    rollBack: () => void,
  ): void {
    const changed = [...opened.values()].filter(({ range, before }) => range.file.state.nextSequence > before);
    const failed = new Map<RangeId, unknown>();
    try {
      const transactions = changed.length > 1 ? this.#record(answers, opened) : [];
      for (const [place, { range, before }] of changed.entries()) {
        if (place > 0) failpoint('redo.between-ranges');
        try {
          this.#commit(range, before);
        } catch (error) {
          if (transactions.length === 0) throw error;
          // The catalog has committed: the range takes no other write until it has taken this one.
          range.file.rollback();
          this.#behind.add(range.file.rangeId);
          failed.set(range.file.rangeId, committedLater(this.#report(error, range.path)));
        }
      }
      if (failed.size === 0) this.#applied.push(...transactions);
      if (transactions.length > 0) failpoint('redo.before-clear');
    } catch (error) {
      rollBack();
      const reported = this.#report(error, this.#catalogPath);
      for (const { call } of answers) call.reject(reported);
      return;
    }
    rollBack();
    for (const { call, applied } of answers) {
      const hit = applied.find(({ rangeId, images }) => images && failed.has(rangeId));
      if (hit) call.reject(failed.get(hit.rangeId));
      else answer(call, applied);
    }
  }

  /** Makes the commit point of these requests; returns the ids of their records. */
  #record(answers: readonly Answer[], opened: ReadonlyMap<RangeId, { range: OpenRange }>): number[] {
    let transactionId = this.#catalog.peekTransactionId();
    const records: RedoRow[] = [];
    for (const { applied } of answers) {
      const parts = applied.flatMap(({ rangeId, images, header }): RedoPart[] =>
        images ? [{ rangeId, generation: header.generation, entryIndex: header.index, frame: images.frame }] : [],
      );
      if (parts.length === 0) continue;
      for (const { rangeId } of parts) {
        must(opened.get(rangeId), 'a part of a range that is not open').range.file.state.transactionId = transactionId;
      }
      records.push({ transactionId, payload: encodeRedo(parts) });
      transactionId += 1;
    }
    this.#catalog.writeRedo(records, this.#applied);
    this.#applied = [];
    failpoint('redo.after-record');
    return records.map((record) => record.transactionId);
  }

  /** The range, ready for new writes: what the catalog has committed for it comes first. */
  #writable(rangeId: RangeId): OpenRange {
    const range = this.#ranges.get(rangeId);
    if (this.#behind.has(rangeId)) {
      for (const record of this.#catalog.redo()) this.#redo(record, rangeId);
      this.#behind.delete(rangeId);
    }
    return range;
  }

  /** Applies a record to the ranges (or the one) that lack it; true when any did. */
  #redo(record: RedoRow, only?: RangeId): boolean {
    let worked = false;
    for (const part of decodeRedo(record.payload)) {
      if (only !== undefined && part.rangeId !== only) continue;
      // A table that has been dropped since then needs nothing any more.
      if (this.#catalog.reading.range(part.rangeId)?.generation !== part.generation) continue;
      const { file, wal } = this.#ranges.get(part.rangeId);
      if (file.state.transactionId >= record.transactionId) continue;
      worked = true;
      file.begin();
      try {
        file.applyImages(readFrame(part.frame));
        file.state.entryIndex = part.entryIndex;
        file.state.transactionId = record.transactionId;
        file.commit();
        wal.wrote(part.frame.byteLength, 1);
      } catch (error) {
        file.rollback();
        throw error;
      }
    }
    return worked;
  }
}

/** The catalog has committed, so "nothing was written" would be wrong; a failed disk stays a failed disk. */
function committedLater(error: unknown): unknown {
  if (error instanceof ServiceError && error.code === 'storage_failed') return error;
  return new ServiceError('unavailable', 'the write is committed, but a range cannot take it yet; it will follow', {
    details: { committed: true },
    cause: error,
  });
}

interface Answer {
  call: AppendCall;
  applied: AppliedWrite[];
}

function answer(call: AppendCall, applied: AppliedWrite[]): void {
  call.resolve(
    applied,
    applied.flatMap(({ images }) => (images ? [images.frame.buffer] : [])),
  );
}

function firstRange(group: EntryGroup): RangeId {
  return must(group.writes[0]?.rangeId ?? group.readSet?.[0]?.rangeId, 'a request that names no range');
}

function involvedRanges(group: EntryGroup): RangeId[] {
  const ids = new Set(group.writes.map((write) => write.rangeId));
  for (const { rangeId } of group.readSet ?? []) ids.add(rangeId);
  return [...ids].sort((left, right) => left - right);
}

function isSingle(group: EntryGroup): boolean {
  const first = firstRange(group);
  return (
    group.writes.every((write) => write.rangeId === first) &&
    (group.readSet ?? []).every(({ rangeId }) => rangeId === first)
  );
}

/** Checks the read set, then writes in the order given. All ranges involved are in an open transaction. */
function evaluateGroup(group: EntryGroup, ranges: readonly OpenRange[]): AppliedWrite[] {
  const byId = new Map(ranges.map((range) => [range.file.rangeId, range]));
  const rangeOf = (rangeId: RangeId) => must(byId.get(rangeId), 'a write to a range that is not open');
  for (const assertion of group.readSet ?? []) {
    const range = rangeOf(assertion.rangeId);
    checkReadAssertion(range.file, assertion, contextOf(group, range));
  }
  assert(new Set(group.writes.map((write) => write.rangeId)).size === group.writes.length, 'a range is written twice');
  return group.writes.map((write) => evaluateEntry(group, write, rangeOf(write.rangeId)));
}

function contextOf(group: EntryGroup, range: OpenRange): EvaluationContext {
  return { timeMs: group.timeMs, timestamp: group.timestamp, ttlDurationMs: range.ttlDurationMs };
}

function evaluateEntry(group: EntryGroup, write: RangeWrite, range: OpenRange): AppliedWrite {
  const { file } = range;
  const { counts, images } = evaluateWrite(file, write, contextOf(group, range));
  if (images) file.state.entryIndex += 1;
  const { documents, bytes, entryIndex } = file.state;
  return {
    rangeId: file.rangeId,
    header: {
      format: entryFormat,
      kind: 'rows',
      rangeId: file.rangeId,
      generation: file.generation,
      epoch: 0,
      index: entryIndex,
      requestId: group.requestId,
      timeMs: group.timeMs,
    },
    counts,
    images,
    totals: { documents, bytes },
  };
}
