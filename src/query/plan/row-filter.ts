import { type Caller, rowFiltersOf } from '../../access/principal.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { QueryBudget } from '../nodes/query-budget.ts';
import { readQueryNode } from '../nodes/query-nodes.ts';
import type { NativePlan } from './native-plan.ts';
import type { PlanNode } from './plan-nodes.ts';

/** The rows of a table that a caller may see, as plans hold it; empty for all of it. Fails with `invalid_query`. */
export function readRowFilters(caller: Caller, table: string): PlanNode[] {
  return rowFiltersOf(caller, table).map(readRowFilter);
}

export function readRowFilter(node: object): PlanNode {
  return readQueryNode(node, { where: 'row filter', depth: 0, budget: new QueryBudget() });
}

/** Members whose answers tell of documents that a row filter hides: what terms cost and weigh in the whole table. */
const membersAboutAll = ['explain', 'profile'] as const;

/** Puts row filters into a plan. Fails with `forbidden` where the plan asks for what they hide. */
export function restrictRows(plan: NativePlan, filters: readonly PlanNode[]): void {
  if (filters.length === 0) return;
  const name = membersAboutAll.find((each) => plan[each] === true);
  if (name !== undefined) {
    throw new ServiceError('forbidden', `"${name}" needs access to the table without a row filter`);
  }
  plan.row_filter = [...filters];
}

/**
 * Fails with `forbidden` where row filters might let other rows through in a full-text index than in the one that
 * serves: those that ask for words of every field, and for words of artifacts, mean what the index is searched for.
 */
export function requireAlike(index: string, filters: readonly PlanNode[]): void {
  if (!filters.some(isOfIndex)) return;
  const message = `your row filter has a condition on every field, or on artifacts, which means another thing in "${index}"; search the default full-text index`;
  throw new ServiceError('forbidden', message);
}

function isOfIndex(node: PlanNode): boolean {
  if (node.kind === 'bool') return [node.must, node.should, node.must_not, node.filter].flat().some(isOfIndex);
  if (node.kind === 'match_all' || node.kind === 'match_none' || node.kind === 'ids') return false;
  const fields = 'fields' in node ? node.fields.map(({ field }) => field) : [node.field];
  // Every field has a name, too.
  return fields.some((field) => field === undefined || /^_(?:all|artifacts)(?:\.|$)/.test(field));
}
