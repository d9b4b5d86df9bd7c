import { TableSchema as CompiledSchema } from '../../engine/table-schema.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import type { Table, TableLease } from '../table.ts';
import { intervalOf } from '../writes/frame-split.ts';
import { type RelationalColumn, relationalColumns } from './relational-schema.ts';
import { rowPages } from './row-pages.ts';
import { checkRows } from './row-rules.ts';

type Row = Record<string, unknown>;

/** A table whose rows others name, held open. */
interface NamedTable {
  readonly table: Table;
  readonly lease: TableLease;
}

/**
 * Fails with `constraint_violation` unless every row that is stored obeys the columns of `next`: what the schema says of a row,
 * values that must be unique, and rows that have to be there. The caller keeps writes of rows out meanwhile.
 */
export async function checkColumnChange(
  table: Table,
  next: TableSchema,
  named: (name: string) => Table,
  signal: AbortSignal,
): Promise<void> {
  if (Bun.deepEquals(table.settings.schema.document_schemas, next.document_schemas, true)) return;
  const known = relationalColumns(table.settings.schema);
  const fresh = relationalColumns(next).filter((column) => !known.some((each) => Bun.deepEquals(each, column, true)));
  using compiled = await CompiledSchema.compile(next);
  using leases = new DisposableStack();
  const targets = new Map<string, NamedTable>();
  for (const { references } of fresh) {
    if (!references || targets.has(references.table)) continue;
    const target = references.table === table.name ? table : named(references.table);
    targets.set(target.name, { table: target, lease: leases.use(await target.lease()) });
  }
  const rules = new NewRules(table.name, fresh, targets);
  const { ranges } = leases.use(await table.lease());
  for (const { stored } of ranges) {
    for (const rows of rowPages(stored.documents)) {
      signal.throwIfAborted();
      await checkRows(compiled, rows).catch((error: unknown) => {
        throw refused(table.name, error);
      });
      for (const row of rows) rules.check(row);
      await yieldToEventLoop();
    }
  }
}

/** The rules of the columns that the change adds or alters. */
class NewRules {
  readonly #table: string;
  readonly #columns: readonly RelationalColumn[];
  readonly #targets: ReadonlyMap<string, NamedTable>;
  /** By column, the values so far. */
  readonly #values = new Map<string, Set<unknown>>();

  constructor(table: string, columns: readonly RelationalColumn[], targets: ReadonlyMap<string, NamedTable>) {
    this.#table = table;
    this.#columns = columns.filter(({ isUnique, references }) => isUnique || references);
    this.#targets = targets;
  }

  check({ key, body }: StoredDocument): void {
    if (this.#columns.length === 0) return;
    const row = JSON.parse(new TextDecoder().decode(body)) as Row;
    for (const { name, isUnique, references } of this.#columns) {
      const value = row[name];
      if (value === undefined || value === null) continue;
      if (isUnique && this.#isTaken(name, value)) {
        throw violation(this.#table, key, `"${name}" is to be unique and another row has the same`);
      }
      if (references && !this.#isThere(references.table, String(value))) {
        throw violation(this.#table, key, `"${name}" names a row that "${references.table}" does not have`);
      }
    }
  }

  #isTaken(column: string, value: unknown): boolean {
    const values = this.#values.get(column) ?? new Set();
    this.#values.set(column, values);
    const before = values.size;
    return values.add(value).size === before;
  }

  #isThere(name: string, key: string): boolean {
    const target = this.#targets.get(name);
    const range = target?.lease.ranges[intervalOf(key, target.table.ranges)];
    return range?.stored.documents.get(key) !== undefined;
  }
}

function refused(table: string, error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code !== 'validation_failed') return error;
  const message = `the columns of "${table}" cannot be changed while rows break their rules: ${error.message}`;
  return new ServiceError('constraint_violation', message, { details: { table, ...error.details } });
}

function violation(table: string, key: string, what: string): ServiceError {
  const name = JSON.stringify(key.slice(0, 64));
  const message = `the columns of "${table}" cannot be changed while the row ${name} breaks their rules: ${what}`;
  return new ServiceError('constraint_violation', message, { details: { table, key } });
}
