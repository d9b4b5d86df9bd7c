import type { AccessChange, AccessRows, ApiKeyRecord, GrantRecord } from '../storage/catalog/access-records.ts';
import { accessLevels, commonGrants, coversEverything, type Grant, grantedTypes } from './grants.ts';
import type { Principal, RowFilters } from './principal.ts';
import { rowFiltersFor } from './subject-filters.ts';

/** By whom a request is made, and which documents exist for it. */
export interface Session {
  readonly principal: Principal;
  readonly rowFilter: RowFilters | undefined;
}

export interface User {
  readonly name: string;
  readonly passwordHash: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly createdMs: number;
}

export interface ApiKey {
  readonly keyId: string;
  readonly name: string;
  readonly userName: string;
  readonly secretSha256: Uint8Array;
  /** Undefined for all that the user has. */
  readonly permissions: readonly Grant[] | undefined;
  readonly rowFilter: Readonly<Record<string, object>> | undefined;
  readonly createdMs: number;
  readonly expiresMs: number | undefined;
}

type Filters = ReadonlyMap<string, object>;

/** The grants of a user, with those of all its roles and groups, or of one of its keys. */
interface Held {
  readonly grants: readonly Grant[];
  readonly rowFilter: RowFilters | undefined;
  /** For requests with the password of the user. */
  readonly withPassword: Session;
  /**
   * For requests with a key; one for all keys of these grants, since thousands
   * would not fit into the caches of the processor.
   */
  readonly withKey: Session;
}

/**
 * The grants of all subjects, in memory: every request asks it. A row that cannot be read is refused with an Error
 * rather than left out: a row filter that is left out would show what it hides.
 */
export class AccessState {
  readonly #users = new Map<string, User>();
  readonly #grants = new Map<string, readonly Grant[]>();
  readonly #memberships = new Map<string, readonly string[]>();
  readonly #keys = new Map<string, ApiKey>();
  readonly #filters = new Map<string, Filters>();
  /** By user, since the last change. */
  readonly #held = new Map<string, Held>();

  static of(rows: AccessRows): AccessState {
    const state = new AccessState();
    state.apply({ put: rows });
    return state;
  }

