import type { Caller } from '../../access/principal.ts';
import { must } from '../../lib/assert.ts';
import type { ReadSetItem } from '../../protocol/database/writes.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ReadAssertion } from '../../storage/write-request.ts';
import type { TableLookup } from '../table-lookup.ts';
import { intervalOf } from './frame-split.ts';

/** An item of a read set as the commit checks it; of a table under a row filter, as `PermittedWrites` does. */
export function readAssertion(tables: TableLookup, item: ReadSetItem, caller: Caller): ReadAssertion {
  const table = tables.get(item.table, caller, 'read');
  checkDocumentKey(item.key);
  if (!/^\d{1,16}$/.test(item.version)) {
    throw new ServiceError('invalid_request', '"version" in "read_set" must be the decimal text of a lookup header');
  }
  const range = must(table.ranges[intervalOf(item.key, table.ranges)], 'intervals cover every key');
  return { rangeId: range.rangeId, key: item.key, version: Number(item.version), table: item.table };
}

/** Whether one of these documents was not as it had been read. */
export function isConflictOf(error: unknown, read: readonly ReadAssertion[]): boolean {
  if (!(error instanceof ServiceError) || error.code !== 'transaction_conflict') return false;
  const { key } = error.details ?? {};
  return read.some((assertion) => assertion.key === key);
}
