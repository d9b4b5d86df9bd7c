import type { Fuzziness, WordPlanNode } from './word-plan-nodes.ts';

/**
 * The nodes that the native engine runs. These objects travel to it as JSON, so their members are named as they are there.
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
interface PhraseNode {
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
interface TermNode {
  kind: 'term';
  field?: string;
  value: string | number | boolean;
  boost: number;
}

interface PrefixNode {
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
interface BoolPrefixNode {
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
