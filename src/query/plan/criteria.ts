import type { NamedFilters } from '../nodes/named-filters.ts';
import type { QueryBudget } from '../nodes/query-budget.ts';
import { invalidQuery, type Members, member } from '../nodes/query-members.ts';
import { readQueryNode } from '../nodes/query-nodes.ts';
import type { Synonyms } from '../request/synonyms.ts';
import type { NativePlan } from './native-plan.ts';
import { boolNode, type PlanNode } from './plan-nodes.ts';

const where = 'query request';

/** The conditions of a request on documents. */
type Criteria = Pick<NativePlan, 'query' | 'filter' | 'exclusion'>;

/** Reads the members that say which documents match. Fails with `invalid_query` or `limit_exceeded`. */
export function readCriteria(request: Members, budget: QueryBudget, filters: NamedFilters): Criteria {
  const read = (name: string): PlanNode | undefined => {
    const value = member(request, name);
    return value === undefined ? undefined : readQueryNode(value, { where: name, depth: 0, budget, filters });
  };
  const fullText = read('full_text_search');
  const uniform = read('query');
  if (fullText && uniform) throw invalidQuery(where, 'give "full_text_search" or "query", not both');
  const split = splitScoring(fullText ?? uniform);
  const filter = read('filter_query');
  const exclusion = read('exclusion_query');
  if (filter) split.filter = [...split.filter, filter];
  if (exclusion) split.exclusion = [...split.exclusion, exclusion];
  return split;
}

/**
 * Takes the clauses that do not score out of a bool around everything, so that the engine applies them before it
 * scores, and knows when nothing scores at all.
 */
function splitScoring(node: PlanNode | undefined): Criteria {
  if (node === undefined || isPlainMatchAll(node)) return { filter: [], exclusion: [] };
  if (node.kind !== 'bool') return { query: node, filter: [], exclusion: [] };
  const { must, should, filter, must_not: exclusion, boost } = node;
  const [first] = must;
  if (should.length > 0) {
    // Without a clause that must match, optional ones would become required: one filter stays with them.
    const kept = must.length === 0 && node.min_should === 0 ? filter : [];
    const query = boolNode({ must, should, filter: kept, min_should: node.min_should ?? 1, boost });
    return { query, filter: kept === filter ? [] : filter, exclusion };
  }
  if (first === undefined) return { filter, exclusion };
  const query = must.length === 1 && boost === 1 ? first : boolNode({ must, boost });
  return isPlainMatchAll(query) ? { filter, exclusion } : { query, filter, exclusion };
}

function isPlainMatchAll(node: PlanNode): boolean {
  return node.kind === 'match_all' && node.boost === 1;
}

type ExpandNode = (node: PlanNode) => PlanNode;

/** Puts what a table takes for the same into the words of a node. */
export function synonymExpansion(synonyms: Synonyms | undefined, budget: QueryBudget): ExpandNode {
  if (synonyms === undefined || synonyms.isEmpty) return (node) => node;
  return (node) => synonyms.expand(node, budget);
}

export function expandCriteria(criteria: Criteria, expand: ExpandNode): Criteria {
  const expanded: Criteria = { filter: criteria.filter.map(expand), exclusion: criteria.exclusion.map(expand) };
  if (criteria.query) expanded.query = expand(criteria.query);
  return expanded;
}
