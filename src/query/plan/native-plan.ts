import type { AggregationPlan } from '../aggregations/aggregation-plan.ts';
import type { PlanNode } from './plan-nodes.ts';

/** A sort key: `_id`, `_score` or the path of a scalar. Documents without a value come last. */
export interface PlanSort {
  field: string;
  desc: boolean;
}

/** A place in the order: the page after a hit, or the one before it. */
export interface PlanCursor {
  /** The sort values of the hit, as the engine has them. */
  position: string;
  key: string;
  before: boolean;
}

/** One search of a vector index, or the documents that a graph search has found. */
export interface PlanLeg {
  name: string;
  kind: 'dense' | 'sparse' | 'graph';
  /** Length of its query vector, or of its documents. */
  bytes: number;
  weight: number;
  /** Dense: 0 for the fastest search, 1 for the most thorough one. */
  effort?: number;
}

/** How the answers of several searches become one. */
export interface PlanFusion {
  strategy: 'rrf' | 'rsf' | 'failover';
  rank_constant: number;
  /** Best hits of each search that are looked at. */
  window: number;
}

/** The rules that cut the fused hits; they apply in this order. */
export interface PlanPruner {
  require_multi_index?: boolean;
  min_absolute_score?: number;
  min_score_ratio?: number;
  std_dev_threshold?: number;
  max_score_gap_percent?: number;
}

/** Members of a plan with legs beside the text of `query`, when there is one. */
export interface PlanVectorSearch {
  legs: PlanLeg[];
  text_weight?: number;
  fusion: PlanFusion;
  /** Raw distances of the dense legs, both inclusive. */
  distance_under?: number;
  distance_over?: number;
  pruner?: PlanPruner;
}

/** One query over the ranges of one table. */
export interface NativePlan extends Partial<PlanVectorSearch> {
  /** The scoring query; everything when absent. */
  query?: PlanNode;
  /** All must match; they do not score. */
  filter: PlanNode[];
  /** None may match. */
  exclusion: PlanNode[];
  /**
   * The row filters of the caller, beside every other condition and in every search, count, aggregation and background:
   * all must match. They are used as they were written: without the table's synonyms and without typo tolerance.
   */
  row_filter?: PlanNode[];
  /** Only documents whose key begins so. */
  key_prefix?: string;
  /** False: the table has no index of words, and conditions on words are refused. */
  has_text_index?: boolean;
  /** Without an index of words: one is being built, and what it will compare by words is refused until then. */
  text_index_comes?: boolean;
  /** Hides documents whose TTL base is at or before this time, in milliseconds since 1970. */
  expired_at_or_before_ms?: number;
  limit: number;
  offset: number;
  sort: PlanSort[];
  /** Needs a sort, and excludes an offset. */
  cursor?: PlanCursor;
  /** Only the number of matches is wanted. */
  count_only: boolean;
  /** Count all matches, whatever it costs. */
  exact_total: boolean;
  /** Without `exact_total`, counting may stop here. */
  total_exact_up_to: number;
  /** How the score of each hit comes about. */
  explain?: boolean;
  /** How each search went. */
  profile?: boolean;
  /** Computed over all matches. */
  aggregations?: AggregationPlan;
  /** Paths of which counters are kept, that aggregations over all documents are answered from. */
  counted_paths?: readonly string[];
  timeout_ms?: number;
  /** After `timeout_ms` the answer is what was found by then. */
  allows_partial?: boolean;
}

/** The plan without its searches by vectors: what text, filters and order say alone. */
export function textPlan(plan: NativePlan): NativePlan {
  const { legs, text_weight, fusion, distance_under, distance_over, pruner, profile, ...others } = plan;
  return others;
}
