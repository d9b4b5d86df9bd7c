import { limits } from '../../config/limits.ts';
import type { ForeignColumn, ForeignDatabase } from '../../connections/foreign/foreign-database.ts';
import { must } from '../../lib/assert.ts';
import { compareKeys } from '../../lib/key-order.ts';
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
    const tail = `ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}`;
    const rows: RightRow[] = [];
    let chars = 0;
    for await (const row of this.#rows(writer, [], tail)) {
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
    const [counted] = await database.select(statement, writer.values);
    return Number(must(counted, 'a row with the number').total);
  }

  async #select(conditionsOf: (writer: SqlWriter) => string[]): Promise<RightRow[]> {
    const writer = this.#writer();
    const budget = new RowBudget();
    const rows: RightRow[] = [];
    const tail = `ORDER BY ${writer.key} LIMIT ${this.#parts.limit ?? limits.joinRightRowsMax + 1}`;
    for await (const row of this.#rows(writer, conditionsOf(writer), tail)) budget.add(row, rows);
    return rows.sort((left, right) => compareKeys(left.key, right.key));
  }

  /** Rows of one statement. Fails with `invalid_query` where two of them have the same key. */
  async *#rows(writer: SqlWriter, conditions: readonly string[], tail: string): AsyncGenerator<RightRow> {
    const { database, source, columns } = this.#parts;
    const shown = columns.filter(({ name }) => source.columns?.includes(name) ?? true);
    const names = new Set([source.keyColumn, ...shown.map(({ name }) => name)]);
    const statement = [
      `SELECT ${[...names].map((name) => writer.columnName(name)).join(', ')}`,
      `FROM ${writer.name(database.table)}`,
      `WHERE ${this.#conditions(writer, conditions)}`,
      tail,
    ].join(' ');
    const keys = new Set<string>();
    for (const found of await database.select(statement, writer.values)) {
      const key = String(jsonOf(found[source.keyColumn], 'other'));
      if (keys.has(key)) throw notAKey(source.keyColumn);
      keys.add(key);
      yield { key, text: JSON.stringify(documentOf(found, shown)) };
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
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if ((kind !== 'number' && kind !== 'integer') || typeof value !== 'string') return value ?? null;
  const number = Number(value);
  return isHeld(number) ? number : value;
}
