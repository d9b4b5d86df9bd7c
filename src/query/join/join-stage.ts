import { limits } from '../../config/limits.ts';
import { compareKeys } from '../../lib/key-order.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { JoinRequest } from './join-request.ts';
import {
  isRelated,
  type JoinedRow,
  keyOfValue,
  leftValues,
  nameOfValue,
  type RightRow,
  rightValues,
  type Scalar,
} from './joined-row.ts';
import type { RightSide } from './right-side.ts';

/** How a join finds its rows, for the profile. */
export interface StageReport {
  strategy: 'broadcast' | 'index_lookup';
  /** Rows by a hash of their values, by comparing all of them, by their keys, or by an index of their values. */
  access: 'hash' | 'comparison' | 'key' | 'index';
  reason: string;
  leftRows: number;
  /** That were read from the right side. */
  rightRows: number;
  /** Pairs of rows. */
  matched: number;
  /** Rows without a pair; those of the right side are known to right joins alone. */
  unmatchedLefts: number;
  unmatchedRights: number | undefined;
}

/** The rows of the right side for one of the left, in the order of their keys. */
type FindRights = (row: JoinedRow) => readonly RightRow[];

/** Rows that leave a stage at a time, and comparisons of values before other requests have their turn. */
const batchRows = 1_024;
const sliceComparisons = 20_000;

/**
 * One join: rows of the left side come in batches, in their order, and leave with the rows that belong to them. Rows of a
 * right join that belong to none come last. Nothing is looked for before it is asked for.
 */
export class JoinStage {
  readonly #join: JoinRequest;
  readonly #right: RightSide;
  readonly report: StageReport = {
    strategy: 'broadcast',
    access: 'hash',
    reason: 'no row was looked for',
    leftRows: 0,
    rightRows: 0,
    matched: 0,
    unmatchedLefts: 0,
    unmatchedRights: undefined,
  };
  #all: readonly RightRow[] | undefined;
  #byValue: ReadonlyMap<string, readonly RightRow[]> | undefined;
  /** The values of each row, where all are compared. */
  #values: readonly (readonly Scalar[])[] | undefined;
  /** All, and those since other requests had their turn. */
  #comparisons = { all: 0, since: 0 };
  /** Joins before this one. */
  readonly #position: number;
  readonly #turn: () => Promise<void>;

  /** `turn` lets other requests have theirs; it fails when the rows are not wanted any more. */
  constructor(join: JoinRequest, right: RightSide, { position, turn }: { position: number; turn(): Promise<void> }) {
    this.#join = join;
    this.#right = right;
    this.#position = position;
    this.#turn = turn;
  }

  /**
   * The values of which a hit must have one in the left field, where that can be known before any hit is; undefined where
   * hits without a row stay, or where reading all rows of the right side would take longer than it saves.
   */
  async valuesOfHits(): Promise<Scalar[] | undefined> {
    const { type, operator, rightField, hint } = this.#join;
    if (type !== 'inner' || operator !== 'eq' || hint !== undefined) return undefined;
    const rows = await this.#right.few(restrictingRowsMax);
    if (!rows) return undefined;
    this.#all = rows;
    const reason = `the ${rows.length} rows of the right side were read first, and only hits with one of their values`;
    Object.assign(this.report, { strategy: 'broadcast', access: 'hash', reason, rightRows: rows.length });
    const values = new Map(
      rows.flatMap((row) => rightValues(row, rightField).map((each) => [nameOfValue(each), each])),
    );
    return rightField === '_id' ? [...values.values()].flatMap(asInDocuments) : [...values.values()];
  }

  /** `isSeen`: whether the batches were all rows of the left side; of others it is not known which rows belong to none. */
  async *run(batches: AsyncIterable<readonly JoinedRow[]>, isSeen: () => boolean): AsyncGenerator<JoinedRow[]> {
    const { type } = this.#join;
    const matched = type === 'right' ? new Set<string>() : undefined;
    for await (const batch of batches) {
      this.report.leftRows += batch.length;
      yield* this.#joined(batch, await this.#finder(batch), matched);
      await this.#turn();
    }
    if (matched && isSeen()) yield* this.#unmatched(matched);
  }

