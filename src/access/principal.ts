import { ServiceError } from '../protocol/service-error.ts';
import { type AccessLevel, covers, coversEverything, coversInference, type Grant } from './grants.ts';

/** Who asks: somebody with grants, or, while there is no authentication, everyone. */
export type Principal =
  | { readonly kind: 'everyone' }
  | { readonly kind: 'granted'; readonly name: string; readonly grants: readonly Grant[] };

/** Filters by table, or `*` for all: only documents that match exist for a caller. Each is a query node. */
export type RowFilters = Readonly<Record<string, object>>;

/** On whose behalf a service works. Every method of a service that a request can reach takes one. */
export interface Caller {
  readonly principal: Principal;
  /** In the log of everything that is done for the caller. */
  readonly requestId: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly rowFilter: RowFilters | undefined;
}

/** May do everything: nobody is asked for a credential. */
export const everyone: Principal = { kind: 'everyone' };

/** The server itself, when it does something that no request asked for. */
export function serverCaller(requestId: string, signal: AbortSignal): Caller {
  return { principal: everyone, requestId, signal, rowFilter: undefined };
}

/** The name of a principal; empty for everyone. */
export function nameOf(principal: Principal): string {
  return principal.kind === 'everyone' ? '' : principal.name;
}

/** Whether the caller may know that the table exists. */
export function seesTable({ principal }: Caller, table: string): boolean {
  return principal.kind === 'everyone' || covers(principal.grants, 'table', table, undefined);
}

/**
 * Throws `forbidden` where the grants for a table are too small. Row filters are refused whole until every read obeys
 * them (`not_implemented`): a filter that one read forgets shows what it hides.
 */
export function requireTable({ principal, rowFilter }: Caller, table: string, level: AccessLevel): void {
  if (rowFilter !== undefined) throw new ServiceError('not_implemented', 'row filters are not built yet');
  if (principal.kind === 'everyone' || covers(principal.grants, 'table', table, level)) return;
  throw forbidden(`${level} access to table "${table}"`);
}

export function requireInference({ principal }: Caller, level: 'read' | 'write'): void {
  if (principal.kind === 'everyone' || coversInference(principal.grants, level)) return;
  throw forbidden(`${level} access to inference`);
}

export function requireAdmin({ principal }: Caller): void {
  if (principal.kind === 'everyone' || coversEverything(principal.grants)) return;
  throw forbidden('an administrator');
}

function forbidden(needed: string): ServiceError {
  return new ServiceError('forbidden', `this needs ${needed}`);
}
