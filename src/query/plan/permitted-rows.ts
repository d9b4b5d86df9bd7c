import type { Caller } from '../../access/principal.ts';
import { synonymsOf } from '../request/synonyms.ts';
import type { SearchableTable } from '../searchable-table.ts';
import type { NativePlan } from './native-plan.ts';
import { planFilter } from './query-plan.ts';
import { readRowFilters } from './row-filter.ts';

type FilteredTable = Pick<SearchableTable, 'name' | 'ttlDurationMs' | 'textIndex' | 'settings'>;

/**
 * The condition on the documents of a table that the caller may see; undefined where it may see all of them. Fails with
 * `invalid_query` where a row filter cannot be read.
 */
export function permittedRows(
  { name, ttlDurationMs, textIndex, settings }: FilteredTable,
  caller: Caller,
  nowMs: number,
): NativePlan | undefined {
  const rowFilters = readRowFilters(caller, name);
  const synonyms = synonymsOf(settings.schema);
  return planFilter(undefined, { ttlDurationMs, nowMs, synonyms, textIndex, rowFilters });
}
