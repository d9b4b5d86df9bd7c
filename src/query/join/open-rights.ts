import { type Caller, requireWholeTable } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import type { QueryCaller, RunNativeQuery } from '../execution/query-target.ts';
import { planContextOf } from '../plan/plan-context.ts';
import { planFilter } from '../plan/query-plan.ts';
import type { SearchableTables } from '../searchable-table.ts';
import type { JoinPlan } from './join-plan.ts';
import type { JoinRequest } from './join-request.ts';
import type { RightSide } from './right-side.ts';
import { RightTable } from './right-table.ts';

interface RightsScope {
  readonly tables: SearchableTables;
  readonly run: RunNativeQuery;
  readonly clock: Clock;
  readonly caller: Caller & QueryCaller;
  readonly nowMs: number;
  /** The answer tells how many rows were read. */
  readonly profile: boolean;
}

/**
 * Opens the right sides of joins, each under the caller's own grant and row filter; `opened` closes them. Fails with
 * `table_not_found`, `forbidden` or `invalid_query`.
 */
export async function openRights(
  { joins }: JoinPlan,
  opened: DisposableStack,
  scope: RightsScope,
): Promise<RightSide[]> {
  const rights: RightSide[] = [];
  for (const join of joins) rights.push(opened.use(await openTable(join, scope)));
  return rights;
}

async function openTable(join: JoinRequest, scope: RightsScope): Promise<RightTable> {
  const { tables, caller, nowMs, profile, run, clock } = scope;
  const table = tables.get(join.rightTable, caller, 'read');
  if (profile) requireWholeTable(caller, table.name, '"profile"');
  const filter = planFilter(join.filter, planContextOf(table, caller, nowMs));
  const { keyPrefix, limit } = join;
  return new RightTable({ table, lease: await table.lease(), filter, keyPrefix, limit, run, clock, caller });
}
