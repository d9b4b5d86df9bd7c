import type { AccessLevel } from '../../access/grants.ts';
import {
  type Caller,
  requireAdmin,
  requireInference,
  requireSomeModel,
  requireTable,
  requireUser,
} from '../../access/principal.ts';
import { tableNotFound } from '../../tables/table.ts';

/** The callers that a route admits. */
export type RouteAccess =
  /** Anybody, without a credential: probes and documentation. */
  | 'open'
  /** Anybody who is known. */
  | 'authenticated'
  /** As `authenticated`; the tables that it reaches are checked where each is looked up. */
  | 'tables'
  /** An administrator of the table in the path, which need not exist. */
  | 'new-table'
  /** A global administrator. */
  | 'admin'
  /** The table in the path. */
  | { readonly table: AccessLevel }
  | { readonly inference: 'read' | 'write' }
  /** The user in the path. */
  | { readonly user: AccessLevel };

/**
 * Checks a caller before anything of its request is read. Throws `forbidden`, and `table_not_found` for hidden tables. A route
 * that says which models a body names is open to whoever may use, or manage, some model.
 */
export function requireAccess(
  { access, models }: { readonly access: RouteAccess; readonly models?: unknown },
  caller: Caller,
  params: Readonly<Record<string, string>>,
): void {
  const { table = '' } = params;
  if (access === 'admin') requireAdmin(caller);
  else if (access === 'new-table') requireTable(caller, table, 'admin');
  else if (typeof access === 'object' && 'inference' in access && models !== undefined)
    requireSomeModel(caller, access.inference);
  else if (typeof access === 'object' && 'inference' in access) requireInference(caller, access.inference);
  else if (typeof access === 'object' && 'user' in access) requireUser(caller, params.user ?? '', access.user);
  else if (typeof access === 'object') requireTable(caller, table, access.table, tableNotFound);
}
