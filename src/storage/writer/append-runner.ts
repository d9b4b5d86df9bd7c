import { must } from '../../lib/assert.ts';
import { failpoint } from '../../lib/failpoint.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { TransferList } from '../../runtime/worker-channel.ts';
import type { CatalogFile, RedoRow } from '../catalog/catalog-file.ts';
import type { HeldFile } from '../directory/held-file.ts';
import {
  evaluateRequest,
  firstRange,
  freesSpace,
  involvedRanges,
  isSingle,
  type SealedRequest,
  sealRequest,
} from '../evaluation/request-evaluation.ts';
import { insufficientStorage, isFullDisk, isSqliteError } from '../storage-error.ts';
import type { AppliedWrite, RangeId, WriteRequest } from '../write-request.ts';
import type { AcknowledgedHeads } from './acknowledged-heads.ts';
import type { CommitTimings } from './commit-timings.ts';
import type { DiskSpace } from './disk-space.ts';
import type { LogRoom } from './log-room.ts';
import { encodeRedo, type RedoPart } from './redo-record.ts';
import type { RedoRunner } from './redo-runner.ts';
import type { RefusedFiles } from './refused-files.ts';
import type { WritableRange, WritableRanges } from './writable-ranges.ts';

/** One request on its way through the writer. */
interface AppendCall {
  readonly request: WriteRequest;
  resolve(applied: AppliedWrite[], transfer: TransferList): void;
  reject(error: unknown): void;
}

/** Translates a failure for callers; the writer stops for good when it says that the disk failed. */
type ReportFailure = (error: unknown, path: string) => unknown;

/** The services of an append runner. */
interface AppendDeps {
  ranges: WritableRanges;
  catalog: CatalogFile;
  commits: CommitTimings;
  redo: RedoRunner;
  refused: RefusedFiles;
  space: DiskSpace;
  room: LogRoom;
  heads: AcknowledgedHeads;
  /** Of the data directory. */
  lock: HeldFile;
  report: ReportFailure;
}

/**
 * Evaluates and commits requests. Those of one range share a transaction and its sync; a request over several ranges
 * is first committed as a redo record to the catalog, then to each range.
 */
export class AppendRunner {
  readonly #deps: AppendDeps;
  /** Redo records that have reached all their ranges; forgotten with the next record. */
  #applied: number[] = [];

  constructor(deps: AppendDeps) {
    this.#deps = deps;
  }

  /** Runs requests in order, sharing commits where neighbours allow it. */
  run(calls: readonly AppendCall[]): void {
    let start = 0;
    while (start < calls.length) {
      const single = isSingle(must(calls[start], 'a gap in the queue').request);
      let end = start + 1;
      while (end < calls.length && isSingle(must(calls[end], 'a gap in the queue').request) === single) end += 1;
      const neighbours = calls.slice(start, end);
      if (single) this.#runSingleRange(neighbours);
      else this.#withRoom(neighbours, this.#deps.catalog.path, (those) => this.#runMultiRange(those));
      start = end;
    }
  }

  /** Forgets the records of finished writes, so that a clean start finds none. */
  forgetApplied(): void {
    if (this.#applied.length === 0) return;
    const { catalog, report } = this.#deps;
    try {
      catalog.writeRedo([], this.#applied);
      this.#applied = [];
    } catch (error) {
      // Applying a record twice changes nothing: they can stay.
      const reported = report(error, catalog.path);
      if (!(reported instanceof ServiceError) || reported.code === 'storage_failed') throw reported;
    }
  }

  #runSingleRange(calls: readonly AppendCall[]): void {
    const { ranges, catalog } = this.#deps;
    for (const [rangeId, ofRange] of Map.groupBy(calls, (call) => firstRange(call.request))) {
      this.#withRoom(ofRange, ranges.find(rangeId)?.path ?? catalog.path, (those) =>
        this.#runRange(this.#writable(rangeId), those),
      );
    }
  }

