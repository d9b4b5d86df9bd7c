import type { Cursor } from './part-notes.ts';

/** The next work of a follower: documents just written, documents that failed, or documents from before the definition. */
export type Work = 'live' | 'retry' | 'backfill';

/** New writes never wait behind a backfill. Times are monotonic; `retryAtMs` is undefined when nothing is to be tried again. */
export function nextWork(
  { liveAfter, backfillAfter, backfillUntil }: Cursor,
  { head, nowMs, retryAtMs }: { head: number; nowMs: number; retryAtMs: number | undefined },
): Work | undefined {
  if (liveAfter < head) return 'live';
  if (retryAtMs !== undefined && retryAtMs <= nowMs) return 'retry';
  return backfillAfter < backfillUntil ? 'backfill' : undefined;
}

/** Everything before this sequence is covered. */
export function coveredThrough({ liveAfter, backfillAfter, backfillUntil }: Cursor): number {
  return backfillAfter < backfillUntil ? backfillAfter : liveAfter;
}

/** Share of the backfill that is done, 0..1. */
export function backfillProgress({ backfillAfter, backfillUntil }: Cursor, firstSequence: number): number {
  const span = backfillUntil - firstSequence + 1;
  return span <= 0 ? 1 : Math.min(1, Math.max(0, (backfillAfter - firstSequence + 1) / span));
}
