import type { ColumnKind, ForeignColumn, SqlDialect, SqlValue } from '../../connections/foreign/foreign-database.ts';
import { invalidQuery } from '../nodes/query-members.ts';
import type { PlanNode, RangeNode } from '../plan/plan-nodes.ts';

/** Puts a statement together: names are quoted, values are parameters, and nothing of a request is part of its text. */
export class SqlWriter {
  readonly #dialect: SqlDialect;
  readonly #columns: ReadonlyMap<string, ForeignColumn>;
  readonly #keyColumn: string;
  readonly values: SqlValue[] = [];

  constructor(dialect: SqlDialect, columns: readonly ForeignColumn[], keyColumn: string) {
    this.#dialect = dialect;
    this.#columns = new Map(columns.map((column) => [column.name, column]));
    this.#keyColumn = keyColumn;
  }

  /** A name, or names with dots between them. */
  name(name: string): string {
    const quote = this.#dialect === 'mysql' ? '`' : '"';
    return name
      .split('.')
      .map((part) => `${quote}${part.replaceAll(quote, quote + quote)}${quote}`)
      .join('.');
  }

  /** A column whose name may have dots. */
  columnName(name: string): string {
    const quote = this.#dialect === 'mysql' ? '`' : '"';
    return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`;
  }

  get key(): string {
    return this.columnName(this.#keyColumn);
  }

  /** The order of rows, those without a value last in either direction. */
  order(field: string, desc: boolean): string {
    const name = this.columnName(this.#column(field).name);
    return `(${name} IS NULL), ${name}${desc ? ' DESC' : ''}`;
  }

  value(value: SqlValue): string {
    this.values.push(value);
    return this.#dialect === 'postgres' ? `$${this.values.length}` : '?';
  }

  /** A parameter as what the column holds: PostgreSQL would else take it for exactly its type, and refuse what does not fit. */
  #fitting({ kind }: ForeignColumn, given: SqlValue): string {
    const value = kind === 'single' && typeof given === 'number' ? asSingle(given) : given;
    const type = this.#dialect === 'postgres' ? postgresTypes[kind] : undefined;
    if (type === undefined) return this.value(value);
    if (typeof value !== 'string' || kind === 'text') return `CAST(${this.value(value)} AS ${type})`;
    return `CAST(CAST(${this.value(value)} AS text) AS ${isLong(value) ? type : 'numeric'})`;
  }

  /** Rows of which the column has one of the values. A value of another type is none that the column may have. */
  isOneOf(field: string, values: readonly (string | number | boolean)[]): string {
    const column = this.#column(field);
    const isFraction = (value: unknown) => typeof value === 'number' && !Number.isSafeInteger(value);
    const fitting = values.filter(
      (value) =>
        (this.#mayHave(column, value) && !(column.kind === 'integer' && isFraction(value))) ||
        this.#mayKeepText(column.kind, value),
    );
    if (fitting.length === 0) return none;
    return `${this.columnName(column.name)} IN (${fitting.map((value) => this.#fitting(column, value)).join(', ')})`;
  }

  /** Rows of these keys, which are text. */
  hasKey(keys: readonly string[]): string {
    const { kind } = this.#column('_id');
    if (kind === 'text') return this.isOneOf('_id', keys);
    if (kind === 'integer' || kind === 'number' || kind === 'single') {
      const numbers = keys.filter((key) => integer.test(key) || fraction.test(key) || this.#mayKeepText(kind, key));
      const isText = (key: string) =>
        this.#mayKeepText(kind, key) || (kind !== 'single' && decimal.test(key) && !isHeld(Number(key)));
      return this.isOneOf(
        '_id',
        numbers.map((key) => (isText(key) ? key : Number(key))),
      );
    }
    return keys.length === 0 ? none : `${this.#keyText()} IN (${keys.map((key) => this.value(key)).join(', ')})`;
  }

  keyBeginsWith(prefix: string): string {
    return `SUBSTR(${this.#keyText()}, 1, ${[...prefix].length}) = ${this.value(prefix)}`;
  }

  #keyText(): string {
    return `CAST(${this.key} AS ${this.#dialect === 'mysql' ? 'CHAR' : 'TEXT'})`;
  }

  /** A condition that says what the node says. Fails with `invalid_query` for nodes that only an index can answer. */
  condition(node: PlanNode): string {
    switch (node.kind) {
      case 'match_all':
        return all;
      case 'match_none':
        return none;
      case 'term':
        if (node.field === '_id' && typeof node.value !== 'boolean') return this.hasKey([String(node.value)]);
        return this.isOneOf(fieldOf(node.field), [node.value]);
      case 'bool_field':
        return this.isOneOf(node.field, [node.value]);
      case 'ids':
        return this.hasKey(node.ids);
      case 'exists':
        return `${this.columnName(this.#column(node.field).name)} IS NOT NULL`;
      case 'range':
        return this.#range(node);
      case 'bool':
        return this.#bool(node);
      default:
        throw invalidQuery(
          'filter_query',
          'a foreign table can be asked by term, terms, range, ids, exists and bool nodes only',
        );
    }
  }

  #range({ field, gt, gte, lt, lte }: RangeNode): string {
    const column = this.#column(field);
    const bounds = [
      ['>', gt],
      ['>=', gte],
      ['<', lt],
      ['<=', lte],
    ] as const;
    const conditions = bounds.flatMap(([operator, bound]) => {
      if (bound === undefined) return [];
      if (!this.#mayHave(column, bound)) return [none];
      const value = column.kind === 'integer' && typeof bound === 'number' ? wholeBound(operator, bound) : bound;
      return [`${this.columnName(column.name)} ${operator} ${this.#fitting(column, value)}`];
    });
    return `(${conditions.join(' AND ')})`;
  }

  #bool({ must, filter, must_not, should, min_should }: Extract<PlanNode, { kind: 'bool' }>): string {
    const conditions = [...must, ...filter].map((each) => this.condition(each));
    // A condition that is unknown for a null does not hold.
    for (const each of must_not) conditions.push(`NOT COALESCE(${this.condition(each)}, ${none})`);
    if (should.length > 0 && (min_should ?? 1) > 0) {
      if ((min_should ?? 1) === 1) conditions.push(`(${should.map((each) => this.condition(each)).join(' OR ')})`);
      else {
        const hits = should.map((each) => `CASE WHEN ${this.condition(each)} THEN 1 ELSE 0 END`);
        conditions.push(`(${hits.join(' + ')}) >= ${Number(min_should)}`);
      }
    }
    return conditions.length === 0 ? all : `(${conditions.join(' AND ')})`;
  }

  /** Rows show a number as a text where a number of ours does not hold all of its digits. */
  #mayHave({ kind }: ForeignColumn, value: string | number | boolean): boolean {
    if (kind === 'other') return true;
    if (kind === 'text') return typeof value === 'string';
    if (kind === 'boolean') return typeof value === 'boolean';
    if (typeof value !== 'string' || kind === 'single') return typeof value === 'number';
    if (kind === 'number') return decimal.test(value) && !isHeld(Number(value));
    return isLong(value) || (this.#dialect === 'mysql' && isLongUnsigned(value));
  }

  /** A column of numbers keeps a text in SQLite that does not look like one. */
  #mayKeepText(kind: ColumnKind, value: string | number | boolean): boolean {
    return this.#dialect === 'sqlite' && kind === 'number' && typeof value === 'string' && !numeric.test(value);
  }

  #column(field: string): ForeignColumn {
    const name = field === '_id' ? this.#keyColumn : field;
    const column = this.#columns.get(name);
    if (column) return column;
    throw invalidQuery('foreign_sources', `the foreign table has no column "${name.slice(0, 64)}"`);
  }
}

