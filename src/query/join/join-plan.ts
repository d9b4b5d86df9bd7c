import { type ForeignSource, readForeignSources } from '../foreign/foreign-request.ts';
import { invalidQuery, type Members, member, readStrings } from '../nodes/query-members.ts';
import type { PlanSort } from '../plan/native-plan.ts';
import type { RequestedPage } from '../request/query-page.ts';
import { type JoinRequest, readJoins } from './join-request.ts';
import { type ShownMembers, splitFields } from './joined-members.ts';
import { type JoinedSort, joinedOrder, ownSort } from './joined-order.ts';

/** The joins of a query, and the page that is wanted of their rows. */
export interface JoinPlan {
  readonly joins: readonly JoinRequest[];
  /** Tables of databases elsewhere, by the names that joins have for them. */
  readonly foreign: ReadonlyMap<string, ForeignSource>;
  readonly page: { readonly limit: number; readonly offset: number };
  readonly countOnly: boolean;
  /** The query that a cursor belongs to. */
  readonly scope: string;
  /** One for each join. */
  readonly shown: readonly ShownMembers[];
  readonly order: readonly JoinedSort[];
  /** The page is not known before all rows are: those of joined tables have a say in the order, or come behind all others. */
  readonly needsAll: boolean;
}

const where = 'query request';

/**
 * The joins of a query, undefined for none, and which members of the searched
 * table it shows and orders by. Fails with `invalid_query`.
 */
export function planJoin(
  request: Members,
  { limit, offset, sort, cursor }: RequestedPage,
  countOnly: boolean,
): { join: JoinPlan | undefined; fields: readonly string[] | undefined; sort: PlanSort[] } {
  const asked = readStrings(request, 'fields', Number.MAX_SAFE_INTEGER, where);
  const joins = readJoins(request);
  const foreign = readForeignSources(request);
  const unused = [...foreign.keys()].find((name) => joins.every(({ rightTable }) => rightTable !== name));
  if (unused !== undefined) throw invalidQuery('foreign_sources', `"${unused.slice(0, 64)}" is not joined`);
  if (joins.length === 0) return { join: undefined, fields: asked, sort };
  if (member(request, 'reranker') !== undefined) throw invalidQuery(where, '"reranker" cannot go with "join"');
  const order = joinedOrder(sort, joins);
  const { fields, joined: shown } = splitFields(asked, joins);
  const scope = JSON.stringify([member(request, 'join'), member(request, 'foreign_sources') ?? null, sort]);
  const isOfJoined = order.some((each) => 'join' in each);
  const isBehindAll = cursor !== undefined && joins.some(({ type }) => type === 'right');
  const needsAll = isOfJoined || cursor?.before === true || isBehindAll;
  const join = { joins, foreign, page: { limit, offset }, countOnly, scope, shown, order, needsAll };
  return { join, fields, sort: ownSort(sort, order) };
}
