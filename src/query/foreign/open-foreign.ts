import type { Caller } from '../../access/principal.ts';
import type { ForeignDatabase } from '../../connections/foreign/foreign-database.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { PlanNode } from '../plan/plan-nodes.ts';
import type { ForeignSource } from './foreign-request.ts';
import { ForeignTable } from './foreign-table.ts';

/** A table of a connection. Fails with `connection_not_found` or `forbidden`. */
export type FindForeign = (connection: string, table: string, caller: Caller) => ForeignDatabase;

interface ForeignScope {
  /** Undefined where the database was opened without connections. */
  readonly foreign: FindForeign | undefined;
  readonly caller: Caller;
}

interface ForeignRows {
  readonly filter: PlanNode | undefined;
  readonly keyPrefix: string | undefined;
  readonly limit?: number | undefined;
}

/** Opens a table of a database elsewhere under the caller's own grant for it. */
export async function openForeign(
  source: ForeignSource,
  { filter, keyPrefix, limit }: ForeignRows,
  { foreign, caller }: ForeignScope,
): Promise<ForeignTable> {
  if (!foreign) {
    const message = '"foreign_sources" needs connections, and the database was opened without any';
    throw new ServiceError('not_implemented', message);
  }
  const database = foreign(source.connection, source.table, caller);
  return new ForeignTable({ database, source, columns: await database.columns(), filter, keyPrefix, limit });
}
