import { ServiceError } from '../protocol/service-error.ts';
import {
  type AccessLevel,
  covers,
  coversEverything,
  coversInference,
  coversSomeModel,
  type Grant,
  includesGrant,
} from './grants.ts';

/** The caller: a subject with grants, or, while there is no authentication, everyone. */
export type Principal =
  | { readonly kind: 'everyone' }
  | {
      readonly kind: 'granted';
      /** Of the user, also where one of its keys was given. */
      readonly name: string;
      /** When the user was made, milliseconds since 1970: whoever is made later under its name is another. */
      readonly madeMs: number;
      readonly grants: readonly Grant[];
      /** Whether a key of the user was given, not its password; `Caller.keyId` says which. */
      readonly byKey?: boolean;
    };

/**
 * Filters by table, or `*` for every table: only documents that match exist for a caller. Each is a query node, or a list of
 * nodes that must all match; an empty list permits nothing.
 */
export type RowFilters = Readonly<Record<string, object>>;

/** On whose behalf a service works. Every method of a service that a request can reach takes one. */
export interface Caller {
  readonly principal: Principal;
  /** In the log of everything that is done for the caller. */
  readonly requestId: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly rowFilter: RowFilters | undefined;
  /** The key that was given; undefined with a password. Principals are shared by all keys with the same grants. */
  readonly keyId?: string | undefined;
  /** Hears of every table that the request uses, for the audit log. */
  noteTable?(table: string, level: AccessLevel): void;
  /** Hears of a thing that was made and has no name in the path, for the audit log: its kind, as routes call it, and its id. */
  noteMade?(kind: string, id: string): void;
}

/** May do everything: nobody is asked for a credential. */
export const everyone: Principal = { kind: 'everyone' };

/** May do nothing: who has yet to say who it is. */
export const nobody: Principal = { kind: 'granted', name: '', madeMs: 0, grants: [] };

/** The server itself, when it does something that no request asked for. */
export function serverCaller(requestId: string, signal: AbortSignal): Caller {
  return { principal: everyone, requestId, signal, rowFilter: undefined };
}

/** The name of a principal; empty for everyone. */
export function nameOf(principal: Principal): string {
  return principal.kind === 'everyone' ? '' : principal.name;
}

/**
 * By whom something is owned that outlives its request; empty for everyone. A user who is removed and made again under the same
 * name owns nothing of what was there before.
 */
export function ownerOf(principal: Principal): string {
  return principal.kind === 'everyone' ? '' : `${principal.name} ${principal.madeMs}`;
}

/** Whether the caller may know that the table exists. */
export function seesTable({ principal }: Caller, table: string): boolean {
  return principal.kind === 'everyone' || covers(principal.grants, 'table', table, undefined);
}

/** The filters that hold for a caller in a table: its own and the one for every table, both where there are both. */
export function rowFiltersOf({ rowFilter }: Caller, table: string): readonly object[] {
  if (rowFilter === undefined) return [];
  return [...new Set([table, '*'])].flatMap((name) => {
    const filter = Object.hasOwn(rowFilter, name) ? rowFilter[name] : undefined;
    if (!Array.isArray(filter)) return filter ?? [];
    return filter.length === 0 ? [{ match_none: {} }] : (filter as object[]);
  });
}

/**
 * Throws `forbidden` where the grants for a table are too small, or what `hidden` makes where the caller may not even know of
 * the table. A caller that sees only some of its documents does not administer it; what it writes is looked at document by
 * document (`tables/writes/permitted-writes.ts`).
 */
export function requireTable(
  caller: Caller,
  table: string,
  level: AccessLevel,
  hidden?: (table: string) => ServiceError,
): void {
  const { principal } = caller;
  const isCovered = principal.kind === 'everyone' || covers(principal.grants, 'table', table, level);
  if (!isCovered && hidden !== undefined && !seesTable(caller, table)) throw hidden(table);
  caller.noteTable?.(table, level);
  if (!isCovered) throw forbidden(`${level} access to table "${table}"`);
  if (level === 'admin') requireWholeTable(caller, table, 'admin access');
}

