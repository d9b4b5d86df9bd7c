import type { AggregationPlan } from '../aggregations/aggregation-plan.ts';
import type { Fuzziness, WordPlanNode } from './word-plan-nodes.ts';

/**
 * What the native engine runs. These objects travel to it as JSON, so their members are named as they are there.
 * Every node can be reached from a query string or from a wire node; neither spelling is visible here.
 */
export type PlanNode =
  | { kind: 'match_all'; boost: number }
  | { kind: 'match_none' }
  | MatchNode
  | PhraseNode
  | TermNode
  | PrefixNode
  | RangeNode
  | BoolPrefixNode
  | BoolNode
  | { kind: 'ids'; ids: string[]; boost: number }
  | { kind: 'bool_field'; field: string; value: boolean; boost: number }
  | { kind: 'exists'; field: string; boost: number }
  | WordPlanNode;

/**
 * Analysed words. Without `field`: all opted-in fields, or all text fields when none is.
 * A text without any token (stop words, punctuation) means the whole value where the field has an exact form and the query
 * has no other words of that field. Otherwise it is left out of the bool around it; alone it matches nothing.
 */
export interface MatchNode {
  kind: 'match';
  field?: string;
  text: string;
  operator: 'or' | 'and';
  analyzer?: string;
  /** Words may be misspelt. */
  fuzziness?: Fuzziness;
  prefix_length?: number;
  boost: number;
}

/** Analysed words in a row, with up to `slop` moves between them. */
export interface PhraseNode {
  kind: 'phrase';
  field?: string;
  text: string;
  slop: number;
  analyzer?: string;
  fuzziness?: Fuzziness;
  prefix_length?: number;
  boost: number;
}

/** The whole value where the path has an exact form, the token where it is analysed text only. */
export interface TermNode {
  kind: 'term';
  field?: string;
  value: string | number | boolean;
  boost: number;
}

export interface PrefixNode {
  kind: 'prefix';
  field?: string;
  value: string;
  boost: number;
}

/** At least one bound. `auto`: numbers when all bounds are numbers, else dates when all read as such, else terms. */
export interface RangeNode extends RangeBounds {
  kind: 'range';
  field: string;
  of: 'number' | 'date' | 'term' | 'auto';
  boost: number;
}

export interface RangeBounds {
  gt?: string | number;
  gte?: string | number;
  lt?: string | number;
  lte?: string | number;
}

/** The words of `text` as if still being typed: the last one is a prefix. */
export interface BoolPrefixNode {
  kind: 'bool_prefix';
  fields: { field: string; boost: number }[];
  text: string;
  boost: number;
}

/**
 * All of `must` and `filter`, none of `must_not`, at least `min_should` of `should`; `must` and `should` score.
 * `min_should` is given whenever `should` is not empty. Only `must_not`: everything but that.
 */
export interface BoolNode {
  kind: 'bool';
  must: PlanNode[];
  should: PlanNode[];
  must_not: PlanNode[];
  filter: PlanNode[];
  min_should?: number;
  boost: number;
}

/** A sort key: `_id`, `_score` or the path of a scalar. Documents without a value come last. */
export interface PlanSort {
  field: string;
  desc: boolean;
}

/** A place in the order: the page after a hit, or the one before it. */
export interface PlanCursor {
  /** What the engine said of the hit's sort values. */
  position: string;
  key: string;
  before: boolean;
}

/** One search of a vector index. */
export interface PlanLeg {
  name: string;
  kind: 'dense' | 'sparse';
  /** Length of its query vector. */
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

/** What is cut off the fused hits; rules apply in this order. */
export interface PlanPruner {
  require_multi_index?: boolean;
  min_absolute_score?: number;
  min_score_ratio?: number;
  std_dev_threshold?: number;
  max_score_gap_percent?: number;
}

/** Members of a plan that searches vector indexes, beside the text of `query` when there is one. */
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
  /** What scores; everything when absent. */
  query?: PlanNode;
  /** All must match; they do not score. */
  filter: PlanNode[];
  /** None may match. */
  exclusion: PlanNode[];
  /**
   * What the caller may see at all, beside every other condition and in every search, count, aggregation and background.
   * It is used as it was written: without the table's synonyms and without typo tolerance.
   */
  row_filter?: PlanNode;
  /** Only documents whose key begins so. */
  key_prefix?: string;
  /** False: the table has no index of words, and conditions on words are refused. */
  has_text_index?: boolean;
  /** Hides documents whose lifetime began at or before this time, in milliseconds since 1970. */
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
  timeout_ms?: number;
  /** After `timeout_ms` the answer is what was found by then. */
  allows_partial?: boolean;
}

/** The plan without its searches by vectors: what text, filters and order say alone. */
export function textPlan(plan: NativePlan): NativePlan {
  const { legs, text_weight, fusion, distance_under, distance_over, pruner, profile, ...others } = plan;
  return others;
}

export const matchAll: PlanNode = { kind: 'match_all', boost: 1 };
export const matchNone: PlanNode = { kind: 'match_none' };

/** A bool node with the clauses that are named. */
export function boolNode(clauses: Partial<Omit<BoolNode, 'kind'>>): BoolNode {
  return { kind: 'bool', must: [], should: [], must_not: [], filter: [], boost: 1, ...clauses };
}

/** The conjunction of the nodes. */
export function allOf(nodes: PlanNode[]): PlanNode {
  const [first] = nodes;
  if (first === undefined) return matchAll;
  return nodes.length === 1 ? first : boolNode({ must: nodes });
}

/** A node of which at least `min` alternatives match; none can when there are fewer. */
export function anyOf(nodes: PlanNode[], min = 1): PlanNode {
  const [first] = nodes;
  if (first === undefined || min > nodes.length) return matchNone;
  return nodes.length === 1 ? first : boolNode({ should: nodes, min_should: min });
}

/** The node with its score multiplied. */
export function withBoost(node: PlanNode, boost: number): PlanNode {
  return boost === 1 || node.kind === 'match_none' ? node : { ...node, boost: node.boost * boost };
}
