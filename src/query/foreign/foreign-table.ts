import { limits } from '../../config/limits.ts';
import type { ForeignColumn, ForeignDatabase } from '../../connections/foreign/foreign-database.ts';
import { must } from '../../lib/assert.ts';
import { compareKeys } from '../../lib/key-order.ts';
import { MiB } from '../../lib/units.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { inSlices } from '../join/in-slices.ts';
import type { RightRow } from '../join/joined-row.ts';
import type { RightSide } from '../join/right-side.ts';
import { RowBudget } from '../join/row-budget.ts';
import { invalidQuery } from '../nodes/query-members.ts';
import type { PlanNode } from '../plan/plan-nodes.ts';
import type { RequestedPage } from '../request/query-page.ts';
import type { ForeignSource } from './foreign-request.ts';
import { isHeld, SqlWriter } from './sql-filter.ts';

interface ForeignTableDeps {
  readonly database: ForeignDatabase;
  readonly source: ForeignSource;
  readonly columns: readonly ForeignColumn[];
  /** The condition on rows; undefined for all. */
  readonly filter: PlanNode | undefined;
  readonly keyPrefix: string | undefined;
  /** Only the first rows by key, in the order of the database. */
  readonly limit: number | undefined;
}

/** Values of one statement. */
const valuesMax = 1_000;

/**
 * How many rows the first statement asks for, how many times as many the next one may, and about how many characters it
 * should have: rows are counted and measured once they are here, and some are large.
 */
const firstRows = 100;
const growth = 4;
const pageChars = 4 * MiB;

/** A table of a database elsewhere: the right side of a join, or what a query asks. What it shows is what has committed there. */
export class ForeignTable implements RightSide {
  readonly #parts: ForeignTableDeps;
  /** Nobody has counted. */
  readonly rows = undefined;
  readonly isCurrent = true;

  constructor(parts: ForeignTableDeps) {
    this.#parts = parts;
    const { columns, source } = parts;
    const names = new Set(columns.map(({ name }) => name));
    const missing = [source.keyColumn, ...(source.columns ?? [])].find((name) => !names.has(name));
    if (missing === undefined) return;
    throw invalidQuery('foreign_sources', `the foreign table has no column "${missing.slice(0, 64)}"`);
  }

  /** A database would have to be asked for all of them. */
  async few(): Promise<undefined> {
    return undefined;
  }

  all(): Promise<RightRow[]> {
    return this.#select(() => []);
  }