/** Throws `forbidden` where the caller has lost one of these tables, which `before` could read, or only write. */
export function requireKept({ principal }: Caller, before: Principal, tables: readonly string[]): void {
  if (principal.kind === 'everyone' || before.kind === 'everyone') return;
  const isLost = (table: string, level: 'read' | undefined) =>
    covers(before.grants, 'table', table, level) && !covers(principal.grants, 'table', table, level);
  const lost = tables.find((table) => isLost(table, 'read') || isLost(table, undefined));
  if (lost !== undefined) throw forbidden(`read access to table "${lost}"`);
}

/** Throws `forbidden` for a caller that sees only some of the table's documents: `what` would tell of the others. */
export function requireWholeTable(caller: Caller, table: string, what: string): void {
  if (rowFiltersOf(caller, table).length === 0) return;
  throw new ServiceError('forbidden', `${what} needs access to table "${table}" without a row filter`);
}

export function requireInference({ principal }: Caller, level: 'read' | 'write'): void {
  if (principal.kind === 'everyone' || coversInference(principal.grants, level)) return;
  throw forbidden(`${level} access to inference`);
}

/** Throws `forbidden` for a caller that may use no model at all; `requireModels` says whether it may use the ones it names. */
export function requireSomeModel({ principal }: Caller, level: 'read' | 'write' = 'read'): void {
  if (principal.kind === 'everyone' || coversSomeModel(principal.grants, level)) return;
  throw forbidden(`${level} access to inference`);
}

/** Throws `forbidden` for a caller that may use no model, neither by itself (`read`) nor through a connection (`write`). */
export function requireWorkWithModels({ principal }: Caller): void {
  if (principal.kind === 'everyone' || coversInference(principal.grants, 'write')) return;
  if (!coversSomeModel(principal.grants, 'read')) throw forbidden('read access to inference');
}

/** Whether the caller may use the model, and be told of it. */
export function seesModel({ principal }: Caller, model: string): boolean {
  return principal.kind === 'everyone' || coversInference(principal.grants, 'read', model);
}

/** Throws `forbidden` where the caller may not use, or manage, one of these models, whether there is such a model or not. */
export function requireModels(
  { principal }: Caller,
  models: readonly string[],
  level: 'read' | 'write' = 'read',
): void {
  if (principal.kind === 'everyone') return;
  const hidden = models.find((model) => !coversInference(principal.grants, level, model));
  if (hidden !== undefined) throw forbidden(`${level} access to inference with the model "${hidden}"`);
}

/** A caller that sees only some documents could give itself the others. */
export function requireAdmin({ principal, rowFilter }: Caller): void {
  const isAdmin = principal.kind === 'everyone' || coversEverything(principal.grants);
  if (!isAdmin || rowFilter !== undefined) throw forbidden('an administrator');
}

/**
 * Throws `forbidden` where the grants for a user are too small. A caller that gave a password may see itself (`read`) and change
 * its own password and keys (`write`); a key may not, or it could make itself a larger one.
 */
export function requireUser({ principal, rowFilter }: Caller, user: string, level: AccessLevel): void {
  if (principal.kind === 'everyone') return;
  if (principal.name === user && principal.byKey !== true && level !== 'admin') return;
  if (rowFilter === undefined && covers(principal.grants, 'user', user, level)) return;
  throw forbidden(`${level} access to user "${user}"`);
}

/** Throws `forbidden` where the caller would give away, or take over, more than it has itself. */
export function requireGrants({ principal }: Caller, grants: readonly Grant[]): void {
  if (principal.kind === 'everyone') return;
  const lacking = grants.find((grant) => !includesGrant(principal.grants, grant));
  if (lacking === undefined) return;
  const { level, resourceType, resource } = lacking;
  throw forbidden(`${level} access to "${resource}" of type "${resourceType}", since nobody gives more than it has`);
}

function forbidden(needed: string): ServiceError {
  return new ServiceError('forbidden', `this needs ${needed}`);
}
