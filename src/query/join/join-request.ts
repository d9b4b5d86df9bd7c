import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readInteger,
  readString,
  readStrings,
} from '../nodes/query-members.ts';

const joinTypes = ['inner', 'left', 'right'] as const;
type JoinType = (typeof joinTypes)[number];

const joinOperators = ['eq', 'neq', 'lt', 'lte', 'gt', 'gte'] as const;
export type JoinOperator = (typeof joinOperators)[number];

const strategyHints = ['broadcast', 'index_lookup', 'shuffle'] as const;
type StrategyHint = (typeof strategyHints)[number];

/** Where a value of a joined row is: in the searched table, or in one that was joined before. */
export interface LeftField {
  /** Position of the join; undefined for the searched table. */
  readonly join: number | undefined;
  /** Dotted path, or `_id`. */
  readonly path: string;
}

/** One join of a query. */
export interface JoinRequest {
  readonly rightTable: string;
  readonly type: JoinType;
  readonly left: LeftField;
  /** Dotted path, or `_id`. */
  readonly rightField: string;
  readonly operator: JoinOperator;
  /** Query node as it was sent. */
  readonly filter: unknown;
  readonly keyPrefix: string | undefined;
  /** Only the first rows by key take part. */
  readonly limit: number | undefined;
  /** Members that are taken over; all when undefined. */
  readonly fields: readonly string[] | undefined;
  readonly hint: StrategyHint | undefined;
}

const members = [
  'right_table',
  'join_type',
  'on',
  'right_filters',
  'right_fields',
  'strategy_hint',
  'nested_join',
] as const;

/** The joins of a request, outermost first; each works on the rows of the one before. Fails with `invalid_query`. */
export function readJoins(request: Members): JoinRequest[] {
  const joins: JoinRequest[] = [];
  let where = 'join';
  for (let value = member(request, 'join'); value !== undefined; where = `${where}.nested_join`) {
    if (!isObject(value)) throw invalidQuery(where, 'must be an object such as {"right_table": "t", "on": {...}}');
    if (joins.length === limits.joinsMax) {
      throw new ServiceError('limit_exceeded', `join: a query joins at most ${limits.joinsMax} tables`);
    }
    joins.push(readJoin(value, joins, where));
    value = member(value, 'nested_join');
  }
  return joins;
}

function readJoin(join: Members, before: readonly JoinRequest[], where: string): JoinRequest {
  checkMembers(join, members, where);
  const rightTable = readString(join, 'right_table', where);
  if (!rightTable) throw invalidQuery(where, 'needs a "right_table"');
  if (before.some((each) => each.rightTable === rightTable)) {
    throw invalidQuery(where, `"${rightTable}" is joined twice: its fields could not be told apart`);
  }
  const on = member(join, 'on');
  if (!isObject(on)) throw invalidQuery(where, 'needs "on": {"left_field", "right_field", "operator"}');
  checkMembers(on, ['left_field', 'right_field', 'operator'], `${where}.on`);
  const filters = member(join, 'right_filters') ?? {};
  if (!isObject(filters)) throw invalidQuery(`${where}.right_filters`, 'must be an object');
  checkMembers(filters, ['filter_query', 'filter_prefix', 'limit'], `${where}.right_filters`);
  return {
    rightTable,
    type: readChoice(join, 'join_type', joinTypes, where) ?? 'inner',
    left: leftField(readPath(on, 'left_field', where), before),
    rightField: readPath(on, 'right_field', where),
    operator: readChoice(on, 'operator', joinOperators, `${where}.on`) ?? 'eq',
    filter: member(filters, 'filter_query'),
    keyPrefix: readString(filters, 'filter_prefix', `${where}.right_filters`),
    limit: readInteger(filters, 'limit', { min: 0, max: limits.joinRightRowsMax }, `${where}.right_filters`),
    fields: readStrings(join, 'right_fields', Number.MAX_SAFE_INTEGER, where),
    hint: readChoice(join, 'strategy_hint', strategyHints, where),
  };
}

function readPath(on: Members, name: string, where: string): string {
  const path = readString(on, name, `${where}.on`);
  if (!path) throw invalidQuery(`${where}.on`, `needs a "${name}"`);
  return path;
}

/** `customers.address_id` is a member of the joined table `customers`, else a path of the searched table. */
function leftField(path: string, before: readonly JoinRequest[]): LeftField {
  const join = before.findIndex(({ rightTable }) => path.startsWith(`${rightTable}.`));
  if (join < 0) return { join: undefined, path };
  return { join, path: path.slice((before[join]?.rightTable.length ?? 0) + 1) };
}

function readChoice<Choice extends string>(
  object: Members,
  name: string,
  choices: readonly Choice[],
  where: string,
): Choice | undefined {
  const value = readString(object, name, where);
  if (value === undefined) return undefined;
  const choice = choices.find((each) => each === value);
  if (choice === undefined) throw invalidQuery(where, `"${name}" must be one of ${choices.join(', ')}`);
  return choice;
}
