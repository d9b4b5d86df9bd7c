import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RequestedCursor } from '../execution/page-cursor.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readBoolean,
  readInteger,
  readString,
} from '../nodes/query-members.ts';
import type { PlanSort } from '../plan/native-plan.ts';

/** Which part of the ordered matches a request wants. */
export interface RequestedPage {
  limit: number;
  offset: number;
  sort: PlanSort[];
  cursor: RequestedCursor | undefined;
}

/** Hits of a page that says no `limit`. */
export const pageLimitDefault = 10;
const sortKeysMax = 8;

/** `defaultLimit` is for a request that says no `limit`. */
export function readPage(request: Members, where: string, defaultLimit = pageLimitDefault): RequestedPage {
  const max = limits.queryLimitMax;
  const limit = readInteger(request, 'limit', { min: 0, max }, where) ?? defaultLimit;
  const offset = readInteger(request, 'offset', { min: 0, max }, where) ?? 0;
  if (limit + offset > max) {
    throw invalidQuery(where, `"offset" and "limit" together reach at most ${max}; page further by cursor`);
  }
  const sort = readSort(request);
  const cursor = readCursor(request, sort.length, where);
  if (cursor && offset > 0) throw invalidQuery(where, 'a cursor says where the page begins: leave "offset" out');
  return { limit, offset, sort, cursor };
}

/** Refuses another order than that of the scores that `beside` makes. */
export function refuseOrder(request: Members, { offset, sort, cursor }: RequestedPage, beside: string): void {
  const name = offset > 0 ? 'offset' : sort.length > 0 ? 'order_by' : undefined;
  if (name === undefined && cursor === undefined) return;
  const shown = name ?? (member(request, 'search_after') === undefined ? 'search_before' : 'search_after');
  throw invalidQuery(
    'query request',
    `"${shown}" cannot go with "${beside}": ask for the best hits with a larger "limit"`,
  );
}

function readSort(request: Members): PlanSort[] {
  const value = member(request, 'order_by');
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw invalidQuery('order_by', 'must be an array of {"field", "desc"}');
  if (value.length > sortKeysMax) {
    throw new ServiceError('limit_exceeded', `order_by: has at most ${sortKeysMax} entries`);
  }
  return value.map((entry: unknown, index) => {
    const at = `order_by[${index}]`;
    if (!isObject(entry)) throw invalidQuery(at, 'must be an object such as {"field": "year", "desc": true}');
    checkMembers(entry, ['field', 'desc'], at);
    const field = readString(entry, 'field', at);
    if (!field) throw invalidQuery(at, 'needs a "field"');
    return { field, desc: readBoolean(entry, 'desc', at) ?? false };
  });
}

function readCursor(request: Members, sortFields: number, where: string): RequestedCursor | undefined {
  const after = member(request, 'search_after');
  const before = member(request, 'search_before');
  if (after !== undefined && before !== undefined) {
    throw invalidQuery(where, 'give "search_after" or "search_before", not both');
  }
  const given = after ?? before;
  if (given === undefined) return undefined;
  const at = after === undefined ? 'search_before' : 'search_after';
  if (sortFields === 0) throw invalidQuery(at, 'needs an "order_by"');
  const sealed: unknown = Array.isArray(given) ? given.at(-1) : undefined;
  if (!Array.isArray(given) || given.length !== sortFields + 1 || typeof sealed !== 'string') {
    throw invalidQuery(at, 'must be the _sort of a hit, unchanged');
  }
  return { values: given.slice(0, -1), sealed, before: after === undefined };
}
