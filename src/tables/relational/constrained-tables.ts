import { type Caller, rowFiltersOf } from '../../access/principal.ts';
import type { ConstrainedTable } from '../../storage/constrained-table.ts';
import type { Table } from '../table.ts';
import { relationalColumns } from './relational-schema.ts';

/**
 * The relational tables that a write to these may read or change: those, those that they name in references, those that
 * name them, and so on. Empty when none of the written tables is relational.
 */
export function constrainedTables(written: readonly Table[], all: () => readonly Table[]): Table[] {
  if (!written.some(hasColumns)) return [];
  const relational = all().filter(hasColumns);
  const found = new Set(written.filter(hasColumns));
  for (const table of found) {
    const named = new Set(referencesOf(table).map((reference) => reference.table));
    for (const other of relational) {
      const names = referencesOf(other).some((reference) => reference.table === table.name);
      if (names || named.has(other.name)) found.add(other);
    }
  }
  return [...found];
}

/** Tables that name this one in their references, itself left out. */
export function tablesNaming(name: string, all: readonly Table[]): Table[] {
  return all.filter((table) => table.name !== name && referencesOf(table).some((each) => each.table === name));
}

/** The table as the writer checks it when the caller writes. */
export function constraintsOf(table: Table, caller: Caller): ConstrainedTable {
  const columns = relationalColumns(table.settings.schema);
  return {
    name: table.name,
    rangeIds: table.ranges.map(({ rangeId }) => rangeId),
    unique: columns.filter(({ isUnique }) => isUnique).map(({ name, type }) => ({ name, isText: type === 'string' })),
    references: columns.flatMap(({ name: column, references }) => (references ? [{ column, ...references }] : [])),
    isFiltered: rowFiltersOf(caller, table.name).length > 0,
  };
}

function hasColumns(table: Table): boolean {
  return relationalColumns(table.settings.schema).length > 0;
}

function referencesOf(table: Table) {
  return relationalColumns(table.settings.schema).flatMap(({ references }) => references ?? []);
}
