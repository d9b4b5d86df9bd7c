import { instantMs } from '../../lib/instant-ms.ts';
import { compareKeys } from '../../lib/key-order.ts';
import type { Hit } from '../execution/hydrate.ts';
import { invalidQuery } from '../nodes/query-members.ts';
import type { PlanSort } from '../plan/native-plan.ts';
import type { JoinRequest } from './join-request.ts';
import { type JoinedRow, type RightRow, rightValues, type Scalar } from './joined-row.ts';

/** One key of the order of joined rows: one of the searched table, which the search orders by too, or one of a joined table. */
export type JoinedSort = { readonly desc: boolean } & (
  | { readonly own: number }
  | { readonly join: number; readonly path: string }
);

/**
 * A value of an order, comparable with every other one. The rank is that of its type: numbers, dates, texts, booleans,
 * and nothing, which comes last in either direction.
 */
export type SortKey = readonly [rank: number, value: string | number];

/** Where a joined row stands among all of them. */
export interface RowPlace {
  readonly keys: readonly SortKey[];
  /** Undefined for a row of the right side that no hit has found. */
  readonly hit: string | undefined;
  /** Keys of the joined rows; null where a join has found nothing. */
  readonly rights: readonly (string | null)[];
}

const [numberRank, dateRank, textRank, booleanRank, missingRank] = [0, 1, 2, 3, 4];
const missing: SortKey = [missingRank, 0];

/** The engine's names of the types of sort values in a position. */
const engineTypes = { date: 'd', text: 't', number: 'n' };
const dateShape = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Kept beside a document, and compared as a time, however it is written. */
const timestampPath = '_timestamp';

/** Tells fields of joined tables, such as `customers.name`, from those of the searched one. Fails with `invalid_query`. */
export function joinedOrder(sort: readonly PlanSort[], joins: readonly JoinRequest[]): JoinedSort[] {
  let own = 0;
  return sort.map(({ field, desc }, at) => {
    const join = joins.findIndex(({ rightTable }) => field.startsWith(`${rightTable}.`));
    const table = joins[join]?.rightTable;
    if (table === undefined) return { desc, own: own++ };
    const path = field.slice(table.length + 1);
    if (path !== '' && path !== '_score') return { desc, join, path };
    throw invalidQuery(`order_by[${at}]`, `"${field.slice(0, 128)}" cannot be ordered by: joined rows have no score`);
  });
}

/** The order of the searched table: its own part of the order, else its keys. */
export function ownSort(sort: readonly PlanSort[], order: readonly JoinedSort[]): PlanSort[] {
  const own = sort.filter((_, at) => order[at] && 'own' in order[at]);
  return own.length > 0 || sort.length === 0 ? own : [{ field: '_id', desc: false }];
}

/** Reads keys of rows. Documents of the right sides are looked into once, however many hits they belong to. */
export class RowKeys {
  readonly #order: readonly JoinedSort[];
  readonly #known = new WeakMap<RightRow, Map<JoinedSort, SortKey>>();
  #last: { readonly hit: Hit | undefined; readonly types: readonly string[] } = { hit: undefined, types: [] };

  constructor(order: readonly JoinedSort[]) {
    this.#order = order;
  }

  placeOf(row: JoinedRow): RowPlace {
    const types = this.#typesOf(row.hit);
    const keys = this.#order.map((sort) => {
      if ('own' in sort) return ownKey(row.hit?.sort?.[sort.own], types[sort.own]);
      const right = row.rights[sort.join];
      return right ? this.#rightKey(right, sort) : missing;
    });
    return { keys, hit: row.hit?.document.key, rights: row.rights.map((right) => right?.key ?? null) };
  }

  /** As `_sort` shows them. */
  shown({ hit }: JoinedRow, { keys }: RowPlace): unknown[] {
    return this.#order.map((sort, at) =>
      'own' in sort ? (hit?.sort?.[sort.own] ?? null) : shownKey(keys[at] ?? missing),
    );
  }

  /** Negative where the first one comes first. Two different rows are never alike. */
  compare(left: RowPlace, right: RowPlace): number {
    for (const [at, { desc }] of this.#order.entries()) {
      const order = compareSortKeys(left.keys[at] ?? missing, right.keys[at] ?? missing, desc);
      if (order !== 0) return order;
    }
    return compareAlike(left, right);
  }

  /** Rows of one hit follow each other. */
  #typesOf(hit: Hit | undefined): readonly string[] {
    if (hit !== this.#last.hit) this.#last = { hit, types: hit ? typesOf(hit) : [] };
    return this.#last.types;
  }

  #rightKey(right: RightRow, sort: JoinedSort & { path: string }): SortKey {
    const known = this.#known.get(right) ?? new Map<JoinedSort, SortKey>();
    this.#known.set(right, known);
    let key = known.get(sort);
    if (!key) {
      key = sort.path === timestampPath ? keyOfTime(right) : keyOfScalars(rightValues(right, sort.path), sort.desc);
      known.set(sort, key);
    }
    return key;
  }
}

