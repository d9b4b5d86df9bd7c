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
