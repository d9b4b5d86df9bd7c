import type { PlanNode } from '../plan/plan-nodes.ts';
import type { QueryBudget } from './query-budget.ts';

/** Where a node stands and what it may still use. */
export interface NodeScope {
  /** Path of the node in the request, for messages. */
  where: string;
  depth: number;
  budget: QueryBudget;
  /** The nodes that `ref` may name; none where a request has no `with`. */
  filters?: FilterReferences | undefined;
}

/** The filters that a request names. */
interface FilterReferences {
  /** Throws ServiceError `invalid_query` where there is none of this name, or it refers to itself. */
  resolve(name: string, scope: NodeScope): PlanNode;
}