const postgresTypes: Partial<Record<ColumnKind, string>> = {
  integer: 'bigint',
  number: 'numeric',
  single: 'double precision',
  text: 'text',
  boolean: 'boolean',
};

const all = '(1 = 1)';
const none = '(1 = 0)';

function fieldOf(field: string | undefined): string {
  if (field !== undefined) return field;
  throw invalidQuery('filter_query', 'a foreign table can only be asked about columns: name a "field"');
}

/** Numbers as keys are written. */
const integer = /^(?:0|-?[1-9]\d{0,19})$/;
const fraction = /^-?\d+(?=[.e])(?:\.\d+)?(?:e[+-]\d+)?$/;

const decimal = /^-?\d+(?:\.\d+)?$/;
/** Texts that SQLite takes for numbers. */
const numeric = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

/** Whether a text is an integer beyond 2^53, of 64 bits at most. */
function isLong(text: string): boolean {
  if (!integer.test(text) || Number.isSafeInteger(Number(text))) return false;
  return BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

function isLongUnsigned(text: string): boolean {
  if (!integer.test(text) || Number.isSafeInteger(Number(text))) return false;
  return BigInt.asUintN(64, BigInt(text)) === BigInt(text);
}

/** Whether a number holds what a database has as text. */
export function isHeld(number: number): boolean {
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number));
}

/** The number of 32 bits that is shown as this one, which databases compare by all of its digits. */
function asSingle(value: number): number {
  const single = Math.fround(value);
  return Number.isFinite(single) ? single : value;
}

/** The whole number that bounds whole numbers as this one does; by its digits where it is beyond 2^53. */
function wholeBound(operator: '>' | '>=' | '<' | '<=', bound: number): number | string {
  const whole = operator === '>' || operator === '<=' ? Math.floor(bound) : Math.ceil(bound);
  return Number.isSafeInteger(whole) ? whole : String(BigInt(whole));
}
