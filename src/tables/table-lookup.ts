import type { AccessLevel } from '../access/grants.ts';
import type { Caller } from '../access/principal.ts';
import type { Table } from './table.ts';

/**
 * The only way from a name to a table. Throws `table_not_found`, also for a table that the caller may not know of, and
 * `forbidden` where the caller's grants are too small.
 */
export interface TableLookup {
  get(name: string, caller: Caller, level: AccessLevel): Table;
  /** Every table; for what is done on behalf of the server. */
  all(): readonly Table[];
}
