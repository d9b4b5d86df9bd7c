import { type Hit, hydrate } from './hydrate.ts';
import type { NativePlan } from './native-plan.ts';
import { hitCount, type NativeHits, type QueryCaller, type QueryTarget, type RunNativeQuery } from './query-target.ts';

export interface ExecutedQuery {
  hits: Hit[];
  total: number;
  totalIsExact: boolean;
  /** The time was over before all documents were looked at. */
  isPartial: boolean;
  maxScore: number;
  /** JSON object; undefined when the plan has no aggregations. */
  aggregations: string | undefined;
  /** JSON object: how the engine's searches went; undefined when the plan does not ask for it. */
  profile: string | undefined;
}

/** Native calls that one page may take when writes keep invalidating its hits. */
const refillRoundsMax = 6;

/**
 * Runs a planned query and fills its page. Hits that turn out stale are replaced by the next ones, so that a page is
 * short only when there are no more matches.
 */
export async function executeQuery(
  { plan, vectors }: { plan: NativePlan; vectors: Uint8Array },
  target: QueryTarget,
  run: RunNativeQuery,
  caller: QueryCaller,
): Promise<ExecutedQuery> {
  const indexes = { handles: target.ranges.map((range) => range.handle), vectorHandles: target.vectorHandles, vectors };
  let limit = plan.limit;
  /** The answer that has visited every match. */
  let aggregated: NativeHits | undefined;
  for (let round = 1; ; round += 1) {
    const native = await run(indexes, round === 1 ? plan : laterRound(plan, limit), caller);
    if (plan.aggregations && round === 1) aggregated = native;
    const hits = await hydrate(native, plan, target);
    const dropped = hitCount(native) - hits.length;
    const exhausted = hitCount(native) < limit || native.isPartial;
    if (hits.length >= plan.limit || exhausted || dropped === 0 || round === refillRoundsMax) {
      return {
        // The page before a cursor ends at it.
        hits: plan.cursor?.before ? hits.slice(-plan.limit) : hits.slice(0, plan.limit),
        total: Math.max(0, (aggregated ?? native).total - dropped),
        totalIsExact: (aggregated ?? native).totalIsExact,
        isPartial: native.isPartial || aggregated?.isPartial === true,
        maxScore: native.maxScore,
        aggregations: aggregated?.aggregations,
        profile: native.profile,
      };
    }
    limit += dropped * 2;
  }
}

/** The plan for a larger page: each of its searches then looks at as many hits more. Aggregations are known by then. */
function laterRound({ aggregations, ...plan }: NativePlan, limit: number): NativePlan {
  if (!plan.fusion) return { ...plan, limit };
  return { ...plan, limit, fusion: { ...plan.fusion, window: plan.fusion.window + limit - plan.limit } };
}
