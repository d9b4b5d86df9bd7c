import { assert, must } from '../lib/assert.ts';
import { readFrame, rowKind } from '../lib/document-frame.ts';
import { type AppliedWrite, type EntryGroup, entryFormat, type RangeId, type RangeWrite } from './entry-group.ts';
import type { EvaluationContext } from './evaluation-context.ts';
import type { OpenRange } from './open-ranges.ts';
import { checkReadAssertion, evaluateWrite } from './row-evaluation.ts';

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

/** Checks the read set, then writes in the order given. All ranges involved are in an open transaction. */
export function evaluateGroup(group: EntryGroup, ranges: readonly OpenRange[]): AppliedWrite[] {
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