  /**
   * Runs requests that share a commit. `run` answers all of them and says whether it has written, or throws with nothing
   * written. Where the disk is full, all are tried again with the room of logs, and those that free space at last with that of
   * the reserve.
   */
  #withRoom(calls: readonly AppendCall[], path: string, run: (calls: readonly AppendCall[]) => boolean): void {
    const { space, room, report } = this.#deps;
    const attempt = (those: readonly AppendCall[]): unknown => {
      if (those.length === 0) return undefined;
      try {
        if (run(those)) space.note('writable');
        return undefined;
      } catch (error) {
        return report(error, path);
      }
    };
    if (!space.isSpent) {
      const failure = room.retryWithLogs(attempt(calls), () => attempt(calls));
      if (failure === undefined) return;
      if (!isFullDisk(failure)) {
        reject(calls, failure);
        return;
      }
    }
    const { freeing = [], other = [] } = Object.groupBy(calls, ({ request }) =>
      freesSpace(request) ? 'freeing' : 'other',
    );
    reject(other, insufficientStorage());
    const failure = room.retry(attempt(freeing), () => attempt(freeing));
    if (failure !== undefined) reject(freeing, failure);
  }

  /** One transaction for all these requests. A throw fails all of them, with nothing written. */
  #runRange(range: WritableRange, calls: readonly AppendCall[]): boolean {
    const { file } = range;
    const answers: Answer[] = [];
    const failures: { call: AppendCall; error: unknown }[] = [];
    let hasWritten = false;
    const before = file.state.nextSequence;
    file.begin();
    try {
      for (const call of calls) {
        const evaluate = () => evaluated(call.request, [range]);
        try {
          answers.push({ call, ...(calls.length === 1 ? evaluate() : file.nested(evaluate)) });
        } catch (error) {
          if (isSqliteError(error)) throw error;
          failures.push({ call, error });
        }
      }
      hasWritten = answers.some(({ applied, kept }) => kept || applied.some(({ images }) => images));
      if (!hasWritten) file.rollback();
      else this.#deps.commits.timed(answers.length, () => this.#commit(range, before));
    } catch (error) {
      file.rollback();
      throw this.#deps.refused.note(range, error);
    }
    for (const { call, applied } of answers) answer(call, applied);
    for (const { call, error } of failures) call.reject(error);
    return hasWritten;
  }

  #commit(range: WritableRange, firstSequence: number): void {
    const { file } = range;
    failpoint('storage.before-commit');
    file.commit();
    failpoint('storage.after-commit');
    range.wal.wrote(file.takeWrittenBytes(), file.state.nextSequence - firstSequence);
    this.#deps.heads.note(file.rangeId, file.state.nextSequence - 1);
  }

  /** Requests over several ranges, evaluated together and committed by one redo transaction. */
  #runMultiRange(calls: readonly AppendCall[]): boolean {
    const opened: OpenedRanges = new Map();
    const answers: Answer[] = [];
    const failures: { call: AppendCall; error: unknown }[] = [];
    let hasWritten = false;
    try {
      for (const call of calls) {
        try {
          answers.push({ call, ...this.#evaluateOver(call.request, opened) });
        } catch (error) {
          if (isSqliteError(error)) throw error;
          failures.push({ call, error });
        }
      }
      this.#deps.commits.timed(answers.length, () => {
        hasWritten = this.#commitMultiRange(opened, answers);
      });
    } finally {
      for (const { range } of opened.values()) if (range.file.inTransaction) range.file.rollback();
    }
    for (const { call, error } of failures) call.reject(error);
    return hasWritten;
  }

  #evaluateOver(request: WriteRequest, opened: OpenedRanges): SealedRequest {
    const ranges = involvedRanges(request).map((rangeId) => {
      const known = opened.get(rangeId);
      if (known) return known.range;
      const range = this.#writable(rangeId);
      range.file.begin();
      opened.set(rangeId, { range, before: range.file.state.nextSequence });
      return range;
    });
    const evaluate = ranges.reduceRight<() => SealedRequest>(
      (inner, range) => () => range.file.nested(inner),
      () => evaluated(request, ranges),
    );
    return evaluate();
  }

  /** Throws as long as nothing is committed; after that every request is answered. True when all ranges took theirs. */
  #commitMultiRange(opened: OpenedRanges, answers: readonly Answer[]): boolean {
    const written = new Set(
      answers.flatMap(({ applied, kept }) => [
        ...applied.flatMap(({ rangeId, images }) => (images ? [rangeId] : [])),
        ...(kept ? [kept.range.file.rangeId] : []),
      ]),
    );
    const changed = [...opened.values()].filter(({ range }) => written.has(range.file.rangeId));
    const transactions = changed.length > 1 ? this.#record(answers, opened) : [];
    const later = new Set<RangeId>();
    let failure: unknown;
    for (const [place, { range, before }] of changed.entries()) {
      if (place > 0) failpoint('redo.between-ranges');
      try {
        this.#commit(range, before);
      } catch (error) {
        range.file.rollback();
        if (transactions.length === 0) throw this.#deps.refused.note(range, error);
        failure = this.#followLater(range, error, later) ?? failure;
      }
    }
    if (later.size === 0 && failure === undefined) this.#applied.push(...transactions);
    if (transactions.length > 0) failpoint('redo.before-clear');
    for (const { call, applied } of answers) {
      if (failure !== undefined && applied.some(({ images }) => images)) call.reject(failure);
      else answer(call, later.size === 0 ? applied : applied.map((write) => asLater(write, later)));
    }
    return changed.length > 0 && later.size === 0;
  }

  /**
   * The catalog has committed, so the range follows now, with the room of the reserve, or when the disk takes writes
   * again: until then it takes no other. Returns the failure of a disk that nothing can be expected from.
   */
  #followLater(range: WritableRange, error: unknown, later: Set<RangeId>): unknown {
    const { redo, refused, room, report } = this.#deps;
    const { rangeId } = range.file;
    redo.fellBehind(rangeId);
    const reported = room.retry(refused.note(range, error), () => {
      try {
        redo.catchUp(rangeId);
        return undefined;
      } catch (again) {
        return report(again, range.path);
      }
    });
    if (reported === undefined) return undefined;
    if (reported instanceof ServiceError && reported.code === 'storage_failed') return reported;
    later.add(rangeId);
    return undefined;
  }

  /** Makes the commit point of these requests; returns the ids of their records. */
  #record(answers: readonly Answer[], opened: OpenedRanges): number[] {
    let transactionId = this.#deps.catalog.peekTransactionId();
    const records: RedoRow[] = [];
    for (const { applied, kept } of answers) {
      const parts = applied.flatMap(({ rangeId, images, header }): RedoPart[] => {
        if (!images) return [];
        const part = { rangeId, generation: header.generation, entryIndex: header.index, frame: images.frame };
        return [kept?.range.file.rangeId === rangeId ? { ...part, answer: kept.answer } : part];
      });
      if (parts.length === 0) continue;
      for (const { rangeId } of parts) {
        must(opened.get(rangeId), 'a part of a range that is not open').range.file.state.transactionId = transactionId;
      }
      records.push({ transactionId, payload: encodeRedo(parts) });
      transactionId += 1;
    }
    this.#deps.catalog.writeRedo(records, this.#applied);
    this.#applied = [];
    failpoint('redo.after-record');
    return records.map((record) => record.transactionId);
  }

  /** The range, in its place and ready for new writes: what the catalog has committed for it comes first. */
  #writable(rangeId: RangeId): WritableRange {
    const { redo, ranges, lock } = this.#deps;
    redo.catchUp(rangeId);
    const range = ranges.get(rangeId);
    lock.check();
    range.wal.checkPlace();
    return range;
  }
}

type OpenedRanges = Map<RangeId, { range: WritableRange; before: number }>;

interface Answer extends SealedRequest {
  call: AppendCall;
}

function evaluated(request: WriteRequest, ranges: readonly WritableRange[]): SealedRequest {
  return sealRequest(request, evaluateRequest(request, ranges), ranges);
}

function answer(call: AppendCall, applied: AppliedWrite[]): void {
  call.resolve(
    applied,
    applied.flatMap(({ images }) => (images ? [images.frame.buffer] : [])),
  );
}

function asLater(write: AppliedWrite, later: ReadonlySet<RangeId>): AppliedWrite {
  return write.images && later.has(write.rangeId) ? { ...write, images: undefined, isLater: true } : write;
}

function reject(calls: readonly AppendCall[], error: unknown): void {
  for (const call of calls) call.reject(error);
}
