import { isDateText } from '../../lib/text/date-text.ts';
import type { PlanNode, RangeBounds, RangeNode } from '../plan/plan-nodes.ts';
import type { NodeScope } from './node-scope.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  presentNames,
  readBoolean,
  readBoost,
  requireField,
} from './query-members.ts';

type Bound = string | number;
type BoundKind = RangeNode['of'];

const openBounds = ['gt', 'gte', 'lt', 'lte'] as const;
const minMaxMembers = ['min', 'max', 'inclusive_min', 'inclusive_max', 'field', 'path', 'boost'];
const dateMembers = ['start', 'end', 'inclusive_start', 'inclusive_end', 'datetime_parser', 'field', 'path', 'boost'];

/** `{min, max, field}`: numbers, or strings for a range of terms. */
export function readMinMaxRange(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, minMaxMembers, where);
  return minMaxRange(node, where);
}

/** `{start, end, field}` with dates. */
export function readDateRange(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, dateMembers, where);
  return startEndRange(node, where);
}

/** `{range: {f: {gte, lt}}}`: numbers, dates or terms, as the bounds and the field say. */
export function readRange(node: Members, { where }: NodeScope): PlanNode {
  return wrappedRange(node, 'range', 'auto', where);
}

/** `{numeric_range: ...}`, around either spelling of the bounds. */
export function readNumericRange(node: Members, { where }: NodeScope): PlanNode {
  return wrappedRange(node, 'numeric_range', 'number', where);
}

export function readNamedDateRange(node: Members, { where }: NodeScope): PlanNode {
  return wrappedRange(node, 'date_range', 'date', where);
}

export function readTermRange(node: Members, { where }: NodeScope): PlanNode {
  return wrappedRange(node, 'term_range', 'term', where);
}

function wrappedRange(node: Members, name: string, of: BoundKind, where: string): PlanNode {
  checkMembers(node, [name, 'boost'], where);
  const at = `${where}.${name}`;
  const body = member(node, name);
  if (!isObject(body)) throw invalidQuery(at, 'must name a field and its bounds: {"year": {"gte": 2000, "lt": 2010}}');
  const boost = readBoost(node, where);
  if (typeof member(body, 'field') === 'string' || typeof member(body, 'path') === 'string') {
    return scaled(spelledOut(body, of, at), boost);
  }
  const names = presentNames(body);
  const [field] = names;
  const bounds = field === undefined ? undefined : member(body, field);
  if (names.length !== 1 || !field || !isObject(bounds)) {
    throw invalidQuery(at, 'must name one field and its bounds: {"year": {"gte": 2000, "lt": 2010}}');
  }
  checkMembers(bounds, [...openBounds, 'boost'], `${at}.${field}`);
  return scaled(openRange(bounds, field, of, `${at}.${field}`), boost);
}

/** The bounds beside their field, in any of the three spellings. */
function spelledOut(body: Members, of: BoundKind, where: string): RangeNode {
  const names = presentNames(body);
  if (names.includes('start') || names.includes('end')) {
    if (of !== 'auto' && of !== 'date') throw invalidQuery(where, 'has "min" and "max", not "start" and "end"');
    checkMembers(body, dateMembers, where);
    return startEndRange(body, where);
  }
  if (names.includes('min') || names.includes('max')) {
    checkMembers(body, minMaxMembers, where);
    return minMaxRange(body, where, of);
  }
  checkMembers(body, [...openBounds, 'field', 'path', 'boost'], where);
  return openRange(body, requireField(body, where), of, where);
}

function minMaxRange(node: Members, where: string, wanted: BoundKind = 'auto'): RangeNode {
  const bounds: RangeBounds = {};
  const min = readBound(node, 'min', wanted, where);
  const max = readBound(node, 'max', wanted, where);
  if (min !== undefined) bounds[(readBoolean(node, 'inclusive_min', where) ?? true) ? 'gte' : 'gt'] = min;
  if (max !== undefined) bounds[(readBoolean(node, 'inclusive_max', where) ?? false) ? 'lte' : 'lt'] = max;
  const of = wanted === 'auto' ? (typeof (min ?? max) === 'number' ? 'number' : 'term') : wanted;
  return finishRange(node, requireField(node, where), bounds, of, where);
}

function startEndRange(node: Members, where: string): RangeNode {
  const parser = member(node, 'datetime_parser');
  if (parser !== undefined && parser !== 'dateTimeOptional' && parser !== 'default') {
    throw invalidQuery(where, 'there is one "datetime_parser", "default": it reads RFC 3339 times and YYYY-MM-DD');
  }
  const bounds: RangeBounds = {};
  const start = readBound(node, 'start', 'date', where);
  const end = readBound(node, 'end', 'date', where);
  if (start !== undefined) bounds[(readBoolean(node, 'inclusive_start', where) ?? true) ? 'gte' : 'gt'] = start;
  if (end !== undefined) bounds[(readBoolean(node, 'inclusive_end', where) ?? false) ? 'lte' : 'lt'] = end;
  return finishRange(node, requireField(node, where), bounds, 'date', where);
}

function openRange(body: Members, field: string, of: BoundKind, where: string): RangeNode {
  const bounds: RangeBounds = {};
  for (const name of openBounds) {
    const bound = readBound(body, name, of, where);
    if (bound !== undefined) bounds[name] = bound;
  }
  if (bounds.gt !== undefined && bounds.gte !== undefined) throw invalidQuery(where, 'give "gt" or "gte", not both');
  if (bounds.lt !== undefined && bounds.lte !== undefined) throw invalidQuery(where, 'give "lt" or "lte", not both');
  return finishRange(body, field, bounds, of, where);
}

function finishRange(node: Members, field: string, bounds: RangeBounds, of: BoundKind, where: string): RangeNode {
  const values: Bound[] = Object.values(bounds);
  if (values.length === 0) throw invalidQuery(where, 'a range needs at least one bound');
  if (values.some((value) => typeof value !== typeof values[0])) {
    throw invalidQuery(where, 'the bounds of a range must both be numbers or both be strings');
  }
  return { kind: 'range', field, ...bounds, of, boost: readBoost(node, where) };
}

function readBound(node: Members, name: string, of: BoundKind, where: string): Bound | undefined {
  const value = member(node, name);
  if (value === undefined) return undefined;
  const isText = typeof value === 'string';
  if (of === 'number' && typeof value === 'number') return value;
  if (of === 'term' && isText) return value;
  if (of === 'date' && isText && isDateText(value)) return value;
  if (of === 'auto' && (isText || typeof value === 'number')) return value;
  throw invalidQuery(where, `"${name}" must be ${boundWords[of]}`);
}

const boundWords = {
  number: 'a number',
  term: 'a string',
  date: 'a date such as 2024-05-01 or 2024-05-01T12:00:00Z',
  auto: 'a number or a string',
} as const;

function scaled(node: RangeNode, boost: number): RangeNode {
  return { ...node, boost: node.boost * boost };
}