  async *#joined(
    batch: readonly JoinedRow[],
    find: FindRights,
    matched: Set<string> | undefined,
  ): AsyncGenerator<JoinedRow[]> {
    let out: JoinedRow[] = [];
    for (const row of batch) {
      const rights = find(row);
      this.report.matched += rights.length;
      if (rights.length === 0) this.report.unmatchedLefts += 1;
      if (rights.length === 0 && this.#join.type === 'left') out.push(extended(row, undefined));
      for (const right of rights) {
        matched?.add(right.key);
        out.push(extended(row, right));
        if (out.length < batchRows) continue;
        yield out;
        out = [];
        await this.#turn();
      }
      if (this.#comparisons.since < sliceComparisons) continue;
      this.#comparisons.since = 0;
      await this.#turn();
    }
    if (out.length > 0) yield out;
  }

  async *#unmatched(matched: ReadonlySet<string>): AsyncGenerator<JoinedRow[]> {
    const alone = (await this.#everything()).filter(({ key }) => !matched.has(key));
    this.report.unmatchedRights = alone.length;
    const before: undefined[] = new Array(this.#position).fill(undefined);
    for (let start = 0; start < alone.length; start += batchRows) {
      const rows = alone.slice(start, start + batchRows).map((right) => ({
        hit: undefined,
        rights: [...before, right],
      }));
      yield rows;
      await this.#turn();
    }
  }

  async #finder(batch: readonly JoinedRow[]): Promise<FindRights> {
    const { left, operator, rightField } = this.#join;
    if (operator !== 'eq') return this.#comparing();
    const values = new Map(batch.flatMap((row) => leftValues(row, left).map((value) => [nameOfValue(value), value])));
    const looked = this.#all ? undefined : this.#lookUp([...values.values()]);
    if (!looked) return this.#hashed();
    const rows = await looked;
    this.report.rightRows += rows.length;
    return this.#findIn(hashOf(rows, rightField, this.#nameOf));
  }

  /** By keys or an index where that looks at fewer rows than reading all of them; undefined where it does not. */
  #lookUp(values: readonly Scalar[]): Promise<RightRow[]> | undefined {
    const { left, rightField, hint, type } = this.#join;
    const right = this.#right;
    const note = (strategy: StageReport['strategy'], access: StageReport['access'], reason: string) =>
      Object.assign(this.report, { strategy, access, reason });
    if (type === 'right') {
      note('broadcast', 'hash', 'a right join needs every row of the right side');
      return undefined;
    }
    if (hint === 'broadcast' || hint === 'shuffle') {
      const reason = hint === 'shuffle' ? 'as hinted; one node has nothing to shuffle' : 'as hinted';
      note('broadcast', 'hash', reason);
      return undefined;
    }
    const rows = right.rows;
    const isFew = rows !== undefined && rows <= Math.min(limits.joinRightRowsMax, values.length * rowsPerLookup);
    if (isFew && hint === undefined) {
      note('broadcast', 'hash', `${rows} rows are read faster than ${values.length} values are looked up`);
      return undefined;
    }
    const reason = hint ? 'as hinted' : `${values.length} values of ${rows ?? 'many'} rows`;
    if (rightField === '_id') {
      const byKeys = right.byKeys([...new Set(values.flatMap((value) => keyOfValue(value) ?? []))]);
      if (byKeys) note('index_lookup', 'key', reason);
      else note('broadcast', 'hash', 'rows of this right side cannot be found by key');
      return byKeys;
    }
    const byValues = right.byValues(rightField, left.path === '_id' ? values.flatMap(asInDocuments) : values);
    if (byValues) note('index_lookup', 'index', reason);
    else note('broadcast', 'hash', `no index finds every row by "${rightField}"`);
    return byValues;
  }

  async #hashed(): Promise<FindRights> {
    this.#byValue ??= hashOf(await this.#everything(), this.#join.rightField, this.#nameOf);
    return this.#findIn(this.#byValue);
  }

  /** Where one side is a key, a number of the other is that of its digits. */
  readonly #asKey = (value: Scalar): Scalar => {
    const { left, rightField } = this.#join;
    return left.path === '_id' || rightField === '_id' ? (keyOfValue(value) ?? value) : value;
  };

  readonly #nameOf = (value: Scalar): string => nameOfValue(this.#asKey(value));

  #findIn(byValue: ReadonlyMap<string, readonly RightRow[]>): FindRights {
    const { left } = this.#join;
    return (row) => {
      const names = leftValues(row, left).map(this.#nameOf);
      const [first] = names;
      if (first === undefined) return [];
      if (names.length === 1) return byValue.get(first) ?? [];
      const found = new Map(names.flatMap((name) => (byValue.get(name) ?? []).map((right) => [right.key, right])));
      return [...found.values()].sort((one, other) => compareKeys(one.key, other.key));
    };
  }

  async #comparing(): Promise<FindRights> {
    const { left, operator, rightField } = this.#join;
    const rows = await this.#everything();
    Object.assign(this.report, { access: 'comparison', reason: `"${operator}" compares every pair of rows` });
    const asCompared = operator === 'neq' ? this.#asKey : (value: Scalar) => value;
    this.#values ??= rows.map((row) => rightValues(row, rightField).map(asCompared));
    const values = this.#values;
    const count = values.reduce((sum, { length }) => sum + length, 0);
    return (row) => {
      const lefts = leftValues(row, left).map(asCompared);
      const comparisons = Math.max(rows.length, lefts.length * count);
      this.#comparisons.all += comparisons;
      this.#comparisons.since += comparisons;
      if (this.#comparisons.all > limits.joinComparisonsMax) {
        const message = `join: "${operator}" may compare at most ${limits.joinComparisonsMax} pairs of values; narrow a side`;
        throw new ServiceError('limit_exceeded', message);
      }
      return rows.filter((_, at) => lefts.some((one) => values[at]?.some((other) => isRelated(one, operator, other))));
    };
  }

  async #everything(): Promise<readonly RightRow[]> {
    if (!this.#all) {
      this.#all = await this.#right.all();
      this.report.rightRows += this.#all.length;
    }
    return this.#all;
  }
}

/** Rows whose values narrow a search. */
const restrictingRowsMax = 1_000;

/** A key is also found by the number of its digits. */
function asInDocuments(key: Scalar): Scalar[] {
  const number = Number(key);
  return Number.isFinite(number) && String(number) === key ? [key, number] : [key];
}

/** Rows that are read in the time of looking one value up. */
const rowsPerLookup = 4;

function extended({ hit, rights }: JoinedRow, right: RightRow | undefined): JoinedRow {
  return { hit, rights: [...rights, right] };
}

function hashOf(rows: readonly RightRow[], field: string, nameOf: (value: Scalar) => string): Map<string, RightRow[]> {
  const byValue = new Map<string, RightRow[]>();
  for (const row of rows) {
    for (const name of new Set(rightValues(row, field).map(nameOf))) {
      const same = byValue.get(name);
      if (same) same.push(row);
      else byValue.set(name, [row]);
    }
  }
  return byValue;
}
