import { assert, must } from '../../lib/assert.ts';
import { readFrame, rowKind } from '../../lib/document-frame.ts';
import type { AnsweredWrite, KeptAnswer } from '../range/request-answers.ts';
import { type AppliedWrite, entryFormat, type RangeId, type WriteRequest } from '../write-request.ts';
import type { WritableRange } from '../writer/writable-ranges.ts';
import { enforceConstraints } from './constraints.ts';
import type { EvaluationContext } from './evaluation-context.ts';
import { noteRemovedTargets } from './removed-targets.ts';
import { checkReadAssertion, type Evaluation, evaluateWrite } from './row-evaluation.ts';
import { TreeChanges } from './tree-changes.ts';

export function firstRange(request: WriteRequest): RangeId {
  return must(request.writes[0]?.rangeId ?? request.readSet?.[0]?.rangeId, 'a request that names no range');
}

/** Every range that a request writes to or depends on, ascending. */
export function involvedRanges(request: WriteRequest): RangeId[] {
  const ids = new Set(request.writes.map((write) => write.rangeId));
  for (const { rangeId } of request.readSet ?? []) ids.add(rangeId);
  for (const { rangeIds } of request.constrained ?? []) for (const rangeId of rangeIds) ids.add(rangeId);
  return [...ids].sort((left, right) => left - right);
}

export function isSingle(request: WriteRequest): boolean {
  const first = firstRange(request);
  return (
    request.writes.every((write) => write.rangeId === first) &&
    (request.readSet ?? []).every(({ rangeId }) => rangeId === first) &&
    (request.constrained ?? []).every(({ rangeIds }) => rangeIds.every((rangeId) => rangeId === first))
  );
}

/** The request only deletes, so that a full disk has more room after it. */
export function freesSpace(request: WriteRequest): boolean {
  return request.writes.every(({ frame, merge }) => {
    if (merge) return false;
    const rows = frame && readFrame(frame);
    for (let row = 0; rows && row < rows.rowCount; row += 1) if (rows.kind(row) !== rowKind.delete) return false;
    return true;
  });
}

/** Evaluates a request: the first step of a write, after which its ranges hold its rows, uncommitted. */
interface EvaluatedRequest {
  /** In the order of the request's writes. */
  writes: (Evaluation & { range: WritableRange })[];
  /** The answer of an earlier request with the same key: this one does nothing. */
  repeated?: readonly AnsweredWrite[];
}

/** The result of a request, ready to be committed and answered. */
export interface SealedRequest {
  applied: AppliedWrite[];
  /** The answer to repetitions, and the range that keeps it. */
  kept?: { range: WritableRange; answer: KeptAnswer };
}

/**
 * Evaluate: checks the key and the read set, then writes in the order given, and takes the images of the rows. All ranges
 * involved are in an open transaction. Fails with `transaction_conflict`, `idempotency_conflict` or `tree_topology_violation`.
 */
export function evaluateRequest(request: WriteRequest, ranges: readonly WritableRange[]): EvaluatedRequest {
  const repeated = earlierAnswer(request, ranges);
  if (repeated) return { writes: [], repeated };
  const byId = new Map(ranges.map((range) => [range.file.rangeId, range]));
  const rangeOf = (rangeId: RangeId) => must(byId.get(rangeId), 'a write to a range that is not open');
  for (const assertion of request.readSet ?? []) {
    const range = rangeOf(assertion.rangeId);
    checkReadAssertion(range.file, assertion, contextOf(request, range));
  }
  assert(
    new Set(request.writes.map((write) => write.rangeId)).size === request.writes.length,
    'a range is written twice',
  );
  const trees = new TreeChanges();
  const writes = request.writes.map((write) => {
    const range = rangeOf(write.rangeId);
    const evaluation = evaluateWrite(range.file, write, contextOf(request, range));
    if (evaluation.images && write.graphs && !write.keepsOrdinals) {
      trees.read(evaluation.images.frame, write.rangeId, write.graphs.indexes);
    }
    return { range, ...evaluation };
  });
  trees.check(request.provenTrees);
  const noted = withRemovedTargets(request, writes);
  return { writes: request.constrained ? enforceConstraints(request.constrained, noted, ranges) : noted };
}

/** The writes with notes on the documents that they delete: what every range has written is known only now. */
function withRemovedTargets(request: WriteRequest, writes: EvaluatedRequest['writes']): EvaluatedRequest['writes'] {
  const written = new Map(
    writes.flatMap(({ range, images }) => (images ? [[range.file.rangeId, images.lastSequence]] : [])),
  );
  return writes.map((write, at) => {
    const graphs = request.writes[at]?.graphs;
    if (!graphs || !write.images) return write;
    return { ...write, images: noteRemovedTargets(write.range.file, write.images, graphs, written) };
  });
}

/** Seal: gives each range's part its place in the log of the range, and keeps the answer of a keyed request. */
export function sealRequest(
  request: WriteRequest,
  evaluated: EvaluatedRequest,
  ranges: readonly WritableRange[],
): SealedRequest {
  if (evaluated.repeated) return { applied: evaluated.repeated.map((write) => repeatedWrite(request, write, ranges)) };
  const applied = evaluated.writes.map(({ range, counts, images }): AppliedWrite => {
    const { file } = range;
    if (images) file.state.entryIndex += 1;
    const { documents, bytes } = file.state;
    return { rangeId: file.rangeId, header: headerOf(request, range), counts, images, totals: { documents, bytes } };
  });
  if (!request.key) return { applied };
  const writes = applied.map(
    ({ rangeId, counts, images }): AnsweredWrite => ({ rangeId, counts, lastSequence: images?.lastSequence }),
  );
  const answer = { ...request.key, createdMs: request.timeMs, writes };
  const range = evaluated.writes.find(({ images }) => images)?.range ?? must(ranges[0], 'a request without a range');
  range.file.answers.keep(answer);
  return { applied, kept: { range, answer } };
}

function earlierAnswer(
  { key, timeMs }: WriteRequest,
  ranges: readonly WritableRange[],
): readonly AnsweredWrite[] | undefined {
  if (!key) return undefined;
  for (const { file } of ranges) {
    const found = file.answers.find(key, timeMs);
    if (found) return found;
  }
  return undefined;
}

function repeatedWrite(request: WriteRequest, write: AnsweredWrite, ranges: readonly WritableRange[]): AppliedWrite {
  const { rangeId, counts, lastSequence } = write;
  const range = must(
    ranges.find(({ file }) => file.rangeId === rangeId),
    'a repetition of a request to other ranges',
  );
  const { documents, bytes } = range.file.state;
  const repeats = { lastSequence };
  return {
    rangeId,
    header: headerOf(request, range),
    counts,
    images: undefined,
    totals: { documents, bytes },
    repeats,
  };
}

function headerOf({ requestId, timeMs }: WriteRequest, { file }: WritableRange): AppliedWrite['header'] {
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

function contextOf(request: WriteRequest, range: WritableRange): EvaluationContext {
  const { timeMs, timestamp } = request;
  const { durationMs: ttlDurationMs, field: ttlField } = range.ttl;
  return { timeMs, timestamp, ttlDurationMs, ttlField };
}
