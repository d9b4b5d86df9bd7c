import { catalogMigrations } from '../catalog/catalog-migrations.ts';
import { rangeMigrations } from '../range/range-migrations.ts';
import type { DataDirectory } from './data-directory.ts';
import { DataDirectoryError } from './data-directory-error.ts';
import { readIfPresent, writeDurably } from './durable-file.ts';

/**
 * Format of data directories that this release writes. A step of either file raises it: an earlier release, which reads the
 * format first, refuses the directory at its start, and not each range at its first use.
 */
const dataFormat = catalogMigrations.length + rangeMigrations.length;

/** Refuses a directory of a later format; touches nothing. Returns whether the directory has a format yet. */
export function checkDataFormat(directory: DataDirectory): boolean {
  const text = readIfPresent(directory.formatFile);
  if (text === undefined) return false;
  const format = parseFormat(text, directory);
  if (format <= dataFormat) return true;
  throw new DataDirectoryError(
    'newer_format',
    `${directory.root} has format ${format}; this release knows formats up to ${dataFormat}`,
    'start the release that wrote this directory, or a later one',
  );
}

/** Raises the format of a directory that has an earlier one; to be done before a step is applied to a file. */
export function raiseDataFormat(directory: DataDirectory): void {
  const text = readIfPresent(directory.formatFile);
  if (text !== undefined && parseFormat(text, directory) < dataFormat) writeDataFormat(directory);
}

export function writeDataFormat(directory: DataDirectory): void {
  writeDurably(directory.formatFile, `${JSON.stringify({ format: dataFormat })}\n`, 0o644);
}

function parseFormat(text: string, directory: DataDirectory): number {
  try {
    const content = JSON.parse(text) as { format?: unknown } | null;
    if (typeof content?.format === 'number' && Number.isSafeInteger(content.format)) return content.format;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new DataDirectoryError(
    'damaged',
    `${directory.formatFile} is not readable as a format`,
    `restore the file from a backup; it is {"format":${dataFormat}} for this release`,
  );
}