  byKeys(keys: readonly string[]): Promise<RightRow[]> | undefined {
    if (this.#parts.limit !== undefined) return undefined;
    return inSlices(keys, valuesMax, (slice) => this.#select((writer) => [writer.hasKey(slice)]));
  }

  byValues(field: string, values: readonly (string | number | boolean)[]): Promise<RightRow[]> | undefined {
    if (this.#parts.limit !== undefined || !this.#comparesAlike(field)) return undefined;
    return inSlices(values, valuesMax, (slice) => this.#select((writer) => [writer.isOneOf(field, slice)]));
  }

  /** Whether the database takes for equal at least what a join does: of dates and such it has its own idea. */
  #comparesAlike(field: string): boolean {
    return this.#parts.columns.some(({ name, kind }) => name === field && kind !== 'other');
  }

  /** One page, in the order that is asked for and then in that of the keys, as the database compares. */
  async page({ sort, limit, offset }: Pick<RequestedPage, 'sort' | 'limit' | 'offset'>): Promise<RightRow[]> {
    const writer = this.#writer();
    const order = [...sort.map(({ field, desc }) => writer.order(field, desc)), writer.key].join(', ');
    const rows: RightRow[] = [];
    let chars = 0;
    for await (const row of this.#rows(writer, [], { order, limit, offset })) {
      rows.push(row);
      chars += row.text.length;
      if (chars <= limits.joinRightCharsMax) continue;
      const message = `a page of a foreign table has at most ${limits.joinRightCharsMax} characters; ask for fewer rows or columns`;
      throw new ServiceError('limit_exceeded', message);
    }
    return rows;
  }

  async count(): Promise<number> {
    const { database } = this.#parts;
    const writer = this.#writer();
    const statement = `SELECT COUNT(*) AS total FROM ${writer.name(database.table)} WHERE ${this.#conditions(writer, [])}`;
    await using reading = await database.open();
    const [counted] = await reading.select(statement, writer.values);
    return Number(must(counted, 'a row with the number').total);
  }

  async #select(conditionsOf: (writer: SqlWriter) => string[]): Promise<RightRow[]> {
    const writer = this.#writer();
    const budget = new RowBudget();
    const rows: RightRow[] = [];
    const limit = this.#parts.limit ?? limits.joinRightRowsMax + 1;
    const found = this.#rows(writer, conditionsOf(writer), { order: writer.key, limit, offset: 0 });
    for await (const row of found) budget.add(row, rows);
    return rows.sort((left, right) => compareKeys(left.key, right.key));
  }

  /** Rows in an order in which each has its place. Fails with `invalid_query` where two of them have the same key. */
  async *#rows(
    writer: SqlWriter,
    conditions: readonly string[],
    { order, limit, offset }: { order: string; limit: number; offset: number },
  ): AsyncGenerator<RightRow> {
    const { database, source, columns } = this.#parts;
    const shown = columns.filter(({ name }) => source.columns?.includes(name) ?? true);
    const names = new Set([source.keyColumn, ...shown.map(({ name }) => name)]);
    const statement = [
      `SELECT ${[...names].map((name) => writer.columnName(name)).join(', ')}`,
      `FROM ${writer.name(database.table)}`,
      `WHERE ${this.#conditions(writer, conditions)}`,
      `ORDER BY ${order}`,
      `LIMIT ${writer.value(limit)} OFFSET ${writer.value(offset)}`,
    ].join(' ');
    const parameters = writer.values.slice(0, -2);
    // A key has the digits that the database gives, but for a single, of which it gives some that are none of its own.
    const keyKind = columns.some(({ name, kind }) => name === source.keyColumn && kind === 'single')
      ? 'single'
      : 'other';
    const keys = new Set<string>();
    let chars = 0;
    await using reading = await database.open();
    for (let asked = Math.min(firstRows, limit); asked > 0; ) {
      const found = await reading.select(statement, [...parameters, asked, offset + keys.size]);
      for (const row of found) {
        const key = String(jsonOf(row[source.keyColumn], keyKind));
        if (keys.has(key)) throw notAKey(source.keyColumn);
        keys.add(key);
        const text = JSON.stringify(documentOf(row, shown));
        chars += text.length;
        yield { key, text };
      }
      if (found.length < asked) return;
      const fitting = Math.ceil((pageChars * keys.size) / chars);
      asked = Math.min(limit - keys.size, asked * growth, fitting);
    }
  }

  #writer(): SqlWriter {
    const { database, source, columns } = this.#parts;
    return new SqlWriter(database.dialect, columns, source.keyColumn);
  }

  /** Parameters are numbered as they are written: `more` comes before the others. */
  #conditions(writer: SqlWriter, more: readonly string[]): string {
    const { filter, keyPrefix } = this.#parts;
    return [
      ...more,
      `${writer.key} IS NOT NULL`,
      ...(filter ? [writer.condition(filter)] : []),
      ...(keyPrefix ? [writer.keyBeginsWith(keyPrefix)] : []),
    ].join(' AND ');
  }

  [Symbol.dispose](): void {
    // Connections belong to the pool.
  }
}

function notAKey(column: string): ServiceError {
  const what = `"${column}" is not a key: two rows have the same value; name a column in "key" that tells rows apart`;
  return invalidQuery('foreign_sources', what);
}

function documentOf(row: Readonly<Record<string, unknown>>, columns: readonly ForeignColumn[]): object {
  return Object.fromEntries(columns.map(({ name, kind }) => [name, jsonOf(row[name], kind)]));
}

/** Numbers that databases give as text are numbers, where a number holds all of their digits. */
function jsonOf(value: unknown, kind: ForeignColumn['kind']): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  // MySQL's `0000-00-00` is no date.
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (kind === 'single' && typeof value === 'number') return shortest(value);
  if ((kind !== 'number' && kind !== 'integer') || typeof value !== 'string') return value ?? null;
  const number = Number(value);
  return isHeld(number) ? number : value;
}

/** A number of 32 bits by the digits that tell it apart from others, as databases print it. */
function shortest(single: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const number = Number(single.toPrecision(digits));
    if (Math.fround(number) === single) return number;
  }
  return single;
}
