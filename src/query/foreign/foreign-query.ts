import { hitOfRow } from '../execution/hydrate.ts';
import type { ExecutedQuery } from '../execution/query-executor.ts';
import { QueryBudget } from '../nodes/query-budget.ts';
import {
  invalidQuery,
  isObject,
  type Members,
  member,
  presentNames,
  readBoolean,
  readString,
  readStrings,
} from '../nodes/query-members.ts';
import { readQueryNode } from '../nodes/query-nodes.ts';
import { boolNode, type PlanNode } from '../plan/plan-nodes.ts';
import { compileProjection, type Projection } from '../request/projection/projection.ts';
import { type RequestedPage, readPage } from '../request/query-page.ts';
import { type ForeignSource, readForeignSources } from './foreign-request.ts';
import type { ForeignTable } from './foreign-table.ts';

/** A query whose `table` is one of its `foreign_sources`. */
export interface ForeignQuery {
  readonly source: ForeignSource;
  readonly filter: PlanNode | undefined;
  readonly keyPrefix: string | undefined;
  readonly page: RequestedPage;
  readonly countOnly: boolean;
  readonly projection: Projection;
}

const where = 'query request';
const answered = ['filter_query', 'exclusion_query', 'filter_prefix', 'fields', 'order_by', 'limit', 'offset', 'count'];
const known = ['table', 'foreign_sources', ...answered];

/**
 * Reads a request that asks a foreign table; undefined for one that asks a table of this database. Fails with `invalid_query`
 * for what only an index could answer.
 */
export function readForeignQuery(request: unknown): ForeignQuery | undefined {
  if (!isObject(request)) return undefined;
  const table = readString(request, 'table', where);
  if (table === undefined || member(request, 'foreign_sources') === undefined) return undefined;
  const sources = readForeignSources(request);
  const source = sources.get(table);
  if (!source) return undefined;
  const refused = presentNames(request).find((name) => !known.includes(name));
  if (refused !== undefined) {
    const what = `"${refused.slice(0, 64)}" cannot be asked of a foreign table, which answers ${answered.join(', ')}`;
    throw invalidQuery(where, refused === 'join' ? `${what}; it can be the right side of a join` : what);
  }
  const unused = [...sources.keys()].find((name) => name !== table);
  if (unused !== undefined) throw invalidQuery('foreign_sources', `"${unused.slice(0, 64)}" is not asked`);
  return {
    source,
    filter: readFilter(request),
    keyPrefix: readString(request, 'filter_prefix', where),
    page: readPage(request, where),
    countOnly: readBoolean(request, 'count', where) ?? false,
    projection: compileProjection(readStrings(request, 'fields', Number.MAX_SAFE_INTEGER, where)),
  };
}

function readFilter(request: Members): PlanNode | undefined {
  const budget = new QueryBudget();
  const read = (name: string): PlanNode[] => {
    const value = member(request, name);
    return value === undefined ? [] : [readQueryNode(value, { where: name, depth: 0, budget })];
  };
  const filter = read('filter_query');
  const exclusion = read('exclusion_query');
  return filter.length + exclusion.length === 0 ? undefined : boolNode({ filter, must_not: exclusion });
}

/** Answers from the rows that the database has committed; where it is asked twice, a row may have come or gone in between. */
export async function executeForeign(
  { page, countOnly }: ForeignQuery,
  table: ForeignTable,
  signal: AbortSignal,
): Promise<ExecutedQuery> {
  const { limit, offset } = page;
  const rows = countOnly || limit === 0 ? [] : await table.page(page);
  signal.throwIfAborted();
  // A page that is not full ends with the last row, unless it begins behind that.
  const isLast = !countOnly && rows.length < limit && (rows.length > 0 || offset === 0);
  const seen = rows.length === 0 ? 0 : offset + rows.length;
  const total = isLast ? seen : Math.max(await table.count(), seen);
  signal.throwIfAborted();
  const score = rows.length > 0 ? 1 : 0;
  return {
    hits: rows.map((row) => hitOfRow(row, score)),
    total,
    totalIsExact: true,
    isPartial: false,
    damaged: 0,
    maxScore: score,
    aggregations: undefined,
    profile: undefined,
  };
}

/** For metrics and logs: a name that the configuration has, not one that a request makes up. */
export function nameOfSource({ connection, table }: ForeignSource): string {
  return `${connection}/${table}`;
}
