import { limits } from '../../config/limits.ts';
import type { WholeSearch } from '../inputs/bring-inputs.ts';
import { textPlan } from '../plan/native-plan.ts';
import { matchAll, matchNone, type PlanNode } from '../plan/plan-nodes.ts';
import type { GraphFound } from './graph-legs.ts';
import { type ExecutedQuery, executeQuery } from './query-executor.ts';
import type { QueryCaller, QueryTarget, RunNativeQuery } from './query-target.ts';

/** The search for hits that are nodes of graph searches as well. */
export function amongNodes(search: WholeSearch, found: GraphFound): WholeSearch {
  const { keys, isWhole } = found.allKeys();
  const plan = { ...search.plan, filter: [...search.plan.filter, nodesOf(keys)] };
  return { ...search, plan, isWhole: search.isWhole !== false && isWhole };
}

/** The search whose hits graph searches begin at: the page alone. */
export function pageAlone({ plan: { aggregations, ...plan }, ...search }: WholeSearch): WholeSearch {
  return { ...search, plan };
}

/**
 * The page with the nodes that are not on it behind its hits, in their order and with the score 1. They obey what the caller
 * may see, not the filters of the query. The total is exact where the page has all matches, and a lower bound elsewhere: a
 * node may be a match of another page.
 */
export async function withNodes(
  executed: ExecutedQuery,
  nodeKeys: readonly string[],
  { plan }: WholeSearch,
  { target, run, caller }: { target: QueryTarget; run: RunNativeQuery; caller: QueryCaller },
): Promise<ExecutedQuery> {
  const onPage = new Set(executed.hits.map(({ document }) => document.key));
  const missing = nodeKeys.filter((key) => !onPage.has(key));
  const keys = missing.slice(0, limits.graphResultsMax);
  if (keys.length === 0) return executed;
  // A node may have been written a moment ago.
  const isShown = await target.freshness.waitUntilShown(target.freshness.heads());
  const { aggregations, counted_paths, explain, key_prefix, ...ofTable } = textPlan(plan);
  const nodes = await executeQuery(
    {
      plan: {
        ...ofTable,
        query: matchAll,
        filter: [nodesOf(keys)],
        exclusion: [],
        limit: keys.length,
        offset: 0,
        exact_total: true,
      },
      vectors: new Uint8Array(0),
    },
    // Without legs no index of vectors takes part.
    { ...target, vectorHandles: [] },
    run,
    caller,
  );
  const place = new Map(keys.map((key, at) => [key, at]));
  const at = (key: string) => place.get(key) ?? keys.length;
  const appended = nodes.hits.toSorted((a, b) => at(a.document.key) - at(b.document.key));
  const isWhole = isShown && missing.length === keys.length && !nodes.isPartial;
  const pageIsAll = executed.totalIsExact && executed.total === executed.hits.length;
  const shown = executed.hits.length + appended.length;
  return {
    ...executed,
    hits: [...executed.hits, ...appended],
    total: Math.max(executed.total, shown),
    totalIsExact: isWhole && (pageIsAll || appended.length === 0) && executed.totalIsExact,
    isPartial: executed.isPartial || !isWhole,
    damaged: executed.damaged + nodes.damaged,
    maxScore: appended.length === 0 ? executed.maxScore : Math.max(executed.maxScore, nodes.maxScore),
  };
}

function nodesOf(keys: readonly string[]): PlanNode {
  return keys.length === 0 ? matchNone : { kind: 'ids', ids: [...keys], boost: 1 };
}
