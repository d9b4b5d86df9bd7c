import { invalidQuery, type Members, member } from '../../nodes/query-members.ts';
import { type RequestedPage, refuseOrder } from '../query-page.ts';
import { readOneOf } from './graph-request.ts';
import type { GraphSearch } from './graph-searches.ts';

/** How the nodes of the graph searches and the hits come together: the nodes follow the hits, or hits are nodes as well. */
export type Expansion = 'union' | 'intersection';

interface AskedHits {
  page: RequestedPage;
  countOnly: boolean;
  /** The request asks for hits, not for graph searches alone. */
  hasHits: boolean;
}

const where = 'expand_strategy';

/** Undefined where nodes and hits are answered apart. Fails with `invalid_query`. */
export function readExpansion(
  request: Members,
  graphs: readonly GraphSearch[] | undefined,
  { page, countOnly, hasHits }: AskedHits,
): Expansion | undefined {
  const expansion = readOneOf(request, where, ['union', 'intersection'], 'query request');
  if (expansion === undefined) return undefined;
  if (!graphs?.length) throw invalidQuery(where, 'needs "graph_searches", whose nodes it combines with the hits');
  if (member(request, 'join') !== undefined) throw invalidQuery(where, 'does not work with "join"');
  if (expansion === 'union') {
    if (countOnly) throw invalidQuery(where, '"union" appends hits, and "count" answers none');
    refuseOrder(request, page, where);
    return expansion;
  }
  if (!hasHits) throw invalidQuery(where, '"intersection" needs a query whose hits are looked for among the nodes');
  return expansion;
}