  /** As it would be after a change. */
  after(change: AccessChange): AccessState {
    const copy = new AccessState();
    for (const [name, user] of this.#users) copy.#users.set(name, user);
    for (const [subject, grants] of this.#grants) copy.#grants.set(subject, grants);
    for (const [user, subjects] of this.#memberships) copy.#memberships.set(user, subjects);
    for (const [keyId, key] of this.#keys) copy.#keys.set(keyId, key);
    for (const [subject, filters] of this.#filters) copy.#filters.set(subject, filters);
    copy.apply(change);
    return copy;
  }

  apply({ remove = {}, put = {} }: AccessChange): void {
    this.#held.clear();
    for (const name of remove.users ?? []) this.#users.delete(name);
    for (const row of remove.grants ?? []) this.#setGrants(row.subject, without(this.grantsOf(row.subject), row));
    for (const { userName, subject } of remove.memberships ?? []) {
      const left = this.subjectsOf(userName).filter((each) => each !== subject);
      setOrDelete(this.#memberships, userName, left, left.length);
    }
    for (const keyId of remove.apiKeys ?? []) this.#keys.delete(keyId);
    for (const { subject, tableName } of remove.rowFilters ?? []) {
      const left = new Map(this.filtersOf(subject));
      left.delete(tableName);
      setOrDelete(this.#filters, subject, left, left.size);
    }
    for (const row of put.users ?? []) {
      const metadata = readObject(row.metadata, `metadata of user "${row.name}"`);
      this.#users.set(row.name, { ...row, metadata });
    }
    for (const row of put.grants ?? []) {
      const grant = readGrant(row);
      this.#setGrants(row.subject, [...without(this.grantsOf(row.subject), row), grant]);
    }
    for (const { userName, subject } of put.memberships ?? []) {
      this.#memberships.set(userName, [...new Set([...this.subjectsOf(userName), subject])]);
    }
    for (const row of put.apiKeys ?? []) this.#keys.set(row.keyId, readKey(row));
    for (const { subject, tableName, filter } of put.rowFilters ?? []) {
      const node = readObject(filter, `row filter of "${subject}"`);
      this.#filters.set(subject, new Map(this.filtersOf(subject)).set(tableName, node));
    }
  }

  get userCount(): number {
    return this.#users.size;
  }

  users(): User[] {
    return [...this.#users.values()].sort((left, right) => (left.name < right.name ? -1 : 1));
  }

  user(name: string): User | undefined {
    return this.#users.get(name);
  }

  key(keyId: string): ApiKey | undefined {
    return this.#keys.get(keyId);
  }

  get keyCount(): number {
    return this.#keys.size;
  }

  keysOf(userName: string): ApiKey[] {
    return this.keys().filter((key) => key.userName === userName);
  }

  keys(): ApiKey[] {
    return [...this.#keys.values()];
  }

  /** Grants of a subject alone, without those of its roles. */
  grantsOf(subject: string): readonly Grant[] {
    return this.#grants.get(subject) ?? [];
  }

  /**
   * Grants of `read` and `write` that name the resource: they end with it,
   * since what is made later under its name is another.
   */
  grantsOfLife(resourceType: Grant['resourceType'], resource: string): GrantRecord[] {
    return [...this.#grants].flatMap(([subject, grants]) =>
      grants.flatMap((grant) =>
        grant.resourceType === resourceType && grant.resource === resource && grant.level !== 'admin'
          ? [{ subject, ...grant }]
          : [],
      ),
    );
  }

  /** Roles and groups that a user, a role or a group was given itself, as subjects. */
  subjectsOf(subject: string): readonly string[] {
    return this.#memberships.get(subject) ?? [];
  }

  /** The subject, then every role and group that it has, also through others. */
  allSubjectsOf(subject: string): readonly string[] {
    // A set is iterated with what is added meanwhile.
    const reached = new Set([subject]);
    for (const each of reached) for (const given of this.subjectsOf(each)) reached.add(given);
    return [...reached];
  }

  filtersOf(subject: string): Filters {
    return this.#filters.get(subject) ?? new Map();
  }

  /** Every subject that something is said of, users included. */
  subjects(): string[] {
    const named = [...this.#memberships].flat(2);
    return [...new Set([...this.#users.keys(), ...this.#grants.keys(), ...this.#filters.keys(), ...named])].sort();
  }

  /** The subject's own grants and those of its roles and groups. */
  effectiveGrants(subject: string): readonly Grant[] {
    return this.allSubjectsOf(subject).flatMap((each) => this.grantsOf(each));
  }

  /** The grants of a key's holder: never more than its user. Undefined when that one is gone. */
  heldByKey({ userName, permissions, rowFilter }: ApiKey): Held | undefined {
    const user = this.#users.get(userName);
    if (user === undefined) return undefined;
    const held = this.heldBy(user);
    if (permissions === undefined && rowFilter === undefined) return held;
    return holding(
      user,
      permissions === undefined ? held.grants : commonGrants(held.grants, permissions),
      rowFilter === undefined ? held.rowFilter : this.#rowFilter(user, rowFilter),
    );
  }

  /** Whether a global administrator of all documents can come in: with a password, or with a key that is valid. */
  hasReachableAdmin(nowMs: number): boolean {
    return this.#users.values().some((user) => {
      if (!isAdmin(this.heldBy(user))) return false;
      if (user.passwordHash !== null) return true;
      const keys = this.keysOf(user.name).filter(({ expiresMs }) => expiresMs === undefined || expiresMs > nowMs);
      return keys.some((key) => isAdmin(this.heldByKey(key)));
    });
  }

  heldBy(user: User): Held {
    const known = this.#held.get(user.name);
    if (known !== undefined) return known;
    const held = holding(user, this.effectiveGrants(user.name), this.#rowFilter(user, undefined));
    this.#held.set(user.name, held);
    return held;
  }

  #rowFilter({ name, metadata }: User, ofKey: Readonly<Record<string, object>> | undefined): RowFilters | undefined {
    const subjects = this.allSubjectsOf(name);
    const filters = subjects.map((subject) => Object.fromEntries(this.filtersOf(subject)));
    const roles = subjects.flatMap((subject) => (subject.startsWith('role:') ? [subject.slice(5)] : []));
    return rowFiltersFor([...filters, ...(ofKey === undefined ? [] : [ofKey])], { username: name, roles, metadata });
  }

  #setGrants(subject: string, grants: readonly Grant[]): void {
    setOrDelete(this.#grants, subject, grants, grants.length);
  }
}

function isAdmin(held: Held | undefined): boolean {
  return held !== undefined && held.rowFilter === undefined && coversEverything(held.grants);
}

function holding({ name, createdMs }: User, grants: readonly Grant[], rowFilter: RowFilters | undefined): Held {
  const session = (byKey: boolean): Session => ({
    principal: { kind: 'granted', name, madeMs: createdMs, grants, byKey },
    rowFilter,
  });
  return { grants, rowFilter, withPassword: session(false), withKey: session(true) };
}

function setOrDelete<Value>(map: Map<string, Value>, key: string, value: Value, size: number): void {
  if (size > 0) map.set(key, value);
  else map.delete(key);
}

function without(grants: readonly Grant[], { resourceType, resource, level }: GrantRecord): Grant[] {
  return grants.filter(
    (grant) => grant.resourceType !== resourceType || grant.resource !== resource || grant.level !== level,
  );
}

/** Throws an Error for words that are none of ours. */
export function readGrant({ resourceType, resource, level }: Omit<GrantRecord, 'subject'>): Grant {
  const knownType = grantedTypes.find((word) => word === resourceType);
  const knownLevel = accessLevels.find((word) => word === level);
  if (knownType === undefined || knownLevel === undefined) {
    throw new Error(`a grant of "${level}" on "${resourceType}" cannot be read`);
  }
  return { resourceType: knownType, resource, level: knownLevel };
}

function readKey({ permissions, rowFilter, expiresMs, ...row }: ApiKeyRecord): ApiKey {
  const what = `key "${row.keyId}"`;
  const filters = rowFilter === null ? undefined : readObject(rowFilter, what);
  for (const filter of Object.values(filters ?? {})) {
    if (typeof filter !== 'object' || filter === null) throw new Error(`the row filter of ${what} cannot be read`);
  }
  return {
    ...row,
    permissions:
      permissions === null ? undefined : readArray(permissions, what).map((each) => readGrant(each as Grant)),
    rowFilter: filters as Record<string, object> | undefined,
    expiresMs: expiresMs ?? undefined,
  };
}

function readObject(text: string, what: string): Record<string, unknown> {
  const value = parse(text, what);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error(`the ${what} cannot be read`);
}

function readArray(text: string, what: string): unknown[] {
  const value = parse(text, what);
  if (Array.isArray(value)) return value;
  throw new Error(`the permissions of ${what} cannot be read`);
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`the ${what} cannot be read`, { cause });
  }
}
