import type { RangeRecord } from '../catalog/catalog-records.ts';
import type { DataDirectory } from './data-directory.ts';

const header = 'SQLite format 3\0';

/**
 * Looks whether the file of each range is there and begins as it should, without opening any: zeros, a truncated or a lost
 * file are known soon after the start and not when somebody asks for a document. Calls `onDamaged` for each that is not
 * sound.
 */
export async function checkFileHeaders(
  directory: DataDirectory,
  ranges: readonly RangeRecord[],
  signal: AbortSignal,
  onDamaged: (range: RangeRecord) => void,
): Promise<void> {
  for (const range of ranges) {
    if (signal.aborted) return;
    const file = Bun.file(directory.documentsFile(range.rangeId, range.generation));
    const begins = await file
      .slice(0, header.length)
      .text()
      .catch(() => '');
    if (begins !== header) onDamaged(range);
  }
}