/** Rows without a hit come after all others, and a join that has found nothing after those that have. */
function compareAlike(left: RowPlace, right: RowPlace): number {
  const hits = compareNullable(left.hit, right.hit);
  if (hits !== 0) return hits;
  for (const [at, key] of left.rights.entries()) {
    const order = compareNullable(key ?? undefined, right.rights[at] ?? undefined);
    if (order !== 0) return order;
  }
  return 0;
}

function compareNullable(left: string | undefined, right: string | undefined): number {
  if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined);
  return compareKeys(left, right);
}

function compareSortKeys(left: SortKey, right: SortKey, desc: boolean): number {
  const [leftRank, rightRank] = [left[0], right[0]];
  if (leftRank === missingRank || rightRank === missingRank) return leftRank - rightRank;
  const order = ascending(left, right);
  return desc ? -order : order;
}

function ascending([leftRank, left]: SortKey, [rightRank, right]: SortKey): number {
  if (leftRank !== rightRank) return leftRank - rightRank;
  if (typeof left === 'string' && typeof right === 'string') return compareKeys(left, right);
  return Number(left) - Number(right);
}

/** The time of a row's write, or the one that the row itself says. */
function keyOfTime(right: RightRow): SortKey {
  const [own] = rightValues(right, timestampPath);
  const ms = own === undefined ? right.writtenMs : instantMs(own);
  return ms === undefined ? missing : [dateRank, new Date(ms).toISOString().slice(0, -1)];
}

/** Of several values the one that the direction would show first, numbers before texts: as a search orders its hits. */
function keyOfScalars(values: readonly Scalar[], desc: boolean): SortKey {
  let best = missing;
  for (const value of values) {
    const key = keyOfScalar(value);
    const isOfEarlierType = key[0] < best[0];
    const isBetter = key[0] === best[0] && ascending(key, best) < 0 !== desc && ascending(key, best) !== 0;
    if (isOfEarlierType || isBetter) best = key;
  }
  return best;
}

function keyOfScalar(value: Scalar): SortKey {
  if (typeof value === 'number') return [numberRank, value];
  return typeof value === 'string' ? [textRank, value] : [booleanRank, Number(value)];
}

/**
 * The types of a hit's sort values. A hit that has changed has the position of
 * a neighbour, whose types are those of its fields too.
 */
function typesOf({ place }: Hit): string[] {
  if (place === undefined) return [];
  const values: unknown = JSON.parse(place.position);
  return Array.isArray(values) ? values.map((value) => String(value).slice(0, 1)) : [];
}

/** The key behind a value as the engine shows it: dates are texts there, and so are numbers that a client might round. */
function ownKey(value: unknown, type: string | undefined): SortKey {
  if (typeof value === 'string') {
    if (type === engineTypes.number && Number.isFinite(Number(value))) return [numberRank, Number(value)];
    const isDate = type !== engineTypes.text && dateShape.test(value);
    // Without its end a time comes before the same one with a fraction.
    return isDate ? [dateRank, value.slice(0, -1)] : [textRank, value];
  }
  return typeof value === 'number' || typeof value === 'boolean' ? keyOfScalar(value) : missing;
}

function shownKey([rank, value]: SortKey): unknown {
  if (rank === missingRank) return null;
  if (rank === booleanRank) return value === 1;
  if (rank === dateRank) return `${value}Z`;
  return typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? String(value) : value;
}
