import type { TransformedRows } from '../../enrichment/precompute.ts';
import { type DocumentFrame, readFrame, rowKind } from '../../lib/document-frame.ts';
import { isRelational } from '../relational/relational-schema.ts';
import type { Table } from '../table.ts';
import type { TableWrites } from './table-writes.ts';

export function isRelationalTable({ settings }: Table): boolean {
  return isRelational(settings.schema);
}

/** The writer knows no schema: what transforms leave of relational rows is checked before. */
export function transformsRows({ table, writes }: TableWrites): boolean {
  if (!isRelationalTable(table)) return false;
  return writes.some(({ frame }) => {
    const rows = frame && readFrame(frame);
    for (let row = 0; rows && row < rows.rowCount; row += 1) if (rows.kind(row) === rowKind.transform) return true;
    return false;
  });
}

/** The rows as transforms leave them; a row that one deletes is not among them. */
export function rowsLeft(rows: DocumentFrame, left: TransformedRows) {
  return [...left].flatMap(([row, document]) => (document ? [{ key: rows.key(row), body: document.body }] : []));
}
