import { type Caller, requireWholeTable } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import type { QueryCaller, RunNativeQuery } from '../execution/query-target.ts';
import type { ForeignSource } from '../foreign/foreign-request.ts';
import type { ForeignTable } from '../foreign/foreign-table.ts';
import { type FindForeign, openForeign } from '../foreign/open-foreign.ts';
import { QueryBudget } from '../nodes/query-budget.ts';
import { readQueryNode } from '../nodes/query-nodes.ts';
import { planContextOf } from '../plan/plan-context.ts';
import { planFilter } from '../plan/query-plan.ts';
import type { QueryDeadline } from '../query-deadline.ts';
import type { SearchableTables } from '../searchable-table.ts';
import type { JoinPlan } from './join-plan.ts';
import type { JoinRequest } from './join-request.ts';
import type { RightSide } from './right-side.ts';
import { RightTable } from './right-table.ts';

interface RightsScope {
  readonly tables: SearchableTables;
  /** Undefined where the database was opened without connections. */
  readonly foreign: FindForeign | undefined;
  readonly run: RunNativeQuery;
  readonly clock: Clock;
  readonly caller: Caller & QueryCaller;
  readonly deadline: QueryDeadline;
  readonly nowMs: number;
  /** The answer tells how many rows were read. */
  readonly profile: boolean;
}

/**
 * Opens the right sides of joins, each under the caller's own grant and row filter; `opened` closes them. Fails with
 * `table_not_found`, `forbidden` or `invalid_query`.
 */
export async function openRights(
  { joins, foreign }: JoinPlan,
  opened: DisposableStack,
  scope: RightsScope,
): Promise<RightSide[]> {
  const rights: RightSide[] = [];
  for (const join of joins) {
    const source = foreign.get(join.rightTable);
    const right = source ? await openForeignRight(join, source, scope) : await openTable(join, scope);
    rights.push(opened.use(right));
  }
  return rights;
}

async function openTable(join: JoinRequest, scope: RightsScope): Promise<RightTable> {
  const { tables, caller, nowMs, profile, run, clock, deadline } = scope;
  const table = tables.get(join.rightTable, caller, 'read');
  if (profile) requireWholeTable(caller, table.name, '"profile"');
  const filter = planFilter(join.filter, planContextOf(table, caller, nowMs));
  const { keyPrefix, limit } = join;
  return new RightTable({ table, lease: await table.lease(), filter, keyPrefix, limit, run, clock, caller, deadline });
}

function openForeignRight(join: JoinRequest, source: ForeignSource, scope: RightsScope): Promise<ForeignTable> {
  const where = { where: 'right_filters.filter_query', depth: 0, budget: new QueryBudget() };
  const filter = join.filter === undefined ? undefined : readQueryNode(join.filter, where);
  const { keyPrefix, limit } = join;
  return openForeign(source, { filter, keyPrefix, limit }, scope);
}
