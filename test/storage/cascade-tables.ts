import { must } from '../../src/lib/assert.ts';
import type { ConstrainedTable } from '../../src/storage/constrained-table.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import type { WriteRequest } from '../../src/storage/write-request.ts';
import { createTable, frameOf, group } from './storage-fixture.ts';

export const authorCount = 5;

/** Authors in one range, books and notes in three: books go with their author, and notes are left without their book. */
export async function fillTables(storage: Storage): Promise<void> {
  await createTable(storage, 'authors');
  await createTable(storage, 'books', 3);
  await createTable(storage, 'notes', 3);
  const authors = Array.from({ length: authorCount }, (_, author) => [`a${author}`, {}] as const);
  const writes = [
    { rangeId: rangesOf(storage, 'authors')[0] ?? 0, frame: frameOf({ puts: Object.fromEntries(authors) }) },
  ];
  for (const [at, rangeId] of rangesOf(storage, 'books').entries()) {
    const books = authors.map(([author]) => [`r${at}${author}`, { author }] as const);
    writes.push({ rangeId, frame: frameOf({ puts: Object.fromEntries(books) }) });
  }
  for (const [at, rangeId] of rangesOf(storage, 'notes').entries()) {
    const notes = authors.map(([author]) => [`r${at}${author}`, { book: `r${(at + 1) % 3}${author}`, n: at }] as const);
    writes.push({ rangeId, frame: frameOf({ puts: Object.fromEntries(notes) }) });
  }
  await storage.append(group(writes, { constrained: constraintsOf(storage) }));
}

export function rangesOf(storage: Storage, name: string): number[] {
  return must(storage.catalog.table(name), 'no table').ranges.map(({ rangeId }) => rangeId);
}

export function constraintsOf(storage: Storage): ConstrainedTable[] {
  const table = (name: string) => ({ name, rangeIds: rangesOf(storage, name), unique: [], references: [] });
  return [
    table('authors'),
    { ...table('books'), references: [{ column: 'author', table: 'authors', onDelete: 'cascade' }] },
    { ...table('notes'), references: [{ column: 'book', table: 'books', onDelete: 'set_null' }] },
  ];
}

export function deletionOf(storage: Storage, author: number, constrained: ConstrainedTable[]): WriteRequest {
  const rangeId = rangesOf(storage, 'authors')[0] ?? 0;
  return group([{ rangeId, frame: frameOf({ deletes: [`a${author}`] }) }], { constrained, requestId: `d${author}` });
}
