/** The documents of a range, and what of them is in the write-ahead log yet. */
export const documentsPath = 'documents.db';
export const documentsLogPath = 'documents.db-wal';

const indexPath = /^indexes\/([1-9]\d{0,13})\/([A-Za-z0-9_-][A-Za-z0-9._-]{0,199})$/;

/** A file of an index by the index's incarnation; undefined for what is none. */
export function readIndexPath(path: string): { incarnation: number; file: string } | undefined {
  const found = indexPath.exec(path);
  return found ? { incarnation: Number(found[1]), file: String(found[2]) } : undefined;
}

/** Whether a range's image may have a file of this path. */
export function isImagePath(path: string): boolean {
  return path === documentsPath || path === documentsLogPath || readIndexPath(path) !== undefined;
}
