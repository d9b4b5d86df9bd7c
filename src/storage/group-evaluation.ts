import { assert, must } from '../lib/assert.ts';
import { readFrame, rowKind } from '../lib/document-frame.ts';
import { type AppliedWrite, type EntryGroup, entryFormat, type RangeId } from './entry-group.ts';
import type { EvaluationContext } from './evaluation-context.ts';
import type { AnsweredWrite, KeptAnswer } from './request-answers.ts';
import { checkReadAssertion, type Evaluation, evaluateWrite } from './row-evaluation.ts';
import type { WritableRange } from './writable-ranges.ts';

export function firstRange(group: EntryGroup): RangeId {
  return must(group.writes[0]?.rangeId ?? group.readSet?.[0]?.rangeId, 'a request that names no range');
}

/** Every range that a request writes to or depends on, ascending. */
export function involvedRanges(group: EntryGroup): RangeId[] {
  const ids = new Set(group.writes.map((write) => write.rangeId));
  for (const { rangeId } of group.readSet ?? []) ids.add(rangeId);
  return [...ids].sort((left, right) => left - right);
}

export function isSingle(group: EntryGroup): boolean {
  const first = firstRange(group);
  return (
    group.writes.every((write) => write.rangeId === first) &&
    (group.readSet ?? []).every(({ rangeId }) => rangeId === first)
  );
}

/** The request only deletes, so that a full disk has more room after it. */
export function freesSpace(group: EntryGroup): boolean {
  return group.writes.every(({ frame, merge }) => {
    if (merge) return false;
    const rows = frame && readFrame(frame);
    for (let row = 0; rows && row < rows.rowCount; row += 1) if (rows.kind(row) !== rowKind.delete) return false;
    return true;
  });
}

/** What a request does: the first step of a write, after which its ranges hold its rows, uncommitted. */
export interface EvaluatedGroup {
  /** In the order of the request's writes. */
  writes: (Evaluation & { range: WritableRange })[];
  /** What an earlier request of the same key did: this one does nothing. */
  repeated?: readonly AnsweredWrite[];
}

/** What a request did, ready to be committed and answered. */
export interface SealedGroup {
  applied: AppliedWrite[];
  /** The answer to repetitions, and the range that keeps it. */
  kept?: { range: WritableRange; answer: KeptAnswer };
}

/**
 * Evaluate: checks the key and the read set, then writes in the order given, and takes the images of the rows. All ranges
 * involved are in an open transaction. Fails with `transaction_conflict` or `idempotency_conflict`.
 */
export function evaluateGroup(group: EntryGroup, ranges: readonly WritableRange[]): EvaluatedGroup {
  const repeated = earlierAnswer(group, ranges);
  if (repeated) return { writes: [], repeated };
  const byId = new Map(ranges.map((range) => [range.file.rangeId, range]));
  const rangeOf = (rangeId: RangeId) => must(byId.get(rangeId), 'a write to a range that is not open');
  for (const assertion of group.readSet ?? []) {
    const range = rangeOf(assertion.rangeId);
    checkReadAssertion(range.file, assertion, contextOf(group, range));
  }
  assert(new Set(group.writes.map((write) => write.rangeId)).size === group.writes.length, 'a range is written twice');
  const writes = group.writes.map((write) => {
    const range = rangeOf(write.rangeId);
    return { range, ...evaluateWrite(range.file, write, contextOf(group, range)) };
  });
  return { writes };
}

/** Seal: gives each range's part its place in the log of the range, and keeps the answer of a keyed request. */
export function sealGroup(group: EntryGroup, evaluated: EvaluatedGroup, ranges: readonly WritableRange[]): SealedGroup {
  if (evaluated.repeated) return { applied: evaluated.repeated.map((write) => repeatedWrite(group, write, ranges)) };
  const applied = evaluated.writes.map(({ range, counts, images }): AppliedWrite => {
    const { file } = range;
    if (images) file.state.entryIndex += 1;
    const { documents, bytes } = file.state;
    return { rangeId: file.rangeId, header: headerOf(group, range), counts, images, totals: { documents, bytes } };
  });
  if (!group.key) return { applied };
  const writes = applied.map(
    ({ rangeId, counts, images }): AnsweredWrite => ({ rangeId, counts, lastSequence: images?.lastSequence }),
  );
  const answer = { ...group.key, createdMs: group.timeMs, writes };
  const range = evaluated.writes.find(({ images }) => images)?.range ?? must(ranges[0], 'a request without a range');
  range.file.answers.keep(answer);
  return { applied, kept: { range, answer } };
}

function earlierAnswer(
  { key, timeMs }: EntryGroup,
  ranges: readonly WritableRange[],
): readonly AnsweredWrite[] | undefined {
  if (!key) return undefined;
  for (const { file } of ranges) {
    const found = file.answers.find(key, timeMs);
    if (found) return found;
  }
  return undefined;
}

function repeatedWrite(group: EntryGroup, write: AnsweredWrite, ranges: readonly WritableRange[]): AppliedWrite {
  const { rangeId, counts, lastSequence } = write;
  const range = must(
    ranges.find(({ file }) => file.rangeId === rangeId),
    'a repetition of a request to other ranges',
  );
  const { documents, bytes } = range.file.state;
  const repeats = { lastSequence };
  return { rangeId, header: headerOf(group, range), counts, images: undefined, totals: { documents, bytes }, repeats };
}

function headerOf({ requestId, timeMs }: EntryGroup, { file }: WritableRange): AppliedWrite['header'] {
  const { rangeId, generation, state } = file;
  return {
    format: entryFormat,
    kind: 'rows',
    rangeId,
    generation,
    epoch: 0,
    index: state.entryIndex,
    requestId,
    timeMs,
  };
}

function contextOf(group: EntryGroup, range: WritableRange): EvaluationContext {
  return { timeMs: group.timeMs, timestamp: group.timestamp, ttlDurationMs: range.ttlDurationMs };
}
