import { type ForeignSource, readForeignSources } from '../foreign/foreign-request.ts';
import { invalidQuery, type Members, member, readStrings } from '../nodes/query-members.ts';
import type { RequestedPage } from '../request/query-page.ts';
import { type JoinRequest, readJoins } from './join-request.ts';
import { type ShownMembers, splitFields } from './joined-members.ts';

/** The joins of a query, and the page that is wanted of their rows. */
export interface JoinPlan {
  readonly joins: readonly JoinRequest[];
  /** Tables of databases elsewhere, by the names that joins have for them. */
  readonly foreign: ReadonlyMap<string, ForeignSource>;
  readonly page: { readonly limit: number; readonly offset: number };
  readonly countOnly: boolean;
  /** What a cursor belongs to. */
  readonly scope: string;
  /** One for each join. */
  readonly shown: readonly ShownMembers[];
}

const where = 'query request';

/** What a query joins, undefined for nothing, and which members of the searched table it shows. Fails with `invalid_query`. */
export function planJoin(
  request: Members,
  { limit, offset, sort, cursor }: RequestedPage,
  countOnly: boolean,
): { join: JoinPlan | undefined; fields: readonly string[] | undefined } {
  const asked = readStrings(request, 'fields', Number.MAX_SAFE_INTEGER, where);
  const joins = readJoins(request);
  const foreign = readForeignSources(request);
  const unused = [...foreign.keys()].find((name) => joins.every(({ rightTable }) => rightTable !== name));
  if (unused !== undefined) throw invalidQuery('foreign_sources', `"${unused.slice(0, 64)}" is not joined`);
  if (joins.length === 0) return { join: undefined, fields: asked };
  for (const name of ['reranker', 'search_before']) {
    if (member(request, name) !== undefined) throw invalidQuery(where, `"${name}" cannot go with "join"`);
  }
  if (cursor && joins.some(({ type }) => type === 'right')) {
    throw invalidQuery(
      where,
      '"search_after" cannot go with a right join, whose last rows have no order: use "offset"',
    );
  }
  const ofRight = sort.find(({ field }) => joins.some(({ rightTable }) => field.startsWith(`${rightTable}.`)));
  if (ofRight) {
    const what = `"${ofRight.field}" is a field of a joined table: order by fields of the searched one`;
    throw invalidQuery('order_by', what);
  }
  const { fields, joined: shown } = splitFields(asked, joins);
  const scope = JSON.stringify([member(request, 'join'), member(request, 'foreign_sources') ?? null]);
  return { join: { joins, foreign, page: { limit, offset }, countOnly, scope, shown }, fields };
}
