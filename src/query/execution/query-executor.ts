import { ServiceError } from '../../protocol/service-error.ts';
import type { NativePlan } from '../plan/native-plan.ts';
import { type Hit, hydrate } from './hydrate.ts';
import { type IndexFreshness, isAtLeast } from './index-freshness.ts';
import { hitCount, type NativeHits, type QueryCaller, type QueryTarget, type RunNativeQuery } from './query-target.ts';
import { orderByStored } from './stored-order.ts';

export interface ExecutedQuery {
  hits: Hit[];
  /** Members of joined tables in each `_source`, JSON with commas between them; undefined without a join. */
  joined?: ReadonlyMap<Hit, string>;
  total: number;
  /** The total is what was committed when the query began; otherwise it is a lower bound. */
  totalIsExact: boolean;
  /** Not all documents were looked at: the time was over, or an index has yet to show what it showed before. */
  isPartial: boolean;
  /** Hits that were left out because their stored rows are damaged. */
  damaged: number;
  maxScore: number;
  /** JSON object; undefined when the plan has no aggregations. */
  aggregations: string | undefined;
  /** JSON object: how the engine's searches went; undefined when the plan does not ask for it. */
  profile: string | undefined;
  /** Hits that a reranker scored. */
  reranked?: number;
}

interface PlannedSearch {
  plan: NativePlan;
  /** Query vectors of the plan's legs, one after another. */
  vectors: Uint8Array;
}

/** An answer whose page was checked against the stored rows. */
interface CheckedAnswer {
  executed: ExecutedQuery;
  /**
   * The indexes are too far behind for it: the page has rows that have changed since the aggregations counted them, or it is not
   * full, for hits that have gone, though there are more.
   */
  isBehind: boolean;
}

/** Native calls that one page may take when writes keep invalidating its hits. */
const refillRoundsMax = 6;
/** Searches of one query whose indexes are too far behind. */
const consistentAttemptsMax = 3;

/**
 * Runs a planned query and fills its page. Hits that turn out stale are replaced by the next ones, so that a page is
 * short only when there are no more matches. Page, total and aggregations never contradict one another: where the page
 * shows that the indexes are too far behind, they are waited for and the query runs again.
 */
export async function executeQuery(
  search: PlannedSearch,
  target: QueryTarget,
  run: RunNativeQuery,
  caller: QueryCaller,
): Promise<ExecutedQuery> {
  const { freshness } = target;
  const heads = freshness.heads();
  await waitForUnchecked(search.plan, target, heads);
  for (let attempt = 1; ; attempt += 1) {
    const { executed, isBehind } = await answer(search, target, run, caller, heads);
    if (!isBehind) return executed;
    const isShown = attempt < consistentAttemptsMax && (await freshness.waitUntilShown(freshness.heads()));
    if (!isShown) return { ...executed, isPartial: true };
  }
}

/**
 * Counts, aggregations and the hits before an offset are not matched again on what is stored. A count is worth a moment
 * of waiting, and so are hits that may have gone; under a row filter aggregations would tell of rows that have been
 * hidden since, and wait for as long as it takes, or fail with `unavailable`.
 */
async function waitForUnchecked(plan: NativePlan, { freshness }: QueryTarget, heads: readonly number[]): Promise<void> {
  const mayShowHidden = plan.row_filter !== undefined && plan.aggregations !== undefined;
  if (!plan.count_only && !mayShowHidden && !maySkipGone(plan, freshness, freshness.shown(), heads)) return;
  const isShown = await freshness.waitUntilShown(heads);
  if (isShown || !mayShowHidden) return;
  const message = 'aggregations under a row filter need an index that shows every write; send the query again shortly';
  throw new ServiceError('unavailable', message, { retryAfterMs: 500 });
}

/** Whether the offset may count hits that have gone: pages would overlap, and hits between them be on none. */
function maySkipGone(
  { offset }: NativePlan,
  freshness: IndexFreshness,
  shown: readonly number[],
  heads: readonly number[],
): boolean {
  return offset > 0 && !isAtLeast(shown, heads) && freshness.removedSince(shown, heads) > 0;
}

/** `heads`: what was committed when the query began. */
async function answer(
  { plan, vectors }: PlannedSearch,
  target: QueryTarget,
  run: RunNativeQuery,
  caller: QueryCaller,
  heads: readonly number[],
): Promise<CheckedAnswer> {
  const { freshness } = target;
  const indexes = { handles: target.ranges.map((range) => range.handle), vectorHandles: target.vectorHandles, vectors };
  const shown = freshness.shown();
  // Later the ranges may have forgotten what the indexes show by then.
  const removed = freshness.removedSince(shown, heads);
  // Later an index that is searched now may have replayed, been mended, or be gone.
  const hadReplayed = freshness.hasReplayed();
  const wasWhole = freshness.isWhole();
  const skipsGone = maySkipGone(plan, freshness, shown, heads);
  let limit = plan.limit;
  /** The answer that has visited every match. */
  let aggregated: NativeHits | undefined;
  /** A page has shown that the aggregations counted rows which have changed since, or are gone. */
  let contradicted = false;
  for (let round = 1; ; round += 1) {
    const native = await run(indexes, round === 1 ? plan : laterRound(plan, limit), caller);
    if (plan.aggregations && round === 1) aggregated = native;
    const page = await hydrate(native, plan, target, caller);
    const { hits, droppedScore } = page;
    const dropped = hitCount(native) - hits.length;
    const exhausted = hitCount(native) < limit || native.isPartial;
    const isShort = hits.length < plan.limit && !exhausted && dropped > 0;
    // A damaged document is there, and matches.
    const gone = dropped - page.damaged;
    contradicted ||= aggregated !== undefined && (gone > 0 || page.changed > 0);
    if (isShort && round < refillRoundsMax) {
      limit += dropped * 2;
      continue;
    }
    const { total, totalIsExact } = aggregated ?? native;
    const isCurrent = gone === 0 && isAtLeast(shown, heads);
    // It may have met something damaged before it was searched.
    const isWhole = wasWhole && freshness.isWhole();
    // The page before a cursor ends at it.
    const shownHits = plan.cursor?.before ? hits.slice(-plan.limit) : hits.slice(0, plan.limit);
    const executed: ExecutedQuery = {
      hits: await orderByStored(shownHits, plan, target),
      total: isCurrent ? total : Math.max(hits.length, total - Math.max(gone, removed)),
      totalIsExact: totalIsExact && isCurrent && isWhole,
      isPartial: native.isPartial || aggregated?.isPartial === true || !hadReplayed || !isWhole || skipsGone,
      damaged: page.damaged,
      maxScore: droppedScore === undefined ? native.maxScore : maxScoreOf(native, hits, droppedScore),
      aggregations: aggregated?.aggregations,
      profile: native.profile,
    };
    return { executed, isBehind: isShort || contradicted };
  }
}

/** The greatest score where it may have been that of a hit that was left out. */
function maxScoreOf({ maxScore }: NativeHits, hits: readonly Hit[], droppedScore: number): number {
  if (droppedScore < maxScore) return maxScore;
  return hits.length === 0 ? 0 : Math.max(...hits.map(({ score }) => score));
}

/** The plan for a larger page: each of its searches then looks at as many hits more. Aggregations are known by then. */
function laterRound({ aggregations, ...plan }: NativePlan, limit: number): NativePlan {
  if (!plan.fusion) return { ...plan, limit };
  return { ...plan, limit, fusion: { ...plan.fusion, window: plan.fusion.window + limit - plan.limit } };
}
