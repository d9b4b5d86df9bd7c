import { limits } from '../../config/limits.ts';
import type { TableSchema } from '../../engine/table-schema.ts';
import { buildFrame, scanWrite, sectionEntries } from '../../engine/write-frame.ts';

/** A row as it is to be stored. */
interface Row {
  readonly key: string;
  /** UTF-8 JSON object. */
  readonly body: Uint8Array;
}

/** Fails with `validation_failed` unless the rows, of different keys, match the schema. */
export async function checkRows(schema: TableSchema, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  const parts: (string | Uint8Array)[] = ['{"inserts":{'];
  for (const [at, { key, body }] of rows.entries()) parts.push(`${at === 0 ? '' : ','}${JSON.stringify(key)}:`, body);
  parts.push('}}');
  const bytes = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  const scanned = await scanWrite(bytes, 'batch');
  const { keyBytesMax } = limits;
  await buildFrame(bytes, sectionEntries(scanned, 0), { timestampMs: 0, ttlField: '_timestamp', keyBytesMax }, schema);
}
